//! `peri acp`: the agent over standard input and output.

use std::time::Instant;

use peri_testkit::model_server::{Answer, FakeModelServer, Script};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::acp_client::Client;
use crate::sandbox::Sandbox;
use crate::signals::{BROOD, check_no_survivor, is_there, wait_for_brood};

fn hello() -> FakeModelServer {
    FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]))
}

/// Writes a file, then says so.
fn writing() -> FakeModelServer {
    FakeModelServer::start(Script::by_history([
        Answer::new().tool_use("toolu_1", "Write", &json!({"file_path": "new.txt", "content": "new\n"})),
        Answer::new().text("Written."),
    ]))
}

fn brooding() -> FakeModelServer {
    FakeModelServer::start(Script::by_history([
        Answer::new().tool_use("toolu_1", "Bash", &json!({"command": BROOD})),
        Answer::new().text("Done."),
    ]))
}

#[test]
fn a_turn_over_pipes() {
    let model = hello();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    let session = client.new_session(&sandbox.canonical_work());
    let answer = client.prompt(&session, "hi");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(client.text(), "Hello.");
    client.hang_up();
    let (run, _) = client.finish();
    run.code(0).check(run.stderr.is_empty(), "nothing to say on standard error");
    sandbox.peri(["sessions", "list"]).run().code(0).stdout_has(&session);
}

#[test]
fn permission_is_asked_for_and_the_answer_counts() {
    let model = writing();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    client.permission = "reject_once";
    let session = client.new_session(&sandbox.canonical_work());
    client.prompt(&session, "write it");
    assert!(!sandbox.work().join("new.txt").exists(), "it was rejected");
    client.permission = "allow_once";
    let session = client.new_session(&sandbox.canonical_work());
    client.prompt(&session, "write it");
    assert_eq!(std::fs::read_to_string(sandbox.work().join("new.txt")).expect("a file"), "new\n");
    client.hang_up();
    client.finish().0.code(0);
}

#[test]
fn what_is_rejected_for_good_is_rejected_in_the_next_session_too() {
    let model = FakeModelServer::start(Script::by_history([
        Answer::new().tool_use("toolu_1", "Bash", &json!({"command": "touch made"})),
        Answer::new().text("Done."),
    ]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let questions = |kind: &'static str| {
        let mut client = Client::initialized(sandbox.peri(["acp"]));
        client.permission = kind;
        let session = client.new_session(&sandbox.canonical_work());
        client.prompt(&session, "make it");
        client.hang_up();
        let (run, heard) = client.finish();
        run.code(0);
        heard.iter().filter(|message| message["method"] == "session/request_permission").count()
    };
    assert_eq!(questions("reject_always"), 1);
    let local = std::fs::read(sandbox.work().join(".peri/settings.local.json")).expect("a file");
    let local: Value = serde_json::from_slice(&local).expect("JSON");
    assert_eq!(local["permissions"]["deny"], json!(["Bash(touch made)"]));
    assert_eq!(questions("allow_once"), 0, "the rule decides");
    assert!(!sandbox.work().join("made").exists());
}

#[test]
fn a_session_wants_a_directory_that_is_there() {
    let model = hello();
    let sandbox = Sandbox::with_model(&model.base_url());
    let folder = sandbox.work().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    let cwd = folder.to_str().expect("UTF-8").to_owned();
    let session = client.new_session(&cwd);
    client.prompt(&session, "hi");
    client.call("session/close", json!({"sessionId": session}));
    std::fs::remove_dir(&folder).expect("it is empty");
    for as_file in [false, true] {
        if as_file {
            sandbox.write(&folder, "a file");
        }
        for method in ["session/new", "session/load", "session/resume"] {
            let answer = client.call(method, json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
            assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(&cwd)), "{answer}");
        }
    }
    client.hang_up();
    client.finish().0.code(0);
    sandbox.peri(["sessions", "show", &session]).run().code(0).stdout_has("Hello.");
}

#[test]
fn options_hold_for_every_session() {
    let model = writing();
    let sandbox = Sandbox::with_model(&model.base_url());
    let line = ["acp", "--permission-mode", "accept-edits", "--append-system-prompt", "Speak of ferns.", "--max-turns"];
    let mut client = Client::initialized(
        sandbox.peri(line.into_iter().chain(["1", "--no-session-persistence"])).cwd(&sandbox.home()),
    );
    let session = client.new_session(&sandbox.canonical_work());
    let answer = client.prompt(&session, "write it");
    assert_eq!(answer["result"]["stopReason"], "max_turn_requests");
    assert!(sandbox.work().join("new.txt").exists(), "nobody had to be asked");
    assert!(client.heard.iter().all(|message| message["method"] != "session/request_permission"));
    client.hang_up();
    client.finish().0.code(0);
    let request = model.requests().pop().expect("a request");
    assert!(request.json["system"].to_string().contains("Speak of ferns."));
    assert!(!sandbox.data_dir().join("peri.db").exists(), "nothing is kept");
}

#[test]
fn garbage_is_answered_and_the_process_lives() {
    let model = hello();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    for garbage in [&b"hello"[..], b"{\"jsonrpc\":", b"[]", b"\xff\xfe", b"{\"jsonrpc\":\"1.0\",\"id\":1}", b"null"] {
        client.write(garbage);
        let answer = client.answer(&Value::Null);
        assert!(answer["error"]["code"].is_i64(), "an error: {answer}");
    }
    client.write(b"   ");
    let session = client.new_session(&sandbox.canonical_work());
    assert_eq!(client.prompt(&session, "hi")["result"]["stopReason"], "end_turn");
    client.hang_up();
    client.finish().0.code(0);
}

#[test]
fn a_client_that_hangs_up_amid_a_turn_leaves_no_child() {
    let model = brooding();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp", "--permission-mode", "bypass"]));
    let session = client.new_session(&sandbox.canonical_work());
    client.send_prompt(&session, "brood");
    let brood = wait_for_brood(&sandbox);
    client.hang_up();
    let hung_up = Instant::now();
    let (run, _) = client.finish();
    run.code(0).check(!brood.iter().any(|pid| is_there(*pid)), "no child is left when it exits");
    check_no_survivor(&brood, hung_up);
    let shown = sandbox.peri(["sessions", "show", &session]).run();
    shown.code(0).stdout_has("interrupted");
}

#[track_caller]
fn check_signal(signal: Signal, code: i32) {
    let model = brooding();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp", "--permission-mode", "bypass"]));
    let session = client.new_session(&sandbox.canonical_work());
    let prompt = client.send_prompt(&session, "brood");
    let brood = wait_for_brood(&sandbox);
    client.running.signal(signal);
    let signalled = Instant::now();
    let answer = client.answer(&json!(prompt));
    assert_eq!(answer["result"]["stopReason"], "cancelled", "the client is told: {answer}");
    let (run, _) = client.finish();
    run.code(code).check(!brood.iter().any(|pid| is_there(*pid)), "no child is left when it exits");
    check_no_survivor(&brood, signalled);
}

#[test]
fn an_interrupt_amid_a_turn() {
    check_signal(Signal::INT, 130);
}

#[test]
fn a_termination_amid_a_turn() {
    check_signal(Signal::TERM, 143);
}

#[test]
fn a_hangup_amid_a_turn() {
    check_signal(Signal::HUP, 129);
}

#[test]
fn a_kill_amid_a_turn_leaves_no_child() {
    let model = brooding();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp", "--permission-mode", "bypass"]));
    let session = client.new_session(&sandbox.canonical_work());
    client.send_prompt(&session, "brood");
    let brood = wait_for_brood(&sandbox);
    client.running.signal(Signal::KILL);
    let signalled = Instant::now();
    client.finish();
    check_no_survivor(&brood, signalled);
}

#[test]
fn a_signal_ends_it_at_rest() {
    let sandbox = Sandbox::new();
    let client = Client::initialized(sandbox.peri(["acp"]));
    client.running.signal(Signal::TERM);
    client.finish().0.code(143);
}

#[test]
fn a_termination_while_the_client_does_not_read() {
    let long = "x".repeat(4 << 20);
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text(&long)]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    let session = client.new_session(&sandbox.canonical_work());
    client.send_prompt(&session, "go");
    model.block_until_requested(1);
    client.running.signal(Signal::TERM);
    client.finish_unread().code(143);
}

#[test]
fn verbose_tells_the_traffic_on_standard_error_without_contents() {
    let model = hello();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp", "--verbose"]));
    let session = client.new_session(&sandbox.canonical_work());
    client.prompt(&session, "the secret is 4711");
    client.hang_up();
    let (run, _) = client.finish();
    run.code(0).stderr_has("client → session/prompt 3").stderr_has("client ← result 3");
    run.check(!run.stderr.contains("4711"), "no contents");
}

#[test]
fn damage_of_the_store_is_told_on_standard_error() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.data_dir().join("peri.db"), &"this is no database ".repeat(500));
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    client.call("session/list", json!({}));
    client.hang_up();
    let (run, _) = client.finish();
    run.code(0).stderr_has("peri.db was damaged");
    run.check(run.stderr.matches("was damaged").count() == 1, "once");
}

#[test]
fn what_is_wrong_on_the_command_line_is_told_before_anything_is_served() {
    let sandbox = Sandbox::new();
    for (line, part) in [
        (&["acp", "--db-path", "x.db", "--no-session-persistence"][..], "--db-path"),
        (&["acp", "--config-file", "nowhere.json"], "nowhere.json"),
        (&["acp", "--cwd", "/"], "--cwd"),
    ] {
        sandbox.peri(line.iter().copied()).run().code(2).stdout_is("").stderr_has(part);
    }
}

#[test]
fn help_shows_how_editors_start_it() {
    let sandbox = Sandbox::new();
    sandbox.peri(["acp", "--help"]).run().code(0).stdout_has("Zed").stdout_has("JetBrains").stdout_has("Exit codes");
}
