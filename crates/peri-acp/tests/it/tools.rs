//! Turns with tools, and the question whether one may run.

use peri_testkit::acp_driver::{AcpDriver, Direction, Permission, Prompted};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::world::{CWD, Served, World};

/// A model that makes one call and then says what came of it.
fn calls(tool: &str, arguments: Value) -> FakeModel {
    FakeModel::new([FakeAnswer::calls(&[("call-1", tool, arguments)]), FakeAnswer::text("Done.")])
}

async fn client_of(world: &World) -> (AcpDriver, Served) {
    let (mut client, served) = world.connect();
    client.initialize_with_events().await;
    client.new_session(CWD).await;
    (client, served)
}

/// The updates of the one call, less the chunks.
fn told_of_call(prompted: &Prompted) -> Vec<&Value> {
    prompted.updates.iter().filter(|update| update["toolCallId"] == "call-1").collect()
}

/// The result that the model was shown.
fn result_of(prompted: &Prompted) -> &Value {
    let step = prompted.events.iter().find(|event| event["type"] == "step_committed").expect("a step");
    &step["results"][0]
}

fn questions(client: &AcpDriver) -> Vec<Value> {
    let asked = |message: &Value| message["method"] == "session/request_permission";
    client.frames().iter().filter(|frame| asked(&frame.message)).map(|frame| frame.message["params"].clone()).collect()
}

#[tokio::test]
async fn a_call_is_announced_started_and_finished() {
    let model = calls("Read", json!({"file_path": "/project/a.rs"}));
    let world = World::new([model.clone()]);
    let (mut client, _served) = client_of(&world).await;
    let prompted = client.prompt("read it").await;

    let [announced, started, finished] = told_of_call(&prompted)[..] else {
        panic!("three updates: {:?}", prompted.updates);
    };
    assert_eq!(announced["sessionUpdate"], "tool_call");
    assert_eq!((&announced["kind"], &announced["name"]), (&json!("read"), &json!("Read")));
    assert_eq!((&started["sessionUpdate"], &started["status"]), (&json!("tool_call_update"), &json!("in_progress")));
    assert_eq!(started["title"], "Read: a.rs");
    assert_eq!(started["rawInput"], json!({"file_path": "/project/a.rs"}));
    assert_eq!(started["locations"], json!([{"path": "/project/a.rs"}]));
    assert_eq!(finished["status"], "completed");
    assert_eq!(finished["content"], json!([{"type": "content", "content": {"type": "text", "text": "the file"}}]));
    assert_eq!(finished["rawOutput"], json!({"isError": false, "text": "the file"}));
    assert_eq!(result_of(&prompted)["isError"], false);
    assert!(prompted.text().ends_with("Done."));
    assert_eq!(questions(&client), Vec::<Value>::new(), "reading inside the workspace is not asked about");
    model.check_invariants();
}

#[tokio::test]
async fn a_new_session_names_its_tools() {
    let world = World::new([FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let answer = client.must("session/new", json!({"cwd": CWD, "mcpServers": []})).await;
    assert_eq!(answer["_meta"]["peri"]["tools"], json!(["Read", "Edit", "Bash"]));
}

/// Answers the question about `make test` so, and gives what the model was shown.
async fn check_answer(answer: Permission, runs: bool) {
    let model = calls("Bash", json!({"command": "make test"}));
    let world = World::new([model.clone()]);
    let (mut client, _served) = client_of(&world).await;
    client.on_permission([answer.clone()]);
    let prompted = client.prompt("test it").await;

    let result = result_of(&prompted);
    assert_eq!(result["isError"], json!(!runs), "{answer:?}: {result}");
    assert_eq!(result["content"][0]["text"] == "ran make test", runs, "{answer:?}: {result}");
    let status = if runs { "completed" } else { "failed" };
    assert_eq!(told_of_call(&prompted).last().map(|told| &told["status"]), Some(&json!(status)));
    assert_eq!(prompted.stop_reason(), "end_turn");
    model.check_invariants();
}

#[tokio::test]
async fn a_call_runs_only_where_the_client_allows_it() {
    check_answer(Permission::Choose("allow_once"), true).await;
    check_answer(Permission::Choose("allow_always"), true).await;
    check_answer(Permission::Choose("reject_once"), false).await;
    check_answer(Permission::Choose("reject_always"), false).await;
    check_answer(Permission::Cancelled, false).await;
    check_answer(Permission::Fail, false).await;
    check_answer(Permission::ChooseId("surely"), false).await;
}

#[tokio::test]
async fn the_question_comes_after_the_call_and_shows_what_always_would_mean() {
    let world = World::new([calls("Bash", json!({"command": "make test"}))]);
    let (mut client, _served) = client_of(&world).await;
    client.on_permission([Permission::Choose("allow_once")]);
    client.prompt("test it").await;

    let position = |fits: &dyn Fn(&Value) -> bool| {
        client.frames().iter().position(|frame| frame.direction == Direction::Received && fits(&frame.message))
    };
    let shown = position(&|message| message["params"]["update"]["status"] == "in_progress");
    let asked = position(&|message| message["method"] == "session/request_permission");
    assert!(shown.is_some() && shown < asked, "shown at {shown:?}, asked at {asked:?}");

    let question = questions(&client).remove(0);
    assert_eq!(question["toolCall"]["toolCallId"], "call-1");
    assert_eq!(question["toolCall"]["kind"], "execute");
    assert_eq!(question["toolCall"]["rawInput"], json!({"command": "make test"}));
    let rules = question["_meta"]["peri"]["alwaysRules"].as_array().expect("rules");
    assert!(!rules.is_empty() && rules.iter().all(|rule| rule.as_str().is_some_and(|rule| rule.starts_with("Bash("))));
    let options = question["options"].as_array().expect("options");
    let kinds: Vec<&Value> = options.iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    let always = options[1]["name"].as_str().unwrap_or_default();
    assert!(always.contains(rules[0].as_str().expect("text")), "`{always}` does not show {rules:?}");
}

#[tokio::test]
async fn where_nobody_can_answer_nobody_is_asked() {
    let model = calls("Bash", json!({"command": "make test"}));
    let world = World::new([model]);
    let (mut client, _served) = world.connect();
    client.initialize_with(json!({"_meta": {"peri": {"events": 1, "interactive": false}}})).await;
    client.new_session(CWD).await;
    let prompted = client.prompt("test it").await;
    assert_eq!(questions(&client), Vec::<Value>::new());
    let result = result_of(&prompted);
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("it needs permission, and nobody is there to be asked. Why"), "{text}");
}

#[tokio::test]
async fn a_cancel_while_the_question_is_open_withdraws_it() {
    let model = calls("Bash", json!({"command": "make test"}));
    let world = World::new([model.clone()]);
    let (mut client, _served) = client_of(&world).await;
    client.on_permission([Permission::Silence]);
    let pending = client.start_prompt("test it").await;
    let question = client.wait_for("a question", |message| message["method"] == "session/request_permission").await;
    client.cancel().await;
    let prompted = client.finish(pending).await;

    assert_eq!(prompted.stop_reason(), "cancelled");
    assert_eq!(result_of(&prompted)["isError"], true, "the call has its result all the same");
    let withdrawal = client.wait_for("a withdrawal", |message| message["method"] == "$/cancel_request").await;
    assert_eq!(withdrawal["params"]["requestId"], question["id"]);
}

#[tokio::test]
async fn a_cancel_while_a_tool_hangs_ends_the_turn_with_a_result() {
    let model = calls("Bash", json!({"command": "hang"}));
    let world = World::new([model.clone()]);
    let (mut client, _served) = client_of(&world).await;
    client.on_permission([Permission::Choose("allow_once")]);
    let pending = client.start_prompt("hang").await;
    client
        .wait_for("the answer to the question", |message| message["params"]["update"]["status"] == "in_progress")
        .await;
    client.wait_for("a question", |message| message["method"] == "session/request_permission").await;
    client.cancel().await;
    let prompted = client.finish(pending).await;
    assert_eq!(prompted.stop_reason(), "cancelled");
    assert_eq!(told_of_call(&prompted).last().map(|told| &told["status"]), Some(&json!("failed")));
    model.then([FakeAnswer::text("Later.")]);
    client.prompt("go on").await;
    model.check_invariants();
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_is_asked_ends_its_session() {
    let world = World::new([calls("Bash", json!({"command": "make test"}))]);
    let (mut client, served) = client_of(&world).await;
    client.on_permission([Permission::Silence]);
    client.start_prompt("test it").await;
    client.wait_for("a question", |message| message["method"] == "session/request_permission").await;
    drop(client);
    served.end().await.expect("the connection ends in order");
}
