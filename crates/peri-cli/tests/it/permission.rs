//! Print mode's refusals: they name what would allow the call, and the result object lists them.

use peri_testkit::model_server::{Answer, FakeModelServer, Script};
use serde_json::json;

use crate::sandbox::Sandbox;

fn wants_to_run(command: &str) -> Script {
    Script::in_order([
        Answer::new().tool_use("toolu_1", "Bash", &json!({"command": command})),
        Answer::new().text("Done what I could."),
    ])
}

#[test]
fn a_refused_call_is_listed_and_the_model_is_told_what_would_allow_it() {
    let model = FakeModelServer::start(wants_to_run("touch made"));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--output-format", "json"]).run();
    let result = run.code(0).json();
    let denials = json!([{"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "touch made"}}]);
    run.check(result["permission_denials"] == denials, "the refused call is listed")
        .check(!sandbox.work().join("made").exists(), "nothing was run");
    let told = model.requests().pop().expect("a request").tool_results().remove(0).1;
    run.check(told.contains("--allowed-tools"), "the model is told which option would allow it");
}

#[test]
fn rules_and_modes_of_the_command_line_decide() {
    let check = |options: &[&str], expect_made: bool| {
        let model = FakeModelServer::start(wants_to_run("touch made"));
        let sandbox = Sandbox::with_model(&model.base_url());
        let run = sandbox.peri(["-p", "x"].into_iter().chain(options.iter().copied())).run();
        run.code(0).check(sandbox.work().join("made").exists() == expect_made, "the command ran as it should");
    };
    check(&["--allowed-tools", "Bash(touch:*)"], true);
    check(&["--permission-mode", "bypass"], true);
    check(&["--permission-mode", "bypassPermissions"], true);
    check(&["--permission-mode", "bypass", "--disallowed-tools", "Bash(touch:*)"], false);
    check(&["--allowed-tools", "Bash(git status:*)"], false);
}
