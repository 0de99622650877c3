//! Chat Completions: what is sent, and answers that a recorded stream cannot show.

use peri_acp_types::ports::{HeaderValue, Secret};
use peri_acp_types::{
    AssistantPart, Content, Effort, Image, ModelFailureKind, ModelStop, ToolArguments, ToolKind, ToolOrigin,
    ToolOutput, ToolSpec,
};
use peri_model::{ModelEndpoint, ModelMessage, ModelProtocol, ModelRequest, ModelStreamEvent, Thinking};
use serde_json::{Value, json};

use crate::endpoint::{KEY, endpoint_of, events_of, hello, request, user};
use crate::requests::{call, no_arguments, result, sent, text, thought};
use crate::transport::Answer;

const CHAT: ModelProtocol = ModelProtocol::OpenAiChat;

async fn body_at(base_url: &str, request: ModelRequest) -> Value {
    let endpoint = ModelEndpoint { base_url: base_url.into(), ..endpoint_of(CHAT) };
    serde_json::from_slice(&sent(endpoint, request).await.body).expect("JSON")
}

async fn body(request: ModelRequest) -> Value {
    body_at("http://127.0.0.1:9/v1", request).await
}

async fn messages(messages: Vec<ModelMessage>) -> Value {
    body(request(messages)).await["messages"].take()
}

fn image() -> Content {
    Content::Image(Image { mime_type: "image/png".into(), base64: "QUJD".into() })
}

#[tokio::test]
async fn the_key_is_a_bearer_and_the_path_comes_before_the_query() {
    let endpoint = ModelEndpoint { base_url: "http://127.0.0.1:9/v1/?api-version=1".into(), ..endpoint_of(CHAT) };
    let request = sent(endpoint, hello()).await;
    assert_eq!(request.url, "http://127.0.0.1:9/v1/chat/completions?api-version=1");
    let bearer = HeaderValue::Secret(Secret::new(format!("Bearer {KEY}")));
    assert!(request.headers.contains(&("authorization".to_owned(), bearer)));
    let without_key = ModelEndpoint { api_key: None, ..endpoint_of(CHAT) };
    assert!(sent(without_key, hello()).await.headers.iter().all(|(name, _)| name != "authorization"));
}

#[tokio::test]
async fn a_whole_request_in_the_words_of_the_wire() {
    let tool = ToolSpec {
        name: "Read".into(),
        description: "Reads a file.".into(),
        input_schema: json!({"$schema": "x", "type": "object", "properties": {"path": {"type": "string"}}}),
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
        thinking: Thinking::Effort(Effort::Medium),
    };
    let expect = json!({
        "model": "some-model",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 4096,
        "reasoning_effort": "medium",
        "tools": [{"type": "function", "function": {
            "name": "Read",
            "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        }}],
        "messages": [
            {"role": "system", "content": "You are Peri.\n\nBe brief."},
            {"role": "user", "content": "Hello"},
        ],
    });
    assert_eq!(body(request).await, expect);
}

#[tokio::test]
async fn hosts_get_the_members_that_they_take() {
    for (base_url, member, usage) in [
        ("https://api.openai.com/v1", "max_completion_tokens", true),
        ("https://mine.openai.azure.com/openai/v1", "max_completion_tokens", true),
        ("https://api.mistral.ai/v1", "max_tokens", false),
        ("http://localhost:8080/v1", "max_tokens", true),
    ] {
        let body = body_at(base_url, hello()).await;
        assert_eq!(body[member], 1000, "{base_url}");
        let tokens = ["max_tokens", "max_completion_tokens"].iter().filter(|name| body.get(**name).is_some());
        assert_eq!((tokens.count(), body.get("stream_options").is_some()), (1, usage), "{base_url}");
    }
    let open = body(ModelRequest { max_output_tokens: None, ..hello() }).await;
    assert!(open.get("max_tokens").is_none() && open.get("reasoning_effort").is_none());
    let little_room = body(ModelRequest { output_room: 7, ..hello() }).await;
    assert_eq!(little_room["max_tokens"], 7);
}

#[tokio::test]
async fn calls_and_results_go_back_and_images_after_them() {
    let shown = ToolOutput { content: vec![Content::Text("a pixel".into()), image()], ..ToolOutput::default() };
    let sealed = r#"{"peri":"openai-chat","value":"reasoning_content"}"#;
    let wire = messages(vec![
        ModelMessage::User(vec![Content::Text("Look".into()), image()]),
        ModelMessage::Assistant(vec![
            thought("Hm.", Some(sealed)),
            text("I will."),
            call("t1", "Read", ToolArguments::Object(json!({"path": "a.png"}).as_object().cloned().expect("object"))),
            call("t2", "Bash", ToolArguments::Invalid { raw: "{\"x".into(), reason: "cut".into() }),
        ]),
        ModelMessage::ToolResults(vec![result("t1", shown), result("t2", ToolOutput::error("no object"))]),
    ])
    .await;
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    let called = |id: &str, name: &str, arguments: &str| json!({"type": "function", "id": id, "function": {"name": name, "arguments": arguments}});
    let expect = json!([
        {"role": "user", "content": [{"type": "text", "text": "Look"}, image]},
        {"role": "assistant", "content": "I will.", "reasoning_content": "Hm.", "tool_calls": [
            called("t1", "Read", r#"{"path":"a.png"}"#),
            called("t2", "Bash", r#"{"INVALID_JSON":"{\"x"}"#),
        ]},
        {"role": "tool", "tool_call_id": "t1", "content": "a pixel\n(image 1, shown in the message after the results)"},
        {"role": "tool", "tool_call_id": "t2", "content": "Error: no object"},
        {"role": "user", "content": [
            {"type": "text", "text": "The images of the results above, in their order:"},
            image,
        ]},
    ]);
    assert_eq!(wire, expect);
}

#[tokio::test]
async fn what_the_wire_refuses_is_mended_or_left_out() {
    let wire = messages(vec![
        // An answer that comes first, as after a compaction.
        ModelMessage::Assistant(vec![text("Earlier.")]),
        ModelMessage::User(vec![Content::Text(" \n".into())]),
        // Nothing of these two can go back.
        ModelMessage::Assistant(vec![text("  "), thought("elsewhere", Some("c2ln"))]),
        ModelMessage::Assistant(vec![]),
        ModelMessage::Assistant(vec![call(&"x".repeat(41), "no such.tool", no_arguments())]),
        ModelMessage::ToolResults(vec![result(&"x".repeat(41), ToolOutput::default())]),
    ])
    .await;
    let odd_id = wire[3]["tool_calls"][0]["id"].as_str().expect("an id").to_owned();
    let odd_name = wire[3]["tool_calls"][0]["function"]["name"].as_str().expect("a name").to_owned();
    assert!(odd_id.len() <= 40 && odd_name.starts_with("no_such_tool-"), "{odd_id} {odd_name}");
    let function = json!({"name": odd_name, "arguments": "{}"});
    let expect = json!([
        {"role": "user", "content": "(no message)"},
        {"role": "assistant", "content": "Earlier."},
        {"role": "user", "content": "(empty message)"},
        {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "id": odd_id, "function": function}]},
        {"role": "tool", "tool_call_id": odd_id, "content": "(no output)"},
    ]);
    assert_eq!(wire, expect);
    assert_eq!(messages(vec![]).await, json!([{"role": "user", "content": "(no message)"}]));
}

#[tokio::test]
async fn a_whole_completion_in_place_of_a_stream_is_taken() {
    let body = "\u{feff} ".to_owned()
        + r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi",
        "tool_calls":[{"id":"t","type":"function","function":{"name":"Read","arguments":{"path":"a"}}}]},
        "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let mut events = events_of(CHAT, Answer::status(200, &[("content-type", "application/json")], &body)).await;
    let Some(ModelStreamEvent::Finished(whole)) = events.pop() else { panic!("{events:?}") };
    assert_eq!((whole.parts.len(), whole.stop, whole.usage.input_tokens), (2, ModelStop::ToolUse, 7));
    assert_eq!(events.first(), Some(&ModelStreamEvent::TextDelta("Hi".into())));
}

#[tokio::test]
async fn failures_have_their_kinds_and_the_providers_words() {
    let error = |message: &str, kind: &str, code: Value| {
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
    };
    for (status, body, kind, words) in [
        (401, error("Incorrect API key", "invalid_request_error", json!("invalid_api_key")), ModelFailureKind::Auth, "Incorrect API key"),
        (404, error("The model `x` does not exist", "invalid_request_error", json!("model_not_found")), ModelFailureKind::BadRequest, "does not exist"),
        (400, error("Too many tokens", "invalid_request_error", json!("context_length_exceeded")), ModelFailureKind::ContextTooLong, "Too many"),
        (400, error("the request exceeds the available context size", "exceed_context_size_error", json!(400)), ModelFailureKind::ContextTooLong, "available context size"),
        (400, r#"{"object":"error","message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}"#.to_owned(), ModelFailureKind::ContextTooLong, "8 tokens"),
        (422, r#"{"detail":[{"loc":["body","x"],"msg":"Extra inputs are not permitted"}]}"#.to_owned(), ModelFailureKind::BadRequest, "body.x: Extra inputs"),
        (404, "404 page not found".to_owned(), ModelFailureKind::BadRequest, "404 page not found"),
        (429, error("Rate limit reached", "requests", json!("rate_limit_exceeded")), ModelFailureKind::RateLimited, "Rate limit reached"),
        (429, error("You have nothing left", "insufficient_quota", json!("insufficient_quota")), ModelFailureKind::BadRequest, "nothing left"),
        (503, error("Loading model", "unavailable_error", json!(503)), ModelFailureKind::Server, "Loading model"),
        (529, String::new(), ModelFailureKind::Overloaded, "(no text)"),
        (200, error("out of luck", "server_error", Value::Null), ModelFailureKind::Server, "out of luck"),
        (200, r#"{"detail":"Not authenticated"}"#.to_owned(), ModelFailureKind::Server, "Not authenticated"),
        (200, r#"{"object":"list","data":[]}"#.to_owned(), ModelFailureKind::Protocol, "\"list\""),
    ] {
        match events_of(CHAT, Answer::status(status, &[], &body)).await.pop() {
            Some(ModelStreamEvent::Failed(failure)) => {
                assert_eq!(failure.kind, kind, "{body}: {failure}");
                assert!(failure.message.contains(words), "{failure}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_request_begins_with_the_bytes_of_the_one_before() {
    crate::requests::assert_stable_prefix(CHAT, r#"{"peri":"openai-chat","value":"reasoning_content"}"#).await;
}

#[tokio::test]
async fn an_answer_of_too_many_calls_is_refused() {
    let call = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":@,"id":"@","function":{"name":"a"}}]}}]}"#;
    let body: String = (0..3000).map(|index| call.replace('@', &index.to_string()) + "\n\n").collect();
    match events_of(CHAT, Answer::events(body, 1 << 16)).await.pop() {
        Some(ModelStreamEvent::Failed(failure)) => assert_eq!(failure.kind, ModelFailureKind::Protocol),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn odd_members_are_an_answer_or_a_failure_and_never_a_panic() {
    for odd in [
        r#"{"choices":{}}"#,
        r#"{"choices":[7]}"#,
        r#"{"choices":[{"delta":"x"}]}"#,
        r#"{"choices":[{"delta":{"content":{"a":1}}}]}"#,
        r#"{"choices":[{"delta":{"content":7}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":{}}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[null]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":18446744073709551615,"function":null}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":-1,"id":7,"function":{"name":null,"arguments":[]}}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":7,"reasoning":{},"reasoning_content":[]}}]}"#,
        r#"{"choices":[{"finish_reason":{}}],"usage":[]}"#,
        "[]",
        "null",
        "7",
    ] {
        let body = format!("data: {odd}\n\ndata: [DONE]\n\n");
        assert!(events_of(CHAT, Answer::events(body, 4096)).await.len() <= 2, "{odd}");
    }
    let parts = events_of(
        CHAT,
        Answer::events("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n", 1),
    );
    assert!(
        matches!(parts.await.pop(), Some(ModelStreamEvent::Finished(answer)) if answer.parts == [AssistantPart::Text("Hi".into())])
    );
}
