//! Ends and faults of a stream that a recorded one cannot show.

use futures::StreamExt;
use peri_acp_types::{AssistantPart, ModelFailureKind, ModelStop};
use peri_model::{ModelMessage, ModelStreamEvent};

use crate::endpoint::{answer, events, failure, hello, model, user};
use crate::transport::{Answer, FakeTransport, Piece};

const TEXT: &str =
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
const FINISH: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
const STOP: &str = "data: {\"type\":\"message_stop\"}\n\n";

fn pieces(parts: &[&str], last: Piece) -> Answer {
    let mut body: Vec<Piece> = parts.iter().map(|part| Piece::Bytes(part.as_bytes().to_vec())).collect();
    body.push(last);
    Answer::with(200, &[("content-type", "text/event-stream")], body)
}

#[tokio::test]
async fn the_end_marker_ends_the_answer_though_the_connection_stays_open() {
    let whole = answer(pieces(&[TEXT, FINISH, STOP], Piece::Silence)).await;
    assert_eq!(whole.parts, [AssistantPart::Text("Hi".into())]);
}

#[tokio::test]
async fn what_follows_the_end_marker_does_not_count() {
    let late = "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"late\"}}";
    for chunk in [1, 4096] {
        assert_eq!(answer(Answer::events([TEXT, FINISH, STOP, late].concat(), chunk)).await.stop, ModelStop::EndTurn);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_finish_reason_has_given_all() {
    assert_eq!(answer(pieces(&[TEXT, FINISH], Piece::Break)).await.stop, ModelStop::EndTurn);
}

#[tokio::test]
async fn a_connection_that_breaks_before_it_is_a_cut_with_its_figures() {
    let cut = failure(pieces(&[TEXT], Piece::Break)).await;
    assert_eq!((cut.kind, cut.status), (ModelFailureKind::Cut, Some(200)));
    assert_eq!((cut.model.as_str(), cut.received_bytes), ("mine/some-model", TEXT.len() as u64));
    assert!(cut.message.contains("reset by peer"), "{cut}");
}

#[tokio::test]
async fn an_empty_body_is_a_cut() {
    assert_eq!(failure(Answer::events("", 1)).await.kind, ModelFailureKind::Cut);
    assert_eq!(failure(Answer::events(" \n\n", 1)).await.kind, ModelFailureKind::Cut);
    assert_eq!(failure(Answer::events(": only comments\n\n", 1)).await.kind, ModelFailureKind::Cut);
}

#[tokio::test]
async fn a_stream_asked_after_its_end_has_nothing_more() {
    let (model, _clock) = model(Answer::events([TEXT, FINISH, STOP].concat(), 4096));
    let mut stream = model.stream(hello());
    while let Some(event) = stream.next().await {
        assert!(!matches!(event, ModelStreamEvent::Failed(_)));
    }
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_read() {
    let http = std::sync::Arc::new(FakeTransport::new([]));
    let clock = std::sync::Arc::new(peri_testkit::runtime::FakeClock::manual());
    let model = peri_model::connect(crate::endpoint::endpoint(), http.clone(), clock);
    drop(model.stream(hello()));
    assert!(http.requests().is_empty());
}

#[tokio::test]
async fn an_id_of_an_earlier_call_is_not_given_again() {
    let call = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"Read\"}}\n\n";
    let body = [call, FINISH].concat();
    let (model, _clock) = model(Answer::events(body, 4096));
    let earlier = peri_acp_types::ToolCall {
        id: peri_acp_types::ToolCallId("call_1".into()),
        name: "Read".into(),
        arguments: peri_acp_types::ToolArguments::Object(serde_json::Map::new()),
    };
    let mut request = hello();
    request.messages.push(ModelMessage::Assistant(vec![AssistantPart::ToolCall(earlier)]));
    request.messages.push(user("(its result)"));
    let events: Vec<ModelStreamEvent> = model.stream(request).collect().await;
    assert!(
        matches!(&events[..], [ModelStreamEvent::ToolCallStarted { id, .. }, _] if id.0 == "call_1_2"),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_whole_message_in_place_of_a_stream_is_taken() {
    let body = r#" {"type":"message","content":[{"type":"text","text":"Hi"},
        {"type":"tool_use","id":"t","name":"Read","input":{"path":"a"}}],
        "stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":2}}"#;
    let mut events = events(Answer::status(200, &[("content-type", "application/json")], body)).await;
    let Some(ModelStreamEvent::Finished(whole)) = events.pop() else { panic!("{events:?}") };
    assert_eq!((whole.parts.len(), whole.stop, whole.usage.input_tokens), (2, ModelStop::ToolUse, 7));
    assert_eq!(events.first(), Some(&ModelStreamEvent::TextDelta("Hi".into())));
}

#[tokio::test]
async fn an_event_stream_under_another_name_is_read_as_one() {
    let body = [TEXT, FINISH, STOP].concat();
    assert_eq!(answer(Answer::status(200, &[("content-type", "text/plain")], &body)).await.parts.len(), 1);
}

#[tokio::test]
async fn an_error_under_status_200_is_an_error() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for kind in ["application/json", "text/event-stream"] {
        let overloaded = failure(Answer::status(200, &[("content-type", kind)], body)).await;
        assert_eq!(overloaded.kind, ModelFailureKind::Overloaded);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_said_to_be_none() {
    for (body, shown) in [
        ("<html><body><h1>Sign in</h1></body></html>", "Sign in"),
        ("{\"choices\":[]}", "{\"choices\":[]}"),
        ("{\"type\":\"message\"", "{\"type\":\"message\""),
        ("[]", "[]"),
        ("Service paused", "Service paused"),
    ] {
        let refused = failure(Answer::status(200, &[("content-type", "text/html")], body)).await;
        assert_eq!(refused.kind, ModelFailureKind::Protocol, "{body}");
        assert!(refused.message.contains(shown), "{refused}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_bounded() {
    let comment = format!(":{}\n", "x".repeat(1024 * 1024 - 2)).into_bytes();
    let body = (0..80).map(|_| Piece::Bytes(comment.clone())).collect();
    let endless = failure(Answer::with(200, &[], body)).await;
    assert_eq!(endless.kind, ModelFailureKind::Protocol);
    assert!(endless.received_bytes <= 65 * 1024 * 1024, "{endless}");
}

#[tokio::test]
async fn a_line_without_end_is_bounded() {
    let body = (0..80).map(|_| Piece::Bytes(vec![b'x'; 1024 * 1024])).collect();
    let endless = failure(Answer::with(200, &[], body)).await;
    assert_eq!(endless.kind, ModelFailureKind::Protocol);
    assert!(endless.received_bytes <= 18 * 1024 * 1024, "{endless}");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused_not_guessed_at() {
    let mut body = TEXT.as_bytes().to_vec();
    let at = body.windows(2).position(|pair| pair == b"Hi").expect("the text");
    body[at] = 0xFF;
    assert_eq!(failure(Answer::events(body, 4096)).await.kind, ModelFailureKind::Protocol);
}
