//! `peri sessions export` and `delete`.

use std::os::unix::fs::PermissionsExt as _;

use peri_testkit::gate::Gate;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const ID: &str = "7e570000-0000-4000-8000-000000000001";
const OTHER: &str = "7e570000-0000-4000-8000-000000000002";

/// Shows what a file says, which holds a secret of the settings, then answers with a fence.
fn leaking() -> FakeModelServer {
    FakeModelServer::start(Script::by_history([
        Answer::new().text("I look.").tool_use("toolu_1", "Read", &json!({"file_path": "notes.txt"})),
        Answer::new().text("It says:\n```\nall\n```"),
    ]))
}

fn stored(model: &FakeModelServer) -> Sandbox {
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.write(&sandbox.work().join("notes.txt"), "key sk-test-secret and ``` more, sk-ant-elsewhere\n");
    sandbox.peri(["-p", "look at notes.txt", "--session-id", ID]).run().code(0);
    sandbox
}

#[test]
fn a_session_is_exported_whole_and_without_secrets() {
    let model = leaking();
    let sandbox = stored(&model);
    let told = model.requests().pop().expect("a request").json.to_string();
    assert!(told.contains("sk-test-secret"), "the session has what the tool read");
    let run = sandbox.peri(["sessions", "export", "7e57"]).env("ANTHROPIC_API_KEY", Some("sk-ant-elsewhere")).run();
    let document = run.code(0).json();
    run.check(!run.stdout.contains("elsewhere"), "a usual variable counts, though the settings do not name it");
    run.check(!run.stdout.contains("sk-test-secret"), "no secret").stdout_has("key [redacted] and");
    assert_eq!(document["format"], "peri-session");
    assert_eq!(document["version"], 1);
    assert_eq!(document["session_id"], ID);
    let roles: Vec<&Value> = document["messages"].as_array().expect("messages").iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(document["turns"][0]["stop_reason"], "end_turn");

    let run = sandbox.peri(["sessions", "export", ID, "--output-format", "markdown"]).run();
    run.code(0).stdout_has("# look at notes.txt").stdout_has("**Read**").stdout_has("````text").stdout_has("It says:");
    run.check(!run.stdout.contains("sk-test-secret"), "no secret");
}

#[test]
fn an_export_goes_to_a_file_that_only_its_owner_reads() {
    let model = leaking();
    let sandbox = stored(&model);
    let run = sandbox.peri(["sessions", "export", ID, "-o", "out.json"]).run();
    run.code(0).stdout_is("");
    let file = sandbox.work().join("out.json");
    let document: Value = serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(document["session_id"], ID);
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    sandbox.write(&file, "old");
    sandbox.peri(["sessions", "export", ID, "-o", "out.json", "--output-format", "md"]).run().code(0);
    assert!(std::fs::read_to_string(&file).expect("a file").starts_with("# look"), "it was replaced");
    sandbox.peri(["sessions", "export", ID, "-o", "/dev/stdout"]).run().code(0).stdout_has(ID);
    let run = sandbox.peri(["sessions", "export", ID, "-o", "no/such/folder/x"]).run();
    run.code(1).stderr_has("no/such/folder/x").stderr_has("hint:");
    let left: Vec<_> = sandbox.files_below(&sandbox.work());
    assert!(left.iter().all(|path| !path.display().to_string().contains(".peri-export-")), "{left:?}");
}

#[test]
fn a_session_is_shown_without_secrets_too() {
    let model = leaking();
    let sandbox = stored(&model);
    for format in ["text", "json"] {
        let run = sandbox.peri(["sessions", "show", ID, "--output-format", format]).run();
        run.code(0).stdout_has("key [redacted] and").check(!run.stdout.contains("sk-test-secret"), "no secret");
    }
}

#[test]
fn settings_that_cannot_be_read_hold_an_export_back() {
    let model = leaking();
    let sandbox = stored(&model);
    sandbox.write(&sandbox.user_settings(), "{");
    for action in ["export", "show"] {
        sandbox.peri(["sessions", action, ID]).run().code(2).stdout_is("").stderr_has("secret").stderr_has("hint:");
    }
}

#[test]
fn a_session_is_deleted_only_when_that_is_agreed_to() {
    let model = leaking();
    let sandbox = stored(&model);
    sandbox.peri(["-p", "again", "--session-id", OTHER]).run();
    let run = sandbox.peri(["sessions", "delete", ID]).stdin(b"y\n").run();
    run.code(2).stdout_has(ID).stderr_has("only be asked on a terminal").stderr_has("--yes");
    sandbox.peri(["sessions", "delete", "--yes", "7e57"]).run().code(2).stderr_has("2 sessions");
    let run = sandbox.peri(["sessions", "delete", "--yes", ID, "ffff"]).run();
    run.code(1).stderr_has("no session ffff").stderr_has("hint:");
    sandbox.peri(["sessions", "show", ID]).run().code(0);
    let run = sandbox.peri(["sessions", "delete", "-y", ID, ID]).run();
    run.code(0).stdout_is(&format!("deleted {ID}\n"));
    for action in ["show", "export"] {
        sandbox.peri(["sessions", action, ID]).run().code(1).stderr_has("no session").stderr_has("hint:");
    }
    sandbox.peri(["sessions", "show", OTHER]).run().code(0);
    sandbox.peri(["sessions", "delete", "-y", ID]).run().code(1).stderr_has("no session");
}

#[test]
fn a_session_that_runs_elsewhere_is_deleted_and_stays_so() {
    let gate = Gate::shut();
    let reply = Reply::from(Answer::new().text("Late.")).before_head(&gate);
    let model = FakeModelServer::start(Script::repeating_last([reply]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let running = sandbox.peri(["-p", "x", "--session-id", ID]).start();
    model.block_until_requested(1);
    sandbox.peri(["sessions", "delete", "-y", ID]).run().code(0);
    gate.open();
    running.finish().code(1).stderr_has("no session");
    sandbox.peri(["sessions", "list", "--all"]).run().code(0).stdout_has("no sessions");
}

#[test]
fn without_a_file_of_sessions_none_is_made() {
    let sandbox = Sandbox::new();
    sandbox.peri(["sessions", "delete", "-y", ID]).run().code(1);
    sandbox.peri(["sessions", "export", ID]).run().code(1);
    assert!(!sandbox.data_dir().exists());
}
