//! Stored sessions: listed, told again, gone on with.

use peri_acp_types::{AssistantPart, ModelStop, Thought};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::world::{CWD, World};

fn thinks_and_calls() -> FakeAnswer {
    let FakeAnswer::Says { mut parts, .. } = FakeAnswer::calls(&[("call-1", "Fly", json!({"to": "moon"}))]) else {
        panic!("calls are parts");
    };
    parts.insert(0, AssistantPart::Thought(Thought { text: "Hm.".to_owned(), ..Thought::default() }));
    FakeAnswer::Says { parts, stop: ModelStop::ToolUse }
}

#[tokio::test]
async fn loading_tells_the_history_then_answers_and_the_session_goes_on() {
    let models = [
        FakeModel::new([thinks_and_calls(), FakeAnswer::text("No wings.")]),
        FakeModel::new([FakeAnswer::text("Still none.")]),
    ];
    let world = World::new(models.clone());
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    let live = client.prompt("fly").await;
    assert_eq!(
        live.kinds(),
        [
            "session_info_update",
            "agent_thought_chunk",
            "tool_call",
            "usage_update",
            "tool_call_update",
            "agent_message_chunk",
            "usage_update",
            "session_info_update"
        ]
    );
    client.must("session/close", json!({"sessionId": session})).await;

    let from = client.frames().len();
    let params = json!({"sessionId": session, "cwd": CWD, "mcpServers": []});
    let answer = client.must("session/load", params).await;
    assert_eq!(answer["_meta"]["peri"]["epoch"], 2);
    let told: Vec<&Value> = client.frames()[from..]
        .iter()
        .map(|frame| &frame.message["params"]["update"])
        .filter(|update| update.is_object())
        .collect();
    let kinds: Vec<&str> = told.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect();
    assert_eq!(kinds, ["user_message_chunk", "agent_thought_chunk", "tool_call", "agent_message_chunk"]);
    assert_eq!(told[0]["content"]["text"], "fly");
    assert_eq!(told[1]["content"]["text"], "Hm.");
    assert_eq!((&told[2]["title"], &told[2]["status"]), (&json!("Fly: moon"), &json!("failed")));
    assert_eq!(told[2].get("kind"), None, "no tool, no kind: `other` is what a client assumes");
    assert_eq!(told[2]["rawInput"], json!({"to": "moon"}));
    assert_eq!(told[3]["content"]["text"], "No wings.");
    assert_eq!(client.frames().last().map(|frame| frame.message["id"].is_u64()), Some(true), "the answer comes last");

    client.use_session(&session);
    assert_eq!(client.prompt("really?").await.text(), "Still none.");
    let request = models[1].requests().remove(0);
    assert_eq!(request.messages.len(), 5, "the model is shown the history too: {:?}", request.messages);
}

#[tokio::test]
async fn a_call_of_the_past_has_the_kind_that_its_tool_has_now() {
    const LENT: &str = "mcp__books__lend";
    let calls = FakeAnswer::calls(&[
        ("call-1", "Read", json!({"file_path": "/project/a.rs"})),
        ("call-2", "Read", json!({"file_path": "/project/b.rs"})),
        ("call-3", "Edit", json!({"file_path": "/project/a.rs"})),
        ("call-4", LENT, json!({})),
    ]);
    let models = [FakeModel::new([calls, FakeAnswer::text("Done.")]), FakeModel::default(), FakeModel::default()];
    let world = World::new(models);
    let (mut client, _served) = world.connect();
    client.initialize_with(json!({"_meta": {"peri": {"interactive": false}}})).await;
    let books = json!([{"name": "books", "command": "/bin/books", "args": [], "env": []}]);
    let session = client.must("session/new", json!({"cwd": CWD, "mcpServers": books.clone()})).await;
    let session = session["sessionId"].as_str().expect("an id").to_owned();
    client.use_session(&session);
    let live = client.prompt("go").await;
    let announced = live.updates.iter().filter(|update| update["sessionUpdate"] == "tool_call");
    let live: Vec<Value> = announced.map(kind_of_call).collect();
    let expected = [json!(["Read", "read"]), json!(["Read", "read"]), json!(["Edit", "edit"]), json!([LENT, null])];
    assert_eq!(live, expected);

    // The second time without the server: its tool is gone, and the call is told all the same.
    for servers in [books, json!([])] {
        client.must("session/close", json!({"sessionId": session})).await;
        let from = client.frames().len();
        client.must("session/load", json!({"sessionId": session, "cwd": CWD, "mcpServers": servers})).await;
        let told = client.frames()[from..].iter().map(|frame| &frame.message["params"]["update"]);
        let told: Vec<Value> = told.filter(|update| update["sessionUpdate"] == "tool_call").map(kind_of_call).collect();
        assert_eq!(told, expected);
    }
}

/// Name and kind.
fn kind_of_call(update: &Value) -> Value {
    json!([update["name"], update["kind"]])
}

#[tokio::test]
async fn resuming_tells_nothing_of_the_past() {
    let world = World::new([FakeModel::new([FakeAnswer::text("One.")]), FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    client.prompt("hello").await;
    client.must("session/close", json!({"sessionId": session})).await;
    let from = client.frames().len();
    client.must("session/resume", json!({"sessionId": session, "cwd": CWD})).await;
    let told = client.frames()[from..].iter().filter(|frame| frame.message["method"] == "session/update").count();
    assert_eq!(told, 0);
}

#[tokio::test]
async fn a_session_belongs_to_its_directory() {
    let world = World::new([FakeModel::default(), FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    client.must("session/close", json!({"sessionId": session})).await;
    let params = json!({"sessionId": session, "cwd": "/elsewhere", "mcpServers": []});
    let error = client.request("session/load", params).await.expect_err("another directory");
    assert_eq!(error.code, -32602);
    assert!(error.message.contains(CWD), "{}", error.message);
}

#[tokio::test]
async fn sessions_are_listed_by_directory() {
    let models = [FakeModel::new([FakeAnswer::text("ok")]), FakeModel::default()];
    let world = World::new(models);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let here = client.new_session(CWD).await;
    client.prompt("fix the tests\nplease").await;
    client.new_session("/other").await;

    let all = client.must("session/list", json!({})).await;
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(2));
    let ours = client.must("session/list", json!({"cwd": CWD})).await;
    let [session] = ours["sessions"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        panic!("one session: {ours}");
    };
    assert_eq!(session["sessionId"], json!(here));
    assert_eq!(session["cwd"], CWD);
    assert_eq!(session["title"], "fix the tests");
    assert!(session["updatedAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{session}");
}
