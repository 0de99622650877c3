//! A provider whose key is missing: what a client is told, and that it is looked for anew.

use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::world::{CWD, World};

const NO_KEY: &str = r#"{"model": "mine/model",
    "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9", "apiKeyEnv": "MY_KEY"}}}"#;
/// An endpoint of this machine that wants no key.
const WITHOUT_NEED: &str = r#"{"model": "mine/model",
    "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#;

fn new_session() -> Value {
    json!({"cwd": CWD, "mcpServers": []})
}

#[tokio::test]
async fn a_missing_key_is_told_with_its_mend() {
    let world = World::with_settings(NO_KEY, []);
    let (mut client, _served) = world.connect();
    let answer = client.initialize().await;
    let [method] = answer["authMethods"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        panic!("one method: {answer}");
    };
    assert_eq!(method["id"], "provider-key");
    assert!(method.get("type").is_none(), "the agent's own kind: {method}");
    let description = method["description"].as_str().unwrap_or_default();
    assert!(description.contains("MY_KEY"), "{description}");

    let stored = "01234567-89ab-7def-8123-456789abcdef";
    for (method, params) in [("session/new", new_session()), ("authenticate", json!({"methodId": "provider-key"}))] {
        let error = client.request(method, params).await.expect_err("the key is missing");
        assert_eq!(error.code, -32000, "{method}: {error:?}");
        assert!(error.message.contains("MY_KEY"), "{method}: {}", error.message);
    }
    let error = client.request("session/resume", json!({"sessionId": stored, "cwd": CWD})).await.expect_err("no key");
    assert_eq!(error.code, -32002, "a session that is not there needs no key to be missed");
}

#[tokio::test]
async fn a_key_that_came_meanwhile_is_found() {
    let world = World::with_settings(NO_KEY, [FakeModel::new([FakeAnswer::text("Hello.")])]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.request("session/new", new_session()).await.expect_err("the key is missing");
    world.change_settings(WITHOUT_NEED);
    client.must("authenticate", json!({"methodId": "provider-key"})).await;
    client.new_session(CWD).await;
    assert_eq!(client.prompt("hello").await.text(), "Hello.");
    let answer = client.initialize().await;
    assert_eq!(answer["authMethods"], json!([]));
}

#[tokio::test]
async fn a_stored_session_wants_the_key_too() {
    let world = World::with_settings(WITHOUT_NEED, [FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    client.must("session/close", json!({"sessionId": session})).await;
    world.change_settings(NO_KEY);
    for method in ["session/load", "session/resume"] {
        let params = json!({"sessionId": session, "cwd": CWD, "mcpServers": []});
        let error = client.request(method, params).await.expect_err("the key is missing");
        assert_eq!(error.code, -32000, "{method}: {error:?}");
    }
    client.must("session/list", json!({})).await;
}

#[tokio::test]
async fn settings_that_are_broken_are_no_missing_key() {
    let world = World::with_settings(r#"{"model": 7}"#, []);
    let (mut client, _served) = world.connect();
    let answer = client.initialize().await;
    assert_eq!(answer["authMethods"], json!([]));
    let error = client.request("authenticate", json!({"methodId": "provider-key"})).await.expect_err("broken");
    assert_eq!((error.code, error.data["kind"].as_str()), (-32011, Some("configuration")));
}
