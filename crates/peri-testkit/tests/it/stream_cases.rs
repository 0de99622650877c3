//! The model edge on real sockets, in each protocol: the known ways in which streams fail, from the wire up.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use peri_acp_types::{AssistantPart, Content, ModelFailureKind, ModelStop, ToolArguments};
use peri_model::{LanguageModel, ModelEndpoint, ModelMessage, ModelProtocol, ModelRequest, ModelStreamEvent, Thinking};
use peri_testkit::gate::Gate;
use peri_testkit::loopback_http::LoopbackHttp;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Rest};
use peri_testkit::runtime::{FakeClock, TokioClock};
use serde_json::json;

const PROTOCOLS: [ModelProtocol; 3] =
    [ModelProtocol::AnthropicMessages, ModelProtocol::OpenAiChat, ModelProtocol::OpenAiResponses];

fn endpoint(protocol: ModelProtocol, base_url: String) -> ModelEndpoint {
    ModelEndpoint {
        provider: "mine".into(),
        protocol,
        base_url,
        api_key: None,
        headers: vec![],
        model: "some-model".into(),
        context_window: Some(200_000),
        max_output_tokens: None,
        idle_timeout: Duration::from_secs(60),
    }
}

fn model(server: &FakeModelServer, protocol: ModelProtocol) -> Arc<dyn LanguageModel> {
    let endpoint = endpoint(protocol, server.base_url_for(protocol));
    peri_model::connect(endpoint, Arc::new(LoopbackHttp), Arc::new(TokioClock::default()))
}

fn hello() -> ModelRequest {
    ModelRequest {
        system: vec!["Be brief.".into()],
        tools: vec![],
        messages: vec![ModelMessage::User(vec![Content::Text("Hello".into())])],
        max_output_tokens: Some(1000),
        output_room: 100_000,
        thinking: Thinking::Unset,
    }
}

/// The last event of each reply's stream, and all text that came before it.
async fn outcomes(protocol: ModelProtocol, replies: Vec<Reply>) -> Vec<(String, ModelStreamEvent)> {
    let count = replies.len();
    let server = FakeModelServer::start(replies);
    let model = model(&server, protocol);
    let mut outcomes = Vec::new();
    for _ in 0..count {
        let mut events: Vec<ModelStreamEvent> = model.stream(hello()).collect().await;
        let last = events.pop().expect("a terminal event");
        let text = events.iter().map(|event| match event {
            ModelStreamEvent::TextDelta(text) => text.as_str(),
            other => panic!("not text: {other:?}"),
        });
        outcomes.push((text.collect(), last));
    }
    server.check_invariants();
    outcomes
}

#[track_caller]
fn assert_text(outcome: &(String, ModelStreamEvent), text: &str) {
    let (streamed, last) = outcome;
    assert_eq!(streamed, text);
    assert!(
        matches!(last, ModelStreamEvent::Finished(answer) if answer.parts == [AssistantPart::Text(text.into())]),
        "{last:?}"
    );
}

#[track_caller]
fn assert_fails(outcome: &(String, ModelStreamEvent), kind: ModelFailureKind) {
    assert!(matches!(&outcome.1, ModelStreamEvent::Failed(failure) if failure.kind == kind), "{outcome:?}");
}

#[tokio::test]
async fn text_is_the_same_however_the_bytes_are_cut_and_framed() {
    let text = "日本語 👩‍👩‍👧 🦀\r\nx";
    let answer = || Reply::from(Answer::new().comment("hi").ping().text_deltas(["日本", "語 👩‍👩‍👧 🦀", "\r\nx"]));
    let replies = vec![
        answer(),
        answer().byte_at_a_time(),
        answer().crlf().in_chunks_of(7),
        answer().until_close().in_chunks_of(1000),
    ];
    for protocol in PROTOCOLS {
        for outcome in outcomes(protocol, replies.clone()).await {
            assert_text(&outcome, text);
        }
    }
}

#[tokio::test]
async fn an_end_without_marker_is_an_end_and_a_cut_is_a_cut() {
    for protocol in PROTOCOLS {
        let answer = || Answer::new().text("Hi");
        let half = Reply::from(answer()).body_bytes_in(protocol) / 2;
        let replies = vec![
            answer().without_message_stop().into(),
            Reply::from(answer().without_message_stop()).until_close(),
            answer().without_end().into(),
            Reply::from(answer()).until_close().after(half, Rest::Close),
            Reply::from(answer()).after(half, Rest::Close),
            Reply::from(answer()).after(half, Rest::Reset),
            answer().error("overloaded_error", "Overloaded").into(),
        ];
        let outcomes = outcomes(protocol, replies).await;
        assert_text(&outcomes[0], "Hi");
        assert_text(&outcomes[1], "Hi");
        for cut in &outcomes[2..6] {
            assert_fails(cut, ModelFailureKind::Cut);
        }
        assert_fails(&outcomes[6], ModelFailureKind::Overloaded);
    }
}

#[tokio::test]
async fn calls_that_interleave_are_told_apart() {
    let answer = Answer::new().interleaved_tool_uses(&[
        ("a", "Read", &["{\"pa", "th\": \"x\"}"]),
        ("b", "List", &[]),
        ("c", "Bash", &["", "{\"command\":", "\"ls\"}"]),
    ]);
    for protocol in PROTOCOLS {
        check_calls(protocol, answer.clone()).await;
    }
}

async fn check_calls(protocol: ModelProtocol, answer: Answer) {
    let server = FakeModelServer::start([answer]);
    let events: Vec<ModelStreamEvent> = model(&server, protocol).stream(hello()).collect().await;
    let Some(ModelStreamEvent::Finished(answer)) = events.last() else { panic!("{events:?}") };
    let calls: Vec<(&str, serde_json::Value)> = answer
        .parts
        .iter()
        .map(|part| match part {
            AssistantPart::ToolCall(call) => match &call.arguments {
                ToolArguments::Object(map) => (call.id.0.as_str(), json!(map)),
                invalid @ ToolArguments::Invalid { .. } => panic!("{invalid:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, [("a", json!({"path": "x"})), ("b", json!({})), ("c", json!({"command": "ls"}))]);
    assert_eq!(answer.stop, ModelStop::ToolUse);
}

#[tokio::test]
async fn refusals_and_closed_doors_have_their_kinds() {
    for protocol in PROTOCOLS {
        let replies = vec![
            Reply::status(529).header("retry-after", "2").error_body("overloaded_error", "Overloaded"),
            Reply::status(429).header("retry-after", "1"),
            Reply::status(502).body("<html>bad gateway</html>"),
            Reply::raw(["HTTP/1.1 "]),
            Reply::raw(Vec::<Vec<u8>>::new()),
        ];
        let kinds = [
            ModelFailureKind::Overloaded,
            ModelFailureKind::RateLimited,
            ModelFailureKind::Server,
            ModelFailureKind::Connect,
            ModelFailureKind::Connect,
        ];
        for (outcome, kind) in outcomes(protocol, replies).await.iter().zip(kinds) {
            assert_fails(outcome, kind);
        }
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let nobody = endpoint(protocol, format!("http://{nobody}"));
        let model = peri_model::connect(nobody, Arc::new(LoopbackHttp), Arc::new(TokioClock::default()));
        let last = model.stream(hello()).next().await.expect("a terminal event");
        assert_fails(&(String::new(), last), ModelFailureKind::Connect);
    }
}

#[tokio::test]
async fn a_silent_stream_times_out_and_its_connection_is_closed() {
    for protocol in PROTOCOLS {
        let stalled = Reply::from(Answer::new().text("Hi")).after(300, Rest::Stall(Gate::shut()));
        let mute = Reply::from(Answer::new()).before_head(&Gate::shut());
        let server = FakeModelServer::start([stalled, mute]);
        let clock = FakeClock::manual();
        let endpoint = endpoint(protocol, server.base_url_for(protocol));
        let model = peri_model::connect(endpoint, Arc::new(LoopbackHttp), Arc::new(clock.clone()));
        for number in 1..=2 {
            let mut stream = model.stream(hello());
            let last = tokio::select! {
                last = stream.next() => last.expect("a terminal event"),
                () = time_goes_on(&server, number, &clock) => unreachable!("it has no end"),
            };
            assert_fails(&(String::new(), last), ModelFailureKind::IdleTimeout);
            server.hung_up(number).await;
        }
    }
}

/// Once that many requests have come, a minute passes whenever the model waits anew.
async fn time_goes_on(server: &FakeModelServer, requests: usize, clock: &FakeClock) {
    server.requested(requests).await;
    for sleeps in clock.sleeps().len().. {
        clock.slept(sleeps).await;
        clock.advance(Duration::from_secs(60));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dropped_stream_closes_its_connection() {
    for protocol in PROTOCOLS {
        let gate = Gate::shut();
        let answer = Reply::from(Answer::new().text("Hi"));
        let near_the_end = answer.body_bytes_in(protocol) - 30;
        let server = FakeModelServer::start([answer.after(near_the_end, Rest::Stall(gate.clone()))]);
        let mut stream = model(&server, protocol).stream(hello());
        assert_eq!(stream.next().await, Some(ModelStreamEvent::TextDelta("Hi".into())));
        gate.reached().await;
        drop(stream);
        server.hung_up(1).await;
    }
}
