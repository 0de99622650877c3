//! The endpoint, the clock and the request that most tests share.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use peri_acp_types::ports::Secret;
use peri_acp_types::{Content, ModelFailure};
use peri_model::{
    LanguageModel, ModelAnswer, ModelEndpoint, ModelMessage, ModelProtocol, ModelRequest, ModelStreamEvent, Thinking,
};
use peri_testkit::runtime::FakeClock;

use crate::transport::{Answer, FakeTransport};

pub const IDLE: Duration = Duration::from_secs(60);
pub const KEY: &str = "sk-test-0123456789";

pub fn endpoint() -> ModelEndpoint {
    ModelEndpoint {
        provider: "mine".into(),
        protocol: ModelProtocol::AnthropicMessages,
        base_url: "http://127.0.0.1:9".into(),
        api_key: Some(Secret::new(KEY)),
        headers: vec![],
        model: "some-model".into(),
        context_window: Some(200_000),
        max_output_tokens: None,
        idle_timeout: IDLE,
    }
}

/// The same endpoint, spoken to in another protocol.
pub fn endpoint_of(protocol: ModelProtocol) -> ModelEndpoint {
    let base_url = match protocol {
        ModelProtocol::AnthropicMessages => "http://127.0.0.1:9",
        ModelProtocol::OpenAiChat | ModelProtocol::OpenAiResponses => "http://127.0.0.1:9/v1",
    };
    ModelEndpoint { protocol, base_url: base_url.into(), ..endpoint() }
}

pub fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        system: vec![],
        tools: vec![],
        messages,
        max_output_tokens: Some(1000),
        output_room: 100_000,
        thinking: Thinking::Unset,
    }
}

pub fn hello() -> ModelRequest {
    request(vec![user("Hello")])
}

pub fn user(text: &str) -> ModelMessage {
    ModelMessage::User(vec![Content::Text(text.into())])
}

/// A model whose transport answers so, and the clock that it waits by.
pub fn model(answer: Answer) -> (Arc<dyn LanguageModel>, FakeClock) {
    model_of(ModelProtocol::AnthropicMessages, answer)
}

pub fn model_of(protocol: ModelProtocol, answer: Answer) -> (Arc<dyn LanguageModel>, FakeClock) {
    let clock = FakeClock::manual();
    let http = Arc::new(FakeTransport::new([answer]));
    (peri_model::connect(endpoint_of(protocol), http, Arc::new(clock.clone())), clock)
}

/// All events of the answer to [`hello`].
pub async fn events(answer: Answer) -> Vec<ModelStreamEvent> {
    events_of(ModelProtocol::AnthropicMessages, answer).await
}

pub async fn events_of(protocol: ModelProtocol, answer: Answer) -> Vec<ModelStreamEvent> {
    let (model, _clock) = model_of(protocol, answer);
    let events: Vec<ModelStreamEvent> = model.stream(hello()).collect().await;
    let terminals = events.iter().filter(|event| event.is_terminal()).count();
    assert_eq!(terminals, 1, "exactly one terminal event: {events:?}");
    assert!(events.last().is_some_and(ModelStreamEvent::is_terminal), "nothing after it: {events:?}");
    events
}

pub async fn answer(answer: Answer) -> ModelAnswer {
    match events(answer).await.pop() {
        Some(ModelStreamEvent::Finished(answer)) => answer,
        other => panic!("no answer: {other:?}"),
    }
}

pub async fn failure(answer: Answer) -> ModelFailure {
    match events(answer).await.pop() {
        Some(ModelStreamEvent::Failed(failure)) => failure,
        other => panic!("no failure: {other:?}"),
    }
}
