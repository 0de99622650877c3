//! What is sent: headers, and the messages in the form that the wire accepts.

use std::sync::Arc;

use futures::StreamExt;
use peri_acp_types::ports::{HeaderValue, HttpRequest, Secret};
use peri_acp_types::{
    AssistantPart, Content, Image, Thought, ToolArguments, ToolCall, ToolCallId, ToolKind, ToolOrigin, ToolOutput,
    ToolResult, ToolSpec,
};
use peri_model::{ModelEndpoint, ModelMessage, ModelProtocol, ModelRequest, Thinking};
use peri_testkit::runtime::FakeClock;
use serde_json::{Value, json};

use crate::endpoint::{KEY, endpoint, endpoint_of, hello, request, user};
use crate::transport::{Answer, FakeTransport};

pub async fn sent(endpoint: ModelEndpoint, request: ModelRequest) -> HttpRequest {
    let http = Arc::new(FakeTransport::new([Answer::events("", 1)]));
    let model = peri_model::connect(endpoint, http.clone(), Arc::new(FakeClock::manual()));
    let _events: Vec<_> = model.stream(request).collect().await;
    http.requests().pop().expect("a request")
}

async fn body(request: ModelRequest) -> Value {
    serde_json::from_slice(&sent(endpoint(), request).await.body).expect("JSON")
}

/// The `messages` of the wire without their cache markers.
async fn messages(messages: Vec<ModelMessage>) -> Value {
    let mut body = body(request(messages)).await;
    for message in body["messages"].as_array_mut().expect("messages") {
        for block in message["content"].as_array_mut().expect("content") {
            block.as_object_mut().expect("a block").remove("cache_control");
        }
    }
    body["messages"].take()
}

pub fn text(text: &str) -> AssistantPart {
    AssistantPart::Text(text.into())
}

pub fn thought(text: &str, signature: Option<&str>) -> AssistantPart {
    AssistantPart::Thought(Thought { text: text.into(), signature: signature.map(str::to_owned), redacted: false })
}

pub fn call(id: &str, name: &str, arguments: ToolArguments) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall { id: ToolCallId(id.into()), name: name.into(), arguments })
}

pub fn no_arguments() -> ToolArguments {
    ToolArguments::Object(serde_json::Map::new())
}

pub fn result(id: &str, output: ToolOutput) -> ToolResult {
    ToolResult { call_id: ToolCallId(id.into()), output }
}

#[tokio::test]
async fn headers_name_key_version_and_us() {
    let request = sent(endpoint(), hello()).await;
    assert_eq!(request.url, "http://127.0.0.1:9/v1/messages");
    let plain = |value: &str| HeaderValue::Plain(value.to_owned());
    let agent = format!("peri/{}", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("content-type", plain("application/json")),
        ("accept", plain("text/event-stream")),
        ("user-agent", plain(&agent)),
        ("anthropic-version", plain("2023-06-01")),
        ("x-api-key", HeaderValue::Secret(Secret::new(KEY))),
    ] {
        assert!(request.headers.contains(&(name.to_owned(), value)), "{name}: {:?}", request.headers);
    }
}

#[tokio::test]
async fn configured_headers_come_after_ours_or_in_their_place() {
    let token = HeaderValue::Secret(Secret::new("Bearer t"));
    let agent = HeaderValue::Plain("mine".into());
    let headers = vec![("Authorization".to_owned(), token.clone()), ("User-Agent".to_owned(), agent.clone())];
    let endpoint = ModelEndpoint { api_key: None, headers, ..endpoint() };
    let sent = sent(endpoint, hello()).await.headers;
    let names: Vec<String> = sent.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    assert_eq!(names, ["content-type", "accept", "anthropic-version", "authorization", "user-agent"]);
}

#[tokio::test]
async fn a_whole_request_in_the_words_of_the_wire() {
    let tool = ToolSpec {
        name: "Read".into(),
        description: "Reads a file.".into(),
        input_schema: json!({"properties": {"path": {"type": "string"}}}),
        kind: ToolKind::Read,
        read_only: true,
        origin: ToolOrigin::Builtin("workspace".into()),
    };
    let request = ModelRequest {
        system: vec!["You are Peri.".into(), " ".into(), "Be brief.".into()],
        tools: vec![tool],
        messages: vec![user("Hello")],
        max_output_tokens: Some(4096),
        output_room: 100_000,
        thinking: Thinking::Budget(10_000),
    };
    let marker = json!({"type": "ephemeral"});
    let expect = json!({
        "model": "some-model",
        "max_tokens": 4096,
        "stream": true,
        "thinking": {"type": "enabled", "budget_tokens": 4095},
        "tools": [{
            "name": "Read",
            "description": "Reads a file.",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "cache_control": marker,
        }],
        "system": [
            {"type": "text", "text": "You are Peri."},
            {"type": "text", "text": "Be brief.", "cache_control": marker},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": marker}]},
        ],
    });
    assert_eq!(body(request).await, expect);
}

#[tokio::test]
async fn too_small_a_budget_for_thoughts_is_left_out() {
    for (max_output_tokens, budget) in [(1000, 5000), (5000, 1023)] {
        let request =
            ModelRequest { max_output_tokens: Some(max_output_tokens), thinking: Thinking::Budget(budget), ..hello() };
        assert_eq!(body(request).await.get("thinking"), None);
    }
}

#[tokio::test]
async fn calls_results_and_thoughts_go_back_as_they_came() {
    let image = Content::Image(Image { mime_type: "image/png".into(), base64: "QUJD".into() });
    let shown = ToolOutput { content: vec![Content::Text("a pixel".into()), image], ..ToolOutput::default() };
    let redacted = Thought { text: String::new(), signature: Some("ZW5j".into()), redacted: true };
    let wire = messages(vec![
        user("Look"),
        ModelMessage::Assistant(vec![
            thought("Hm.", Some("c2ln")),
            AssistantPart::Thought(redacted),
            text("I will."),
            call("t1", "Read", ToolArguments::Object(json!({"path": "a.png"}).as_object().cloned().expect("object"))),
            call("t2", "Bash", ToolArguments::Invalid { raw: "{\"x".into(), reason: "cut".into() }),
        ]),
        ModelMessage::ToolResults(vec![result("t1", shown), result("t2", ToolOutput::error("no object"))]),
    ])
    .await;
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    let expect = json!([
        {"role": "user", "content": [{"type": "text", "text": "Look"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5j"},
            {"type": "text", "text": "I will."},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.png"}},
            {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"INVALID_JSON": "{\"x"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a pixel"}, image]},
            {
                "type": "tool_result",
                "tool_use_id": "t2",
                "content": [{"type": "text", "text": "no object"}],
                "is_error": true,
            },
        ]},
    ]);
    assert_eq!(wire, expect);
}

#[tokio::test]
async fn what_the_wire_refuses_is_mended_or_left_out() {
    let empty = Content::Text(" \n".into());
    let odd_image = Content::Image(Image { mime_type: "image/tiff".into(), base64: "QUJD".into() });
    let page = Content::Resource { uri: "file:///a".into(), mime_type: None, text: Some("body".into()) };
    let link = Content::Resource { uri: "file:///b".into(), mime_type: Some("text/plain".into()), text: None };
    let wire = messages(vec![
        // An answer that comes first, as after a compaction.
        ModelMessage::Assistant(vec![text("Earlier.")]),
        ModelMessage::User(vec![empty.clone()]),
        // Nothing of these two can go back.
        ModelMessage::Assistant(vec![text("  "), thought("unsealed", None)]),
        ModelMessage::Assistant(vec![thought("sealed, but alone", Some("c2ln"))]),
        ModelMessage::User(vec![empty, page, link, odd_image]),
        ModelMessage::Assistant(vec![call("a/b", "no such.tool", no_arguments()), thought("last", Some("c2ln"))]),
        ModelMessage::ToolResults(vec![result("a/b", ToolOutput { is_error: true, ..ToolOutput::default() })]),
    ])
    .await;
    let odd_id = wire[4]["content"][0]["id"].as_str().expect("an id").to_owned();
    let odd_name = wire[4]["content"][0]["name"].as_str().expect("a name").to_owned();
    assert!(odd_id.starts_with("a_b-") && odd_name.starts_with("no_such_tool-"), "{odd_id} {odd_name}");
    let image_words = "[an image of type \"image/tiff\", which cannot be shown to you]";
    let expect = json!([
        {"role": "user", "content": [{"type": "text", "text": "(no message)"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Earlier."}]},
        {"role": "user", "content": [{"type": "text", "text": "(empty message)"}]},
        {"role": "user", "content": [
            {"type": "text", "text": "<resource uri=\"file:///a\">\nbody\n</resource>"},
            {"type": "text", "text": "[resource file:///b (text/plain)]"},
            {"type": "text", "text": image_words},
        ]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": odd_id, "name": odd_name, "input": {}}]},
        {"role": "user", "content": [{
            "type": "tool_result",
            "tool_use_id": odd_id,
            "content": [{"type": "text", "text": "(no output)"}],
            "is_error": true,
        }]},
    ]);
    assert_eq!(wire, expect);
}

#[tokio::test]
async fn a_request_begins_with_the_bytes_of_the_one_before() {
    assert_stable_prefix(ModelProtocol::AnthropicMessages, "c2ln").await;
}

/// Asks turn after turn, with thoughts that bear that signature.
pub async fn assert_stable_prefix(protocol: ModelProtocol, signature: &str) {
    let mut conversation = vec![user("one")];
    let mut earlier: Option<String> = None;
    for turn in 0..6 {
        let sent = sent(endpoint_of(protocol), request(conversation.clone())).await;
        let json = String::from_utf8(sent.body.to_vec()).expect("UTF-8");
        let unmarked = json.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        let prefix = unmarked.strip_suffix("]}").expect("the conversation is last").to_owned();
        if let Some(earlier) = earlier {
            assert!(prefix.starts_with(&earlier), "{prefix}\ndoes not begin with\n{earlier}");
        }
        earlier = Some(prefix);
        let id = format!("t{turn}");
        let arguments = ToolArguments::Object(json!({"z": 1.5, "a": [turn]}).as_object().cloned().expect("object"));
        let image = Content::Image(Image { mime_type: "image/png".into(), base64: "QUJD".into() });
        let output = ToolOutput { content: vec![Content::Text("x".into()), image], ..ToolOutput::default() };
        conversation.push(ModelMessage::Assistant(vec![thought("t", Some(signature)), call(&id, "Read", arguments)]));
        conversation.push(ModelMessage::ToolResults(vec![result(&id, output)]));
    }
}

#[tokio::test]
async fn the_last_two_messages_of_the_users_side_carry_cache_markers() {
    let conversation = vec![user("1"), ModelMessage::Assistant(vec![text("2")]), user("3"), user("4")];
    let body = body(request(conversation)).await;
    let marked = |index: usize| body["messages"][index]["content"][0].get("cache_control").is_some();
    assert_eq!([marked(0), marked(1), marked(2), marked(3)], [false, false, true, true]);
}
