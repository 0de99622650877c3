//! The file of sessions under trouble.

use peri_testkit::model_server::{Answer, FakeModelServer, Script};

use crate::sandbox::Sandbox;

fn model() -> FakeModelServer {
    FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]))
}

#[test]
fn eight_runs_at_once_all_finish() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    let running: Vec<_> = (0..8).map(|_| sandbox.peri(["-p", "say hello"]).start()).collect();
    for run in running {
        run.finish().code(0).stdout_is("Hello.\n");
    }
    let listed = sandbox.peri(["sessions", "list", "--output-format", "json"]).run().code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(8));
}

#[test]
fn a_data_directory_that_cannot_be_written_is_a_failure_with_words() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    // A file where the directory should be: no rights help against that, root's neither.
    sandbox.write(&sandbox.home().join(".local/share"), "not a directory");
    let run = sandbox.peri(["-p", "x", "--output-format", "json"]).run();
    let result = run.code(1).json();
    run.check(result["is_error"] == true, "an error result").stderr_has(".local/share").stderr_has("hint:");
    run.check(model.requests().is_empty(), "the model was not asked");

    sandbox.peri(["-p", "x", "--db-path", "sessions.db"]).run().code(0).stdout_is("Hello.\n");
    sandbox.peri(["-p", "x", "--no-session-persistence"]).run().code(0).stdout_is("Hello.\n");
}

#[test]
fn a_damaged_file_is_moved_aside_and_told() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    let file = sandbox.data_dir().join("peri.db");
    sandbox.write(&file, &"this is no database ".repeat(500));
    let run = sandbox.peri(["-p", "x"]).run();
    run.code(0).stdout_is("Hello.\n").stderr_has("peri.db");
}

#[test]
fn a_file_that_was_named_and_is_no_database_is_left_alone() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    let file = sandbox.work().join("notes.txt");
    sandbox.write(&file, "my notes, of more than sixteen bytes");
    for command in [&["-p", "x"][..], &["acp"], &["sessions", "list"], &["doctor"]] {
        let run = sandbox.peri(command.iter().copied().chain(["--db-path", "notes.txt"])).run();
        run.code(2).stderr_has("notes.txt: this is no SQLite database").stderr_has("hint:");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "my notes, of more than sixteen bytes");
    sandbox.write(&sandbox.work().join("empty.db"), "");
    sandbox.peri(["-p", "x", "--db-path", "empty.db"]).run().code(0).stdout_is("Hello.\n");
}

#[test]
fn secrets_reach_neither_the_streams_nor_the_files() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--verbose", "--output-format", "stream-json"]).run();
    run.code(0).check(!format!("{}{}", run.stdout, run.stderr).contains("sk-test-secret"), "not in the streams");
    let request = model.requests().pop().expect("a request");
    run.check(request.header("x-api-key") == Some("sk-test-secret"), "it went to the endpoint");
    for file in sandbox.files_below(&sandbox.home()) {
        let bytes = std::fs::read(&file).expect("a file of ours");
        let found = bytes.windows(14).any(|window| window == b"sk-test-secret");
        run.check(!found, &format!("not in {}", file.display()));
    }
}

#[test]
fn a_tool_does_not_see_the_key_of_a_provider() {
    let model = FakeModelServer::start(Script::by_history([
        Answer::new().tool_use("t1", "Bash", &serde_json::json!({"command": "env; echo seen"})),
        Answer::new().text("Done."),
    ]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--permission-mode", "bypass", "--output-format", "stream-json"]).run();
    run.code(0).check(run.stdout.contains("seen"), "the command ran");
    run.check(!run.stdout.contains("sk-test-secret"), "its environment has no key");
}
