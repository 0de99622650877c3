//! What a print run shows, out of what an ACP agent says.
//!
//! Owns: the one place that looks into ACP updates; renderers see [`Happening`]s. Invariant: each thing that happens comes by
//! one of ACP's two ways: text and tool calls by updates, the rest by Peri's events.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
};
use peri_acp::extension::{EventBody, Failure, NoticeKind, StepMessage, StepResult, TurnEnded, Usage};

use super::client::FromAgent;

/// Something that a renderer may show.
#[derive(Debug)]
pub enum Happening {
    AttemptStarted,
    /// A piece of the answer. Void if its attempt fails.
    Text(String),
    /// A piece of the reasoning, likewise.
    Thought(String),
    ToolAnnounced {
        id: String,
        name: String,
    },
    ToolStarted {
        id: String,
        title: String,
    },
    ToolFinished {
        id: String,
        result: ToolEnd,
    },
    AttemptFailed {
        failure: Failure,
        retry_in_ms: Option<u64>,
    },
    Answered {
        usage: Usage,
    },
    StepCommitted {
        message_id: String,
        message: StepMessage,
        results: Vec<StepResult>,
    },
    Notice {
        kind: NoticeKind,
        text: String,
    },
    TurnEnded(TurnEnded),
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolEnd {
    Completed,
    Failed,
}

impl Happening {
    /// None for what print does not show.
    pub fn of(message: FromAgent) -> Option<Happening> {
        match message {
            FromAgent::Update(update) => of_update(*update),
            FromAgent::Event(event) => of_event(event.body),
        }
    }
}

fn of_update(update: SessionUpdate) -> Option<Happening> {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => text_of(chunk).map(Happening::Text),
        SessionUpdate::AgentThoughtChunk(chunk) => text_of(chunk).map(Happening::Thought),
        SessionUpdate::ToolCall(call) => of_call(call),
        SessionUpdate::ToolCallUpdate(update) => of_call_update(update),
        // Plans, modes, commands and figures have no place in print's formats; the enum is open.
        _ => None,
    }
}

fn text_of(chunk: ContentChunk) -> Option<String> {
    match chunk.content {
        ContentBlock::Text(text) => Some(text.text),
        _ => None,
    }
}

fn of_call(call: ToolCall) -> Option<Happening> {
    let id = call.tool_call_id.to_string();
    match call.status {
        ToolCallStatus::Pending => Some(Happening::ToolAnnounced { id, name: call.name.unwrap_or(call.title) }),
        ToolCallStatus::InProgress => Some(Happening::ToolStarted { id, title: call.title }),
        status => finished(id, status),
    }
}

fn of_call_update(update: ToolCallUpdate) -> Option<Happening> {
    let id = update.tool_call_id.to_string();
    match update.fields.status? {
        ToolCallStatus::InProgress => {
            Some(Happening::ToolStarted { id, title: update.fields.title.unwrap_or_default() })
        }
        status => finished(id, status),
    }
}

fn finished(id: String, status: ToolCallStatus) -> Option<Happening> {
    match status {
        ToolCallStatus::Completed => Some(Happening::ToolFinished { id, result: ToolEnd::Completed }),
        ToolCallStatus::Failed => Some(Happening::ToolFinished { id, result: ToolEnd::Failed }),
        _ => None,
    }
}

fn of_event(body: EventBody) -> Option<Happening> {
    match body {
        EventBody::TurnStarted | EventBody::Unknown => None,
        EventBody::AttemptStarted => Some(Happening::AttemptStarted),
        EventBody::AttemptFailed { failure, retry_in_ms } => Some(Happening::AttemptFailed { failure, retry_in_ms }),
        EventBody::LlmCallEnd { usage, .. } => Some(Happening::Answered { usage }),
        EventBody::StepCommitted { message_id, message, results } => {
            Some(Happening::StepCommitted { message_id, message, results })
        }
        EventBody::Notice { kind, text } => Some(Happening::Notice { kind, text }),
        EventBody::TurnEnded(end) => Some(Happening::TurnEnded(end)),
    }
}
