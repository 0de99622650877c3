//! One example of each frame, as it is really sent, beside the repository's own: `fixtures/acp`, and the page that shows them.
//!
//! `PERI_WRITE_FIXTURES=1` writes both anew; what has changed is then for the author to judge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use peri_acp_types::{AssistantPart, ModelFailureKind, ModelStop, Thought, ToolArguments, ToolCall, ToolCallId};
use peri_testkit::acp_driver::{AcpDriver, Direction, FormAnswer, Frame, Permission};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use peri_testkit::snapshot::steady;
use serde_json::{Value, json};

use crate::world::{CWD, World};

const BEGIN: &str = "<!-- examples: begin -->\n";
const END: &str = "<!-- examples: end -->";

/// A warning comes with these: a key in plain text.
const SETTINGS: &str = r#"{"model": "mine/large", "providers": {"mine": {"protocol": "anthropic",
    "baseUrl": "http://127.0.0.1:9", "apiKey": "secret", "models": {"large": {}, "small": {}}}}}"#;
const NO_KEY: &str = r#"{"model": "mine/large", "providers": {"mine": {"protocol": "anthropic",
    "baseUrl": "http://127.0.0.1:9", "apiKeyEnv": "MINE_API_KEY"}}}"#;

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Examples by name: messages, each with whose it is.
#[derive(Default)]
struct Examples(BTreeMap<String, Value>);

impl Examples {
    fn add<'a>(&mut self, name: &str, frames: impl IntoIterator<Item = &'a Frame>) {
        let told = frames.into_iter().map(|frame| match frame.direction {
            Direction::Sent => json!({"from": "client", "message": frame.message}),
            Direction::Received => json!({"from": "agent", "message": frame.message}),
        });
        let told: Value = told.collect();
        assert!(told.as_array().is_some_and(|told| !told.is_empty()), "{name}: no such frame");
        self.0.insert(name.to_owned(), steady(&told));
    }

    /// The first request that fits, and its answer.
    fn exchange(&mut self, client: &AcpDriver, name: &str, fits: impl Fn(&Value) -> bool) {
        let frames = client.frames();
        let request = frames.iter().position(|frame| frame.message.get("method").is_some() && fits(&frame.message));
        let Some(request) = request.and_then(|position| frames.get(position)) else {
            panic!("{name}: no such request")
        };
        let answers = |frame: &&Frame| {
            frame.direction != request.direction
                && frame.message["id"] == request.message["id"]
                && frame.message.get("method").is_none()
        };
        self.add(name, [request].into_iter().chain(frames.iter().find(answers)));
    }

    /// The first request of this method, and its answer.
    fn method(&mut self, client: &AcpDriver, method: &str) {
        self.exchange(client, &method.replace('/', "-"), |message| message["method"] == method);
    }

    /// The first message of the agent that fits.
    fn message(&mut self, client: &AcpDriver, name: &str, fits: impl Fn(&Value) -> bool) {
        let of_agent = |frame: &&Frame| frame.direction == Direction::Received && fits(&frame.message);
        self.add(name, client.frames().iter().find(of_agent));
    }

    /// The first update that fits.
    fn update(&mut self, client: &AcpDriver, name: &str, fits: impl Fn(&Value) -> bool) {
        self.message(client, &format!("update-{name}"), |message| fits(&message["params"]["update"]));
    }
}

fn edits() -> FakeAnswer {
    let call = ToolCall {
        id: ToolCallId("call-1".to_owned()),
        name: "Edit".to_owned(),
        arguments: ToolArguments::Object(serde_json::Map::from_iter([(
            "file_path".to_owned(),
            json!("/project/a.rs"),
        )])),
    };
    let thought = Thought { text: "It is in a.rs.".to_owned(), ..Thought::default() };
    let parts = vec![AssistantPart::Thought(thought), AssistantPart::ToolCall(call)];
    FakeAnswer::Says { parts, stop: ModelStop::ToolUse }
}

/// A client of an editor: no extension, forms, notices.
async fn an_editor(examples: &mut Examples) {
    let models = [
        FakeModel::new([
            edits(),
            FakeAnswer::text("Fixed."),
            FakeAnswer::calls(&[("call-2", "mcp__books__lend", json!({}))]),
            FakeAnswer::text("Lent."),
            FakeAnswer::calls(&[("call-3", "Bash", json!({"command": "make test"}))]),
        ])
        .named("mine/large"),
        FakeModel::new([FakeAnswer::failure(ModelFailureKind::Auth, "")]).named("mine/small"),
        FakeModel::default().named("mine/large"),
        FakeModel::default().named("mine/large"),
    ];
    let world = World::with_settings(SETTINGS, models);
    let (mut client, _served) = world.connect();
    client
        .initialize_with(json!({
            "clientCapabilities": {"elicitation": {"form": {}}, "session": {"notices": {}}},
            "clientInfo": {"name": "an-editor", "version": "1"},
        }))
        .await;
    let server = json!({"name": "books", "command": "/bin/books", "args": [], "env": []});
    let answer = client.must("session/new", json!({"cwd": CWD, "mcpServers": [server]})).await;
    let session = answer["sessionId"].as_str().unwrap_or_default().to_owned();
    client.use_session(&session);

    let allow = Permission::Choose("allow_once");
    client.on_permission([allow.clone(), allow, Permission::Silence]);
    client.on_form([FormAnswer::Accept(json!({"name": "Ada"}))]);
    client.prompt("Fix the typo").await;
    client.prompt("Lend me a book").await;

    let waiting = client.start_prompt("Run the tests").await;
    client.wait_for("the question", |message| message["params"]["toolCall"]["toolCallId"] == "call-3").await;
    let close = json!({"sessionId": session});
    client.request("session/close", close.clone()).await.expect_err("a turn runs");
    examples.exchange(&client, "error-close-incomplete", |message| message["method"] == "session/close");
    client.cancel().await;
    client.finish(waiting).await;

    let choice = json!({"sessionId": session, "configId": "effort", "value": "high"});
    client.must("session/set_config_option", choice).await;
    client.must("session/set_mode", json!({"sessionId": session, "modeId": "accept-edits"})).await;
    client.wait_for("the mode", |message| !message["params"]["update"]["currentModeId"].is_null()).await;
    let choice = json!({"sessionId": session, "configId": "model", "value": "mine/small"});
    client.must("session/set_config_option", choice).await;
    client.prompt("Go on").await.error();
    examples.exchange(&client, "error-turn-failed", |message| message["params"]["prompt"][0]["text"] == "Go on");
    client
        .request("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}))
        .await
        .expect_err("no such mode");
    examples.exchange(&client, "error-invalid-params", |message| message["params"]["modeId"] == "yolo");

    let closing = client.frames().len();
    client.must("session/close", close.clone()).await;
    let closed: Vec<Frame> = client.frames()[closing..].to_vec();
    examples.add("session-close", closed.iter().filter(|frame| frame.message["method"] != "session/update"));
    client.must("session/list", json!({"cwd": CWD})).await;
    client.must("session/load", json!({"sessionId": session, "cwd": CWD, "mcpServers": []})).await;
    client.must("session/close", close.clone()).await;
    client.must("session/resume", json!({"sessionId": session, "cwd": CWD, "mcpServers": []})).await;
    client.must("session/delete", close.clone()).await;
    client.request("session/close", close).await.expect_err("it is gone");
    client.request("logout", json!({})).await.expect_err("not offered");

    for method in [
        "initialize",
        "session/new",
        "session/prompt",
        "session/request_permission",
        "elicitation/create",
        "session/set_config_option",
        "session/set_mode",
        "session/list",
        "session/load",
        "session/resume",
        "session/delete",
    ] {
        examples.method(&client, method);
    }
    let cancel = |frame: &&Frame| frame.message["method"] == "session/cancel";
    examples.add("session-cancel", client.frames().iter().find(cancel));
    examples.message(&client, "cancel_request", |message| message["method"] == "$/cancel_request");
    examples.message(&client, "error-session-not-found", |message| message["error"]["code"] == -32002);
    examples.message(&client, "error-method-not-found", |message| message["error"]["code"] == -32601);
    for kind in [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "usage_update",
        "session_info_update",
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "notice",
    ] {
        examples.update(&client, kind, |update| update["sessionUpdate"] == kind);
    }
    let of_call = |update: &Value| update["sessionUpdate"] == "tool_call_update" && update["toolCallId"] == "call-1";
    examples.update(&client, "tool_call_update-started", |update| of_call(update) && update.get("rawInput").is_some());
    examples.update(&client, "tool_call_update-allowed", |update| of_call(update) && update.get("rawInput").is_none());
    examples.update(&client, "tool_call_update-completed", |update| of_call(update) && update["status"] == "completed");
}

/// A client that takes Peri's events.
async fn a_client_of_ours(examples: &mut Examples) {
    let model = FakeModel::new([
        FakeAnswer::failure(ModelFailureKind::Overloaded, "Hel"),
        FakeAnswer::calls(&[("call-1", "Read", json!({"file_path": "/project/a.rs"}))]),
        FakeAnswer::text("Hello."),
    ]);
    let world = World::with_settings(
        &SETTINGS.replacen('{', r#"{"retry": {"firstDelaySeconds": 0.0001, "maxDelaySeconds": 0.0001},"#, 1),
        [model.named("mine/large")],
    );
    let (mut client, _served) = world.connect();
    client.initialize_with(json!({"_meta": {"peri": {"events": 1, "interactive": false}}})).await;
    let wanted = "01234567-89ab-7def-8123-456789abcdef";
    let params = json!({"cwd": CWD, "mcpServers": [], "_meta": {"peri": {"sessionId": wanted}}});
    client.must("session/new", params).await;
    client.use_session(wanted);
    client.prompt("Read it").await;
    examples.exchange(&client, "peri-initialize", |message| message["method"] == "initialize");
    examples.exchange(&client, "peri-session-new", |message| message["method"] == "session/new");
    for kind in
        ["turn_started", "attempt_started", "attempt_failed", "llm_call_end", "step_committed", "notice", "turn_ended"]
    {
        examples.message(&client, &format!("peri-event-{kind}"), |message| {
            message["method"] == "_peri/event" && message["params"]["type"] == kind
        });
    }
}

async fn a_user_without_a_key(examples: &mut Examples) {
    let world = World::with_settings(NO_KEY, []);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.request("session/new", json!({"cwd": CWD, "mcpServers": []})).await.expect_err("no key");
    world.change_settings(SETTINGS);
    client.must("authenticate", json!({"methodId": "provider-key"})).await;
    examples.exchange(&client, "initialize-without-key", |message| message["method"] == "initialize");
    examples.exchange(&client, "error-authentication-required", |message| message["method"] == "session/new");
    examples.method(&client, "authenticate");
}

#[tokio::test]
async fn every_frame_is_as_the_repository_shows_it() {
    let mut examples = Examples::default();
    an_editor(&mut examples).await;
    a_client_of_ours(&mut examples).await;
    a_user_without_a_key(&mut examples).await;
    let fixtures = repository("fixtures/acp");
    let page = repository("docs/protocol/acp.md");
    if std::env::var_os("PERI_WRITE_FIXTURES").is_some() {
        write(&examples, &fixtures, &page);
    }
    let shown = std::fs::read_to_string(&page).expect("the page");
    for (name, told) in &examples.0 {
        let file = fixtures.join(format!("{name}.json"));
        let expected: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap_or_default()).unwrap_or_default();
        assert!(*told == expected, "{}\n{}\nis now\n{told:#}", file.display(), expected);
        assert!(shown.contains(&section(name, told)), "{} does not show {name} as it is", page.display());
    }
    let kept = std::fs::read_dir(&fixtures).expect("the folder").filter_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        name.strip_suffix(".json").map(str::to_owned)
    });
    for name in kept {
        assert!(examples.0.contains_key(&name), "fixtures/acp/{name}.json is sent by nobody any more");
    }
}

fn write(examples: &Examples, fixtures: &Path, page: &Path) {
    std::fs::create_dir_all(fixtures).expect("the folder");
    for (name, told) in &examples.0 {
        std::fs::write(fixtures.join(format!("{name}.json")), format!("{told:#}\n")).expect("written");
    }
    let shown = std::fs::read_to_string(page).expect("the page");
    let (before, rest) = shown.split_once(BEGIN).expect("where examples begin");
    let (_, after) = rest.split_once(END).expect("where examples end");
    let sections: String = examples.0.iter().map(|(name, told)| section(name, told)).collect();
    std::fs::write(page, format!("{before}{BEGIN}{sections}{END}{after}")).expect("written");
}

/// The example as the page shows it: a message a line.
fn section(name: &str, told: &Value) -> String {
    let line = |told: &Value| match told["from"].as_str() {
        Some("client") => format!("→ {}\n", told["message"]),
        _ => format!("← {}\n", told["message"]),
    };
    let lines: String = told.as_array().into_iter().flatten().map(line).collect();
    format!("\n`{name}`\n\n```text\n{lines}```\n")
}
