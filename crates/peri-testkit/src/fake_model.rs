//! A model that says what the test wrote down, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use peri_acp_types::{
    AssistantPart, ModelFailure, ModelFailureKind, ModelStop, Thought, ToolArguments, ToolCall, ToolCallId, Usage,
};
use peri_model::{LanguageModel, ModelAnswer, ModelLimits, ModelRequest, ModelStream, ModelStreamEvent};

use crate::gate::Gate;
use crate::invariants::check_requests;
use crate::watched::Watched;

/// A scripted model. Clones share script and memory.
#[derive(Clone)]
pub struct FakeModel {
    name: Arc<str>,
    memory: Arc<Watched<Memory>>,
}

impl Default for FakeModel {
    fn default() -> FakeModel {
        FakeModel { name: "fake/model".into(), memory: Arc::default() }
    }
}

#[derive(Default)]
struct Memory {
    /// What its endpoint says when it is asked for limits, and the gate that holds the answer back.
    to_learn: Option<(Gate, ModelLimits)>,
    learned: Option<ModelLimits>,
    script: VecDeque<FakeAnswer>,
    /// Asked once the script is over.
    improvise: Option<Improvise>,
    requests: Vec<ModelRequest>,
    /// Streams that were dropped before their terminal event.
    aborted: usize,
}

type Improvise = Arc<dyn Fn(&ModelRequest) -> FakeAnswer + Send + Sync>;

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
    /// Any events, with gates between them.
    Steps(Vec<FakeStep>),
}

/// One thing that a model does in the course of an answer.
#[derive(Clone, Debug)]
pub enum FakeStep {
    Event(ModelStreamEvent),
    /// Nothing until the gate opens.
    Wait(Gate),
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

    /// A text in pieces, each of which comes once its gate opens, and then the end of the turn.
    pub fn gated_text<'a>(pieces: impl IntoIterator<Item = (&'a Gate, &'a str)>) -> FakeAnswer {
        let (mut steps, mut whole) = (Vec::new(), String::new());
        for (gate, piece) in pieces {
            whole.push_str(piece);
            steps.push(FakeStep::Wait(gate.clone()));
            steps.push(FakeStep::Event(ModelStreamEvent::TextDelta(piece.to_owned())));
        }
        let answer = ModelAnswer { parts: vec![AssistantPart::Text(whole)], stop: ModelStop::EndTurn, usage: USAGE };
        steps.push(FakeStep::Event(ModelStreamEvent::Finished(answer)));
        FakeAnswer::Steps(steps)
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

    /// A model that answers each request by that function.
    pub fn computed(answer: impl Fn(&ModelRequest) -> FakeAnswer + Send + Sync + 'static) -> FakeModel {
        let model = FakeModel::default();
        model.memory.update(|memory| memory.improvise = Some(Arc::new(answer)));
        model
    }

    /// The same with another name.
    #[must_use]
    pub fn named(self, name: &str) -> FakeModel {
        FakeModel { name: name.into(), ..self }
    }

    /// Asked for its limits, it learns these once the gate is open.
    pub fn learns(&self, gate: &Gate, limits: ModelLimits) {
        self.memory.update(|memory| memory.to_learn = Some((gate.clone(), limits)));
    }

    /// Adds to the script.
    pub fn then(&self, script: impl IntoIterator<Item = FakeAnswer>) {
        self.memory.update(|memory| memory.script.extend(script));
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.memory.read(|memory| memory.requests.clone())
    }

    /// Resolves once that many requests have come.
    pub async fn asked(&self, count: usize) {
        self.memory.until(|memory| (memory.requests.len() >= count).then_some(())).await;
    }

    /// Resolves once that many streams were dropped before their terminal event.
    pub async fn aborted(&self, count: usize) {
        self.memory.until(|memory| (memory.aborted >= count).then_some(())).await;
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
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        let learned = self.memory.read(|memory| memory.learned);
        learned.unwrap_or(ModelLimits { context_window: 200_000, max_output_tokens: None })
    }

    fn learn_limits(&self) -> BoxFuture<'_, ()> {
        let to_learn = self.memory.read(|memory| memory.to_learn.clone());
        async move {
            if let Some((gate, limits)) = to_learn {
                gate.pass().await;
                self.memory.update(|memory| memory.learned = Some(limits));
            }
        }
        .boxed()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let (scripted, improvise) = self.memory.update(|memory| {
            memory.requests.push(request.clone());
            (memory.script.pop_front(), memory.improvise.clone())
        });
        let answer = scripted.or_else(|| improvise.map(|answer| answer(&request)));
        let beyond = || FakeAnswer::failure(ModelFailureKind::BadRequest, "");
        let events = events_of(answer.unwrap_or_else(beyond));
        let abort = AbortWitness { memory: Arc::clone(&self.memory), ended: false };
        stream::unfold((events, abort), |(mut events, mut abort)| async move {
            let event = events.next().await;
            abort.ended = event.as_ref().is_none_or(ModelStreamEvent::is_terminal);
            event.map(|event| (event, (events, abort)))
        })
        .boxed()
    }
}

/// Tells the model when its stream is dropped too early.
struct AbortWitness {
    memory: Arc<Watched<Memory>>,
    ended: bool,
}

impl Drop for AbortWitness {
    fn drop(&mut self) {
        if !self.ended {
            self.memory.update(|memory| memory.aborted += 1);
        }
    }
}

/// What every answer is said to have cost.
const USAGE: Usage = Usage { input_tokens: 100, output_tokens: 10, cache_read_tokens: 0, cache_write_tokens: 0 };

fn events_of(answer: FakeAnswer) -> ModelStream {
    match answer {
        FakeAnswer::Says { parts, stop } => {
            let mut events: Vec<ModelStreamEvent> = parts.iter().map(delta).collect();
            events.push(ModelStreamEvent::Finished(ModelAnswer { parts, stop, usage: USAGE }));
            stream::iter(events).boxed()
        }
        FakeAnswer::Fails { text, failure } => {
            stream::iter([ModelStreamEvent::TextDelta(text), ModelStreamEvent::Failed(failure)]).boxed()
        }
        FakeAnswer::Hangs { text } => {
            stream::iter([ModelStreamEvent::TextDelta(text)]).chain(stream::pending()).boxed()
        }
        FakeAnswer::EndsSilently { text } => stream::iter([ModelStreamEvent::TextDelta(text)]).boxed(),
        FakeAnswer::Steps(steps) => stream::iter(steps)
            .filter_map(|step| async {
                match step {
                    FakeStep::Event(event) => Some(event),
                    FakeStep::Wait(gate) => {
                        gate.pass().await;
                        None
                    }
                }
            })
            .boxed(),
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
