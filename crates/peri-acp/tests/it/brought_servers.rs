//! MCP servers that a client brings: their tools, their prompts as commands, their questions to the person.

use peri_testkit::acp_driver::{AcpDriver, FormAnswer, Permission, Prompted};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::world::{CWD, Served, World};

const WITH_FORMS: &str = r#"{"clientCapabilities": {"elicitation": {"form": {}}}, "_meta": {"peri": {"events": 1}}}"#;

fn lends() -> FakeModel {
    FakeModel::new([FakeAnswer::calls(&[("call-1", "mcp__books__lend", json!({}))]), FakeAnswer::text("Done.")])
}

async fn client_of(world: &World, initialize: &str) -> (AcpDriver, Served) {
    let (mut client, served) = world.connect();
    client.initialize_with(serde_json::from_str(initialize).expect("JSON")).await;
    let server = json!({"name": "books", "command": "/bin/books", "args": [], "env": []});
    let answer = client.must("session/new", json!({"cwd": CWD, "mcpServers": [server]})).await;
    let tools = answer["_meta"]["peri"]["tools"].as_array().expect("tools");
    assert!(tools.contains(&json!("mcp__books__lend")), "{tools:?}");
    client.use_session(answer["sessionId"].as_str().unwrap_or_default());
    (client, served)
}

/// What the server was answered, as the model was shown it.
fn borrowed(prompted: &Prompted) -> Value {
    let step = prompted.events.iter().find(|event| event["type"] == "step_committed").expect("a step");
    let text = step["results"][0]["content"][0]["text"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no answer to the server: {step}"))
}

fn forms(client: &AcpDriver) -> Vec<Value> {
    let is_form = |message: &&Value| message["method"] == "elicitation/create";
    client.frames().iter().map(|frame| &frame.message).filter(is_form).cloned().collect()
}

#[tokio::test]
async fn a_question_of_a_server_reaches_the_person_and_its_answer_the_server() {
    for (answer, expected) in [
        (FormAnswer::Accept(json!({"name": "Ada"})), json!({"action": "accept", "content": {"name": "Ada"}})),
        (FormAnswer::Decline, json!({"action": "decline"})),
    ] {
        let world = World::new([lends()]);
        let (mut client, _served) = client_of(&world, WITH_FORMS).await;
        client.on_permission([Permission::Choose("allow_once")]);
        client.on_form([answer]);
        let prompted = client.prompt("lend it").await;
        assert_eq!(borrowed(&prompted), expected);
        let form = forms(&client).remove(0);
        assert_eq!(form["params"]["mode"], "form");
        assert_eq!(form["params"]["message"], "The MCP server `books` asks: Who borrows it?");
        assert_eq!(form["params"]["requestedSchema"]["required"], json!(["name"]));
    }
}

#[tokio::test]
async fn a_client_that_shows_no_forms_is_sent_none() {
    for initialize in [
        r#"{"_meta": {"peri": {"events": 1}}}"#,
        r#"{"clientCapabilities": {"elicitation": {"url": {}}}, "_meta": {"peri": {"events": 1}}}"#,
    ] {
        let world = World::new([lends()]);
        let (mut client, _served) = client_of(&world, initialize).await;
        client.on_permission([Permission::Choose("allow_once")]);
        let prompted = client.prompt("lend it").await;
        assert_eq!(borrowed(&prompted), json!({"action": "cancel"}));
        assert_eq!(forms(&client), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn a_cancel_while_a_form_is_open_withdraws_it() {
    let world = World::new([lends()]);
    let (mut client, _served) = client_of(&world, WITH_FORMS).await;
    client.on_permission([Permission::Choose("allow_once")]);
    client.on_form([FormAnswer::Silence]);
    let pending = client.start_prompt("lend it").await;
    let form = client.wait_for("a form", |message| message["method"] == "elicitation/create").await;
    client.cancel().await;
    assert_eq!(client.finish(pending).await.stop_reason(), "cancelled");
    let withdrawal = client.wait_for("a withdrawal", |message| message["method"] == "$/cancel_request").await;
    assert_eq!(withdrawal["params"]["requestId"], form["id"]);
}

#[tokio::test]
async fn prompts_of_a_server_are_commands_that_are_told_after_the_answer() {
    let model = FakeModel::new([FakeAnswer::text("A fine book.")]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = client_of(&world, "{}").await;
    let told = client
        .wait_for("the commands", |message| message["params"]["update"]["sessionUpdate"] == "available_commands_update")
        .await;
    assert_eq!(
        told["params"]["update"]["availableCommands"],
        json!([{"name": "mcp__books__review", "description": "Reviews a book.", "input": {"hint": "<title>"}}])
    );
    let position = |fits: &dyn Fn(&Value) -> bool| client.frames().iter().position(|frame| fits(&frame.message));
    let answered = position(&|message| message["result"]["sessionId"].is_string());
    assert!(answered.is_some() && answered < position(&|message| message["method"] == "session/update"));

    client.prompt("/mcp__books__review Emma").await;
    let asked = format!("{:?}", model.requests()[0].messages);
    assert!(asked.contains("/mcp__books__review Emma") && asked.contains("Please review this book."), "{asked}");

    let failed = client.prompt("/mcp__books__review").await;
    assert_eq!((failed.error().code, failed.error().data["kind"].as_str()), (-32603, Some("command")));
}
