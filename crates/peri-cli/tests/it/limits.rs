//! Limits: exit code 3.

use peri_testkit::model_server::{Answer, FakeModelServer, Script};
use serde_json::json;

use crate::sandbox::Sandbox;

/// Looks for files for ever, elsewhere each time.
fn restless() -> Script {
    Script::computed(|request| {
        let number = request.number;
        Answer::new().tool_use(&format!("toolu_{number}"), "Glob", &json!({"pattern": format!("{number}*")}))
    })
}

#[test]
fn max_turns_stops_the_turn() {
    let model = FakeModelServer::start(restless());
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--max-turns", "2", "--output-format", "json"]).run();
    let result = run.code(3).json();
    run.check(result["subtype"] == "error_max_turns" && result["is_error"] == true, "an error result")
        .check(result["num_turns"] == 2, "after two requests")
        .stderr_has("--max-turns");
    run.check(model.requests().len() == 2, "two requests were made");

    let run = sandbox.peri(["-p", "x", "--max-turns", "1"]).run();
    run.code(3).stdout_is("");
}

#[test]
fn a_cut_off_answer_is_shown_and_told() {
    let model = FakeModelServer::start(Script::in_order([Answer::new().text("Once upon").stop_reason("max_tokens")]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "tell me a tale"]).run();
    run.code(3).stdout_is("Once upon\n").stderr_has("cut off").stderr_has("hint:");
}

#[test]
fn a_loop_is_stopped() {
    let script = Script::computed(|request| {
        Answer::new().tool_use(&format!("toolu_{}", request.number), "Glob", &json!({"pattern": "*.nothing"}))
    });
    let model = FakeModelServer::start(script);
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x"]).run();
    run.code(3).stderr_has("in circles");
    model.check_invariants();
}

#[test]
fn a_refusal_is_a_failure_that_shows_what_was_said() {
    let model = FakeModelServer::start(Script::in_order([Answer::new().text("I will not.").stop_reason("refusal")]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x"]).run();
    run.code(1).stdout_is("I will not.\n").stderr_has("refused");
}
