//! `--input-format stream-json`: a message a line, a result each.

use std::io::Write as _;
use std::process::ChildStdin;

use peri_testkit::gate::Gate;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Script};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sandbox::{Finished, Sandbox};

const LINE: [&str; 5] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];

fn numbers() -> FakeModelServer {
    FakeModelServer::start(Script::by_history(["One.", "Two.", "Three."].map(|text| Answer::new().text(text))))
}

fn message(content: Value) -> String {
    format!("{}\n", json!({"type": "user", "message": {"role": "user", "content": content}}))
}

fn control(id: &str, request: Value) -> String {
    format!("{}\n", json!({"type": "control_request", "request_id": id, "request": request}))
}

fn results(run: &Finished<'_>) -> Vec<Value> {
    run.json_lines().into_iter().filter(|line| line["type"] == "result").collect()
}

#[test]
fn each_message_is_a_turn_of_the_same_session() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let input = [message(json!("first")), "\n".to_owned(), message(json!([{"type": "text", "text": "second"}]))];
    let run = sandbox.peri(LINE).stdin(input.concat().as_bytes()).run();
    run.code(0);
    let lines = run.json_lines();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(kinds, ["system", "assistant", "result", "assistant", "result"]);
    let results = results(&run);
    assert_eq!(results[0]["result"], "One.");
    assert_eq!(results[1]["result"], "Two.");
    assert_eq!(results[1]["num_turns"], 1);
    assert_eq!(results[0]["session_id"], results[1]["session_id"]);
    model.check_invariants();
    let run = sandbox.peri(LINE.into_iter().chain(["-c"])).stdin(message(json!("third")).as_bytes()).run();
    run.code(0).stdout_has("Three.");
}

#[test]
fn images_reach_the_model() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}});
    let input = message(json!([{"type": "text", "text": "what is it?"}, image]));
    sandbox.peri(LINE).stdin(input.as_bytes()).run().code(0);
    let request = model.requests().pop().expect("a request");
    assert!(request.json["messages"].to_string().contains(pixel), "the image is in the request");
}

#[test]
fn a_line_that_is_no_message_ends_the_run_after_what_came_before() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let input = [message(json!("first")), "hello\n".to_owned(), message(json!("never"))];
    let run = sandbox.peri(LINE).stdin(input.concat().as_bytes()).run();
    run.code(2).stderr_has("line 2 of standard input is not JSON").stderr_has("hint:");
    let results = results(&run);
    run.check(results.len() == 2 && results[0]["result"] == "One.", "the first is answered");
    let told = results[1]["errors"][0].as_str().unwrap_or_default().contains("line 2");
    run.check(told && results[1]["is_error"] == true, "the last result names the line");
    run.check(model.requests().len() == 1, "what came after it was not sent");
}

#[test]
fn an_input_without_a_message_is_a_usage_error() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(LINE).stdin(b"\n\n").run();
    run.code(2).stderr_has("without a message");
    run.check(results(&run).len() == 1, "a result says so");
    sandbox.peri(["sessions", "list", "--all"]).run().code(0).stdout_has("no sessions");
}

#[test]
fn a_turn_that_fails_does_not_keep_the_next_from_being_answered() {
    let refused = Reply::status(400).error_body("invalid_request_error", "no such thing");
    let model = FakeModelServer::start(Script::in_order([refused, Reply::from(Answer::new().text("Well."))]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let input = [message(json!("first")), message(json!("second"))];
    let run = sandbox.peri(LINE).stdin(input.concat().as_bytes()).run();
    run.code(1).stderr_has("no such thing");
    let results = results(&run);
    run.check(results[0]["is_error"] == true && results[1]["is_error"] == false, "one failed, one did not");
    run.check(results[1]["result"] == "Well.", "the second is answered");
}

struct Conversation<'a> {
    running: crate::sandbox::Running<'a>,
    stdin: Option<ChildStdin>,
}

impl<'a> Conversation<'a> {
    fn start(sandbox: &'a Sandbox) -> Conversation<'a> {
        let mut running = sandbox.peri(LINE).start();
        let stdin = running.child.stdin.take();
        Conversation { running, stdin }
    }

    fn say(&mut self, line: &str) {
        self.stdin.as_mut().expect("it is open").write_all(line.as_bytes()).expect("it is read");
    }

    fn finish(mut self) -> Finished<'a> {
        self.stdin = None;
        self.running.finish()
    }
}

#[test]
fn an_interrupt_ends_the_turn_and_the_session_goes_on() {
    let gate = Gate::shut();
    let held = Reply::from(Answer::new().text("Late.")).before_head(&gate);
    let model = FakeModelServer::start(Script::in_order([held, Reply::from(Answer::new().text("Here."))]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut talk = Conversation::start(&sandbox);
    talk.say(&control("c0", json!({"subtype": "initialize"})));
    talk.say(&message(json!("first")));
    model.block_until_requested(1);
    talk.say(&control("c1", json!({"subtype": "interrupt"})));
    talk.say(&control("c2", json!({"subtype": "make_coffee"})));
    talk.say(&message(json!("second")));
    let run = talk.finish();
    run.code(1);
    let results = results(&run);
    run.check(results[0]["stop_reason"] == "cancelled", "the first was cancelled");
    run.check(results[1]["result"] == "Here.", "the second is answered");
    let answers: Vec<Value> = run.json_lines().into_iter().filter(|line| line["type"] == "control_response").collect();
    let told: Vec<(&Value, &Value)> =
        answers.iter().map(|it| (&it["response"]["request_id"], &it["response"]["subtype"])).collect();
    let expected = [("c0", "success"), ("c1", "success"), ("c2", "error")];
    run.check(
        told.iter().zip(expected).all(|((id, how), (id_wanted, wanted))| **id == id_wanted && **how == wanted),
        "each is answered",
    );
    run.check(told.len() == 3 && answers[2].to_string().contains("make_coffee"), "an unknown one by name");
}

#[test]
fn a_signal_between_messages_ends_the_run() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut talk = Conversation::start(&sandbox);
    talk.say(&message(json!("first")));
    // init, assistant, result
    talk.running.block_until_lines(3);
    talk.running.signal(Signal::TERM);
    let run = talk.running.finish();
    run.code(143);
    run.check(results(&run).len() == 1, "one message, one result");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let sandbox = Sandbox::new();
    let run = sandbox.peri(["-p", "--input-format", "stream-json"]).run();
    run.code(2).stderr_has("hint: add --output-format stream-json");
    let run = sandbox.peri(LINE.into_iter().chain(["x"])).run();
    run.code(2).stderr_has("--input-format");
}
