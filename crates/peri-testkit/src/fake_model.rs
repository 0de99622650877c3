//! A model that says what the test wrote down, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use peri_acp_types::{
    AssistantPart, ModelFailure, ModelFailureKind, ModelStop, Thought, ToolArguments, ToolCall, ToolCallId, Usage,
};
use peri_model::{LanguageModel, ModelAnswer, ModelRequest, ModelStream, ModelStreamEvent};
use tokio::sync::Notify;

use crate::invariants::check_requests;

/// A scripted model. Clones share script and memory.
#[derive(Clone, Default)]
pub struct FakeModel {
    script: Arc<Mutex<VecDeque<FakeAnswer>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    asked: Arc<Notify>,
}

/// What the model does with one request.
#[derive(Clone, Debug)]
pub enum FakeAnswer {
    /// These parts, as deltas and then whole.
    Says { parts: Vec<AssistantPart>, stop: ModelStop },
    /// Some text, then a failure.
    Fails { text: String, failure: ModelFailure },
    /// Some text, then nothing more until the stream is dropped.
    Hangs { text: String },
    /// Some text, then an end without a terminal event: a broken model edge.
    EndsSilently { text: String },
}

impl FakeAnswer {
    /// A text that ends the turn.
    pub fn text(text: &str) -> FakeAnswer {
        FakeAnswer::Says { parts: vec![AssistantPart::Text(text.to_owned())], stop: ModelStop::EndTurn }
    }

    /// Tool calls: id, tool, arguments.
    pub fn calls(calls: &[(&str, &str, serde_json::Value)]) -> FakeAnswer {
        let part = |(id, name, arguments): &(&str, &str, serde_json::Value)| {
            let arguments = match arguments {
                serde_json::Value::Object(map) => ToolArguments::Object(map.clone()),
                other => ToolArguments::Invalid { raw: other.to_string(), reason: "not an object".to_owned() },
            };
            AssistantPart::ToolCall(ToolCall { id: ToolCallId((*id).to_owned()), name: (*name).to_owned(), arguments })
        };
        FakeAnswer::Says { parts: calls.iter().map(part).collect(), stop: ModelStop::ToolUse }
    }

    /// A failure of that kind after some text.
    pub fn failure(kind: ModelFailureKind, text: &str) -> FakeAnswer {
        let failure = ModelFailure {
            kind,
            model: "fake/model".to_owned(),
            message: "scripted".to_owned(),
            status: None,
            retry_after: None,
            received_bytes: text.len() as u64,
            elapsed: Duration::ZERO,
        };
        FakeAnswer::Fails { text: text.to_owned(), failure }
    }
}

impl FakeModel {
    /// A model that answers request after request as the script says; a request beyond its end fails.
    pub fn new(script: impl IntoIterator<Item = FakeAnswer>) -> FakeModel {
        let model = FakeModel::default();
        model.then(script);
        model
    }

    /// Adds to the script.
    pub fn then(&self, script: impl IntoIterator<Item = FakeAnswer>) {
        lock(&self.script).extend(script);
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }

    /// Resolves once that many requests have come.
    pub async fn asked(&self, count: usize) {
        loop {
            let asked = self.asked.notified();
            if lock(&self.requests).len() >= count {
                return;
            }
            asked.await;
        }
    }

    /// Checks the contract of requests: each call has its result, and the prefix is stable.
    ///
    /// # Panics
    /// Where it is broken, with both requests.
    #[track_caller]
    pub fn check_invariants(&self) {
        check_requests(&self.requests());
    }
}

impl LanguageModel for FakeModel {
    fn name(&self) -> &str {
        "fake/model"
    }

    fn context_window(&self) -> u64 {
        200_000
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        lock(&self.requests).push(request);
        self.asked.notify_waiters();
        let Some(answer) = lock(&self.script).pop_front() else {
            let beyond = FakeAnswer::failure(ModelFailureKind::BadRequest, "");
            return events_of(beyond).boxed();
        };
        events_of(answer).boxed()
    }
}

fn events_of(answer: FakeAnswer) -> ModelStream {
    match answer {
        FakeAnswer::Says { parts, stop } => {
            let mut events: Vec<ModelStreamEvent> = parts.iter().map(delta).collect();
            let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
            events.push(ModelStreamEvent::Finished(ModelAnswer { parts, stop, usage }));
            stream::iter(events).boxed()
        }
        FakeAnswer::Fails { text, failure } => {
            stream::iter([ModelStreamEvent::TextDelta(text), ModelStreamEvent::Failed(failure)]).boxed()
        }
        FakeAnswer::Hangs { text } => {
            stream::iter([ModelStreamEvent::TextDelta(text)]).chain(stream::pending()).boxed()
        }
        FakeAnswer::EndsSilently { text } => stream::iter([ModelStreamEvent::TextDelta(text)]).boxed(),
    }
}

fn delta(part: &AssistantPart) -> ModelStreamEvent {
    match part {
        AssistantPart::Text(text) => ModelStreamEvent::TextDelta(text.clone()),
        AssistantPart::Thought(Thought { text, .. }) => ModelStreamEvent::ThoughtDelta(text.clone()),
        AssistantPart::ToolCall(call) => {
            ModelStreamEvent::ToolCallStarted { id: call.id.clone(), name: call.name.clone() }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
