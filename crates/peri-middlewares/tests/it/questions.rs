//! What servers ask of a session: roots, forms, and what is not offered.

use std::collections::BTreeMap;
use std::sync::Arc;

use peri_acp_types::ports::{McpServerSpec, McpTransport};
use peri_acp_types::{ElicitationAnswer, ToolOutput};
use peri_agent::Middleware;
use serde_json::{Value, json};

use crate::bridge::{Bridge, bridge, tool};
use crate::servers::{FakeConnector, FakeServer, Reply};

/// A bridge to a server that asks this when its tool is called, and answers the call with what it heard.
async fn asking(request: Value) -> (Bridge, Arc<FakeServer>) {
    let connector = FakeConnector::default();
    let server = FakeServer::with_tools(json!([tool("ask")]), move |_| Reply::Ask(request.clone()));
    let server = connector.add("docs", server);
    let spec = McpServerSpec {
        name: "docs".to_owned(),
        roots: vec!["/work".to_owned(), "/a b".to_owned()],
        hidden_env: Vec::new(),
        transport: McpTransport::Stdio { command: "x".to_owned(), args: Vec::new(), env: BTreeMap::new() },
    };
    (bridge(connector, vec![spec]).await, server)
}

async fn answer_to(bridge: &Bridge) -> Value {
    let output = bridge.call("mcp__docs__ask", json!({})).await;
    serde_json::from_str(&output.joined_text()).expect("what the server heard")
}

fn form(schema: Value) -> Value {
    json!({"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": schema}})
}

fn name_and_age() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "default": 30},
            "role": {"type": "string", "enum": ["a", "b"], "default": "b"},
        },
        "required": ["name"],
    })
}

#[tokio::test]
async fn roots_are_told_as_uris_and_sampling_is_not_offered() {
    let (bridge, server) = asking(json!({"method": "roots/list"})).await;
    let answer = answer_to(&bridge).await;
    assert_eq!(answer["result"]["roots"], json!([{"uri": "file:///work"}, {"uri": "file:///a%20b"}]));
    let params = server.hears("initialize").await["params"].clone();
    assert_eq!(params["capabilities"], json!({"roots": {}, "elicitation": {"form": {}}}));
    assert_eq!(params["protocolVersion"], "2025-11-25");

    let sampling = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    let (bridge, _server) = asking(sampling).await;
    assert_eq!(answer_to(&bridge).await["error"]["code"], -32601);
    let (bridge, _server) = asking(json!({"method": "ping"})).await;
    assert_eq!(answer_to(&bridge).await["result"], json!({}));
}

#[tokio::test]
async fn a_form_goes_to_the_person_and_what_is_missing_takes_its_default() {
    let (bridge, _server) = asking(form(name_and_age())).await;
    let content = json!({"name": "me", "age": 7}).as_object().expect("an object").clone();
    bridge.broker.forms.lock().unwrap().push_back(ElicitationAnswer::Accepted(content));
    let answer = answer_to(&bridge).await;
    assert_eq!(answer["result"], json!({"action": "accept", "content": {"name": "me", "age": 7, "role": "b"}}));
    let shown = bridge.broker.shown_forms.borrow();
    assert_eq!((shown[0].server.as_str(), shown[0].message.as_str()), ("docs", "Who are you?"));
    assert_eq!(shown[0].schema, name_and_age());
}

#[tokio::test]
async fn no_and_silence_are_told_apart() {
    let (bridge, _server) = asking(form(name_and_age())).await;
    bridge.broker.forms.lock().unwrap().extend([ElicitationAnswer::Declined, ElicitationAnswer::Cancelled]);
    assert_eq!(answer_to(&bridge).await["result"], json!({"action": "decline"}));
    assert_eq!(answer_to(&bridge).await["result"], json!({"action": "cancel"}));
}

#[tokio::test]
async fn a_form_of_a_newer_kind_is_passed_on_and_an_address_is_not() {
    let schema = json!({"type": "object", "properties": {"when": {"type": "moment", "default": "now"}}});
    let (bridge, _server) = asking(form(schema.clone())).await;
    bridge.broker.forms.lock().unwrap().push_back(ElicitationAnswer::Accepted(Default::default()));
    assert_eq!(answer_to(&bridge).await["result"], json!({"action": "accept", "content": {"when": "now"}}));
    assert_eq!(bridge.broker.shown_forms.borrow()[0].schema, schema);

    let params = json!({"mode": "url", "message": "Go", "url": "http://localhost/", "elicitationId": "1"});
    let (bridge, _server) = asking(json!({"method": "elicitation/create", "params": params})).await;
    assert_eq!(answer_to(&bridge).await["error"]["code"], -32602);
    assert!(bridge.broker.shown_forms.borrow().is_empty());
}

#[tokio::test]
async fn a_form_is_withdrawn_with_its_call() {
    let (bridge, server) = asking(form(name_and_age())).await;
    let call = bridge.pending("mcp__docs__ask", json!({}));
    let mut forms = bridge.broker.shown_forms.subscribe();
    tokio::select! {
        output = bridge.middleware.run_call(&call) => panic!("{output:?}"),
        shown = forms.wait_for(|forms| !forms.is_empty()) => drop(shown.expect("the broker lives")),
    }
    let answer = server.hears_answer().await;
    assert_eq!(answer["result"], json!({"action": "cancel"}));
}

#[tokio::test]
async fn a_form_without_a_call_is_not_shown() {
    let connector = FakeConnector::default();
    let mut request = form(name_and_age());
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!("unasked");
    let server = FakeServer::new(move |method, _| match method {
        "tools/list" => Reply::After(vec![request.clone()], Box::new(Reply::Result(json!({"tools": [tool("a")]})))),
        "tools/call" => Reply::Result(json!({"content": []})),
        _ => Reply::Error(""),
    });
    let server = connector.add("docs", server);
    let bridge = bridge(connector, vec![crate::servers::external_spec("docs")]).await;
    assert_eq!(server.hears_answer().await["result"], json!({"action": "cancel"}));
    assert!(bridge.broker.shown_forms.borrow().is_empty());
    assert_eq!(bridge.call("mcp__docs__a", json!({})).await, ToolOutput::default());
}
