//! What a model answers: a stream of events with exactly one terminal event, the last.

use futures::stream::BoxStream;
use peri_acp_types::{AssistantPart, ModelFailure, ModelStop, ToolCallId, Usage};

/// An answer under way. It never yields a Rust error: a failure is its terminal event. Dropping it aborts the request.
pub type ModelStream = BoxStream<'static, ModelStreamEvent>;

/// One event of an answer.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelStreamEvent {
    TextDelta(String),
    ThoughtDelta(String),
    /// A tool call began; its arguments are still to come.
    ToolCallStarted {
        id: ToolCallId,
        name: String,
    },
    /// Terminal: the answer is whole.
    Finished(ModelAnswer),
    /// Terminal: what came so far is void.
    Failed(ModelFailure),
}

impl ModelStreamEvent {
    /// True for the last event of a stream.
    pub fn is_terminal(&self) -> bool {
        matches!(self, ModelStreamEvent::Finished(_) | ModelStreamEvent::Failed(_))
    }
}

/// A whole answer. Deltas are for display; this is what counts.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelAnswer {
    /// Parts in the order of the wire's indices. Empty text parts are left out.
    pub parts: Vec<AssistantPart>,
    pub stop: ModelStop,
    pub usage: Usage,
}
