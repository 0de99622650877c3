//! Responses: what is sent, and answers that a recorded stream cannot show.

use peri_acp_types::{
    Content, Effort, Image, ModelFailureKind, ModelStop, ToolArguments, ToolKind, ToolOrigin, ToolOutput, ToolSpec,
};
use peri_model::{ModelEndpoint, ModelMessage, ModelProtocol, ModelRequest, ModelStreamEvent, Thinking};
use serde_json::{Value, json};

use crate::endpoint::{endpoint_of, events_of, hello, request, user};
use crate::requests::{call, no_arguments, result, sent, text, thought};
use crate::transport::Answer;

const RESPONSES: ModelProtocol = ModelProtocol::OpenAiResponses;
/// A reasoning item as a thought keeps it.
const SEALED: &str = r#"{"peri":"openai-responses","value":{"id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"ZW5j"}}"#;

async fn body(request: ModelRequest) -> Value {
    serde_json::from_slice(&sent(endpoint_of(RESPONSES), request).await.body).expect("JSON")
}

async fn input(messages: Vec<ModelMessage>) -> Value {
    body(request(messages)).await["input"].take()
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
        system: vec!["You are Peri.".into(), "Be brief.".into()],
        tools: vec![tool],
        messages: vec![user("Hello")],
        max_output_tokens: Some(4096),
        output_room: 100_000,
        thinking: Thinking::Effort(Effort::High),
    };
    let expect = json!({
        "model": "some-model",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 4096,
        "reasoning": {"effort": "high", "summary": "auto"},
        "parallel_tool_calls": true,
        "tools": [{
            "type": "function",
            "name": "Read",
            "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            "strict": false,
        }],
        "instructions": "You are Peri.\n\nBe brief.",
        "input": [{"type": "message", "role": "user", "content": "Hello"}],
    });
    assert_eq!(body(request).await, expect);
    assert_eq!(sent(endpoint_of(RESPONSES), hello()).await.url, "http://127.0.0.1:9/v1/responses");
}

#[tokio::test]
async fn a_bare_request_says_no_more_than_it_must() {
    let bare = body(ModelRequest { max_output_tokens: None, ..request(vec![]) }).await;
    let expect = json!({
        "model": "some-model",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": "(no message)"}],
    });
    assert_eq!(bare, expect);
    for model in ["gpt-4o", "openai/gpt-4.1-mini"] {
        let endpoint = ModelEndpoint { model: model.into(), ..endpoint_of(RESPONSES) };
        let body: Value = serde_json::from_slice(&sent(endpoint, hello()).await.body).expect("JSON");
        assert_eq!(body.get("include"), None, "{model} has no reasoning to give");
    }
}

#[tokio::test]
async fn reasoning_calls_and_results_go_back_as_items() {
    let image = Content::Image(Image { mime_type: "image/png".into(), base64: "QUJD".into() });
    let shown = ToolOutput { content: vec![Content::Text("a pixel".into()), image.clone()], ..ToolOutput::default() };
    let failed = ToolOutput { content: vec![image.clone()], is_error: true, ..ToolOutput::default() };
    let wire = input(vec![
        ModelMessage::User(vec![Content::Text("Look".into()), image]),
        ModelMessage::Assistant(vec![
            thought("Hm.", Some(SEALED)),
            thought("elsewhere", Some("c2ln")),
            text("I will."),
            call("t1", "Read", ToolArguments::Object(json!({"path": "a.png"}).as_object().cloned().expect("object"))),
            call("t2", "Bash", ToolArguments::Invalid { raw: "{\"x".into(), reason: "cut".into() }),
            call("t3", "Bash", no_arguments()),
        ]),
        ModelMessage::ToolResults(vec![
            result("t1", shown),
            result("t2", ToolOutput::error("no object")),
            result("t3", failed),
        ]),
    ])
    .await;
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,QUJD"});
    let words = |text: &str| json!({"type": "input_text", "text": text});
    let called = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let answered = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let expect = json!([
        {"type": "message", "role": "user", "content": [words("Look"), image]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "ZW5j",
        },
        {"type": "message", "role": "assistant", "content": "I will."},
        called("t1", "Read", r#"{"path":"a.png"}"#),
        called("t2", "Bash", r#"{"INVALID_JSON":"{\"x"}"#),
        called("t3", "Bash", "{}"),
        answered("t1", json!([words("a pixel"), image])),
        answered("t2", json!("Error: no object")),
        answered("t3", json!([words("Error:"), image])),
    ]);
    assert_eq!(wire, expect);
}

#[tokio::test]
async fn reasoning_that_led_to_nothing_and_empty_messages_stay_here() {
    let wire = input(vec![
        ModelMessage::Assistant(vec![text("Earlier."), thought("Hm.", Some(SEALED))]),
        ModelMessage::User(vec![]),
        ModelMessage::Assistant(vec![thought("Hm.", Some(SEALED)), text(" ")]),
        ModelMessage::Assistant(vec![call("t", "Read", no_arguments())]),
        ModelMessage::ToolResults(vec![result("t", ToolOutput::default())]),
    ])
    .await;
    let expect = json!([
        {"type": "message", "role": "assistant", "content": "Earlier."},
        {"type": "message", "role": "user", "content": "(empty message)"},
        {"type": "function_call", "call_id": "t", "name": "Read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t", "output": "(no output)"},
    ]);
    assert_eq!(wire, expect);
}

#[tokio::test]
async fn a_whole_response_in_place_of_a_stream_is_taken() {
    let body = r#"{"object":"response","status":"completed","output":[
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]},
        {"type":"function_call","call_id":"t","name":"Read","arguments":"{}"}],
        "usage":{"input_tokens":7,"output_tokens":2}}"#;
    let mut events = events_of(RESPONSES, Answer::status(200, &[("content-type", "application/json")], body)).await;
    let Some(ModelStreamEvent::Finished(whole)) = events.pop() else { panic!("{events:?}") };
    assert_eq!((whole.parts.len(), whole.stop, whole.usage.input_tokens), (2, ModelStop::ToolUse, 7));
    assert_eq!(events.first(), Some(&ModelStreamEvent::TextDelta("Hi".into())));
}

#[tokio::test]
async fn failures_have_their_kinds_and_the_providers_words() {
    for (status, body, kind, words) in [
        (
            400,
            r#"{"error":{"message":"Too long","code":"context_length_exceeded"}}"#,
            ModelFailureKind::ContextTooLong,
            "Too long",
        ),
        (
            404,
            r#"{"error":{"message":"No such route","type":"invalid_request_error","code":null}}"#,
            ModelFailureKind::BadRequest,
            "No such route",
        ),
        (200, r#"{"error":{"message":"later","code":"rate_limit_exceeded"}}"#, ModelFailureKind::RateLimited, "later"),
        (
            200,
            r#"{"status":"failed","output":[],"error":{"message":"broken","code":"server_error"}}"#,
            ModelFailureKind::Server,
            "broken",
        ),
        (
            200,
            r#"{"choices":[{"message":{"content":"another protocol"}}]}"#,
            ModelFailureKind::Protocol,
            "another protocol",
        ),
    ] {
        match events_of(RESPONSES, Answer::status(status, &[], body)).await.pop() {
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
    crate::requests::assert_stable_prefix(RESPONSES, SEALED).await;
}

#[tokio::test]
async fn odd_members_are_an_answer_or_a_failure_and_never_a_panic() {
    for odd in [
        r#"{"type":"response.output_item.added"}"#,
        r#"{"type":"response.output_item.added","output_index":-1,"item":{}}"#,
        r#"{"type":"response.output_item.added","output_index":18446744073709551615,"item":{"type":"reasoning"}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","arguments":7}}"#,
        r#"{"type":"response.output_item.done","item":7}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":7,"content":"x"}}"#,
        r#"{"type":"response.output_text.delta","delta":7}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{}"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":3}"#,
        r#"{"type":"response.reasoning_summary_text.delta","summary_index":"x","delta":"x"}"#,
        r#"{"type":"response.completed","response":7}"#,
        r#"{"type":"response.incomplete"}"#,
        r#"{"type":"error"}"#,
        r#"{"type":7}"#,
        "[]",
        "7",
    ] {
        let body = format!("data: {odd}\n\ndata: {{\"type\":\"response.completed\",\"response\":{{}}}}\n\n");
        assert!(events_of(RESPONSES, Answer::events(body, 4096)).await.len() <= 2, "{odd}");
    }
}
