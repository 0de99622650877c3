//! What a client is told of the agent, and what it is told when it asks for nonsense.

use peri_testkit::fake_model::FakeModel;
use serde_json::{Value, json};

use crate::world::{CWD, World};

#[tokio::test]
async fn the_agent_says_what_it_can_do() {
    let world = World::new([]);
    let (mut client, _served) = world.connect();
    let answer = client.initialize_with(json!({"_meta": {"peri": {"events": 1, "interactive": false}}})).await;

    assert_eq!(answer["protocolVersion"], 1);
    assert_eq!(answer["agentInfo"]["name"], "peri");
    assert_eq!(answer["_meta"]["peri"], json!({"events": 1, "version": env!("CARGO_PKG_VERSION")}));
    let capabilities = &answer["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(capabilities["promptCapabilities"]["image"], true);
    assert_eq!(capabilities["promptCapabilities"]["embeddedContext"], true);
    assert_eq!(capabilities["mcpCapabilities"], json!({"http": true, "sse": false}));
    assert_eq!(answer["authMethods"], json!([]), "a key is there, or none is needed");
    for offered in ["list", "resume", "close", "delete"] {
        assert!(capabilities["sessionCapabilities"][offered].is_object(), "{offered}: {capabilities}");
    }
}

#[tokio::test]
async fn nothing_works_before_initialize() {
    let world = World::new([]);
    let (mut client, _served) = world.connect();
    for (method, params) in [
        ("session/new", json!({"cwd": CWD, "mcpServers": []})),
        ("session/prompt", json!({"sessionId": "x", "prompt": []})),
    ] {
        let error = client.request(method, params).await.expect_err("not yet");
        assert_eq!(error.code, -32600, "{method}: {error:?}");
    }
    client.initialize().await;
}

/// A request that is at fault, the code that answers it, and a part of the text.
async fn check(method: &str, params: Value, code: i64, part: &str) {
    let world = World::new([FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let error = client.request(method, params).await.expect_err("an error");
    assert_eq!(error.code, code, "{method}: {error:?}");
    let said = format!("{} {}", error.message, error.data);
    assert!(said.contains(part), "{method}: `{part}` is not in `{said}`");
}

#[tokio::test]
async fn mistakes_are_named_with_their_code() {
    let stranger = "01234567-89ab-7def-8123-456789abcdef";
    let text = json!([{"type": "text", "text": "hello"}]);
    check("session/fly", json!({}), -32601, "session/fly").await;
    check("session/set_mode", json!({"sessionId": stranger, "modeId": "bypass"}), -32002, stranger).await;
    let option = json!({"sessionId": stranger, "configId": "mode", "value": "bypass"});
    check("session/set_config_option", option, -32002, stranger).await;
    check("authenticate", json!({"methodId": "key"}), -32602, "`provider-key`").await;
    check("logout", json!({}), -32601, "logout").await;
    check("session/new", json!({"cwd": 7}), -32602, "").await;
    check("session/new", json!({"cwd": "here", "mcpServers": []}), -32602, "absolute").await;
    let wanted = json!({"cwd": CWD, "mcpServers": [], "_meta": {"peri": {"sessionId": "seven"}}});
    check("session/new", wanted, -32602, "seven").await;
    let more = json!({"cwd": CWD, "mcpServers": [], "additionalDirectories": ["/more"]});
    check("session/new", more, -32602, "additionalDirectories").await;
    check("session/prompt", json!({"sessionId": stranger, "prompt": text}), -32002, stranger).await;
    check("session/prompt", json!({"sessionId": "no-uuid", "prompt": text}), -32002, "no-uuid").await;
    check("session/prompt", json!({"prompt": text}), -32602, "").await;
    check("session/load", json!({"sessionId": stranger, "cwd": CWD, "mcpServers": []}), -32002, stranger).await;
    check("session/resume", json!({"sessionId": stranger, "cwd": CWD}), -32002, stranger).await;
    check("session/close", json!({"sessionId": stranger}), -32002, stranger).await;
    check("session/list", json!({"cwd": "here"}), -32602, "absolute").await;
    check("session/list", json!({"cursor": "nowhere"}), -32602, "nowhere").await;
    let server = json!({"type": "sse", "name": "old", "url": "http://127.0.0.1:9", "headers": []});
    check("session/new", json!({"cwd": CWD, "mcpServers": [server]}), -32602, "`old`").await;
}

#[tokio::test]
async fn a_prompt_that_cannot_be_taken_is_refused_and_the_session_goes_on() {
    let world = World::new([FakeModel::new([peri_testkit::fake_model::FakeAnswer::text("fine")])]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    for prompt in [
        json!([]),
        json!([{"type": "text", "text": "  "}]),
        json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
        json!([{"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AA=="}}]),
        json!([{"type": "image", "mimeType": "image/png", "data": "no base64"}]),
    ] {
        let params = json!({"sessionId": session, "prompt": prompt});
        let error = client.request("session/prompt", params).await.expect_err("an error");
        assert_eq!(error.code, -32602, "{error:?}");
    }
    assert_eq!(client.prompt("hello").await.text(), "fine");
}

#[tokio::test]
async fn settings_that_need_mending_are_told_apart() {
    let world = World::with_settings(r#"{"model": 7}"#, []);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let error =
        client.request("session/new", json!({"cwd": CWD, "mcpServers": []})).await.expect_err("settings are broken");
    assert_eq!(error.code, -32011);
    assert_eq!(error.data["kind"], "configuration");
    assert!(error.message.contains("/home/settings.json") && error.message.contains("model"), "{}", error.message);
}

#[tokio::test]
async fn a_new_session_says_what_it_is() {
    let world = World::new([FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let wanted = "01234567-89ab-7def-8123-456789abcdef";
    let params = json!({"cwd": CWD, "mcpServers": [], "_meta": {"peri": {"sessionId": wanted}}});
    let answer = client.must("session/new", params.clone()).await;

    assert_eq!(answer["sessionId"], wanted);
    let facts = &answer["_meta"]["peri"];
    assert_eq!(facts["sessionId"], wanted);
    assert_eq!(facts["epoch"], 1);
    assert_eq!(facts["cwd"], CWD);
    assert_eq!(facts["model"], "fake/model");
    assert_eq!(facts["permissionMode"], "default");
    assert_eq!(facts["persistent"], false);
    assert!(facts["tools"].is_array());

    let error = client.request("session/new", params).await.expect_err("the id is taken");
    assert_eq!((error.code, error.data["kind"].as_str()), (-32602, Some("session-open")));
}
