//! Our values as the extension's JSON forms.

use peri_acp_types::{
    AssistantMessage, AssistantPart, Content, ModelFailure, ModelFailureKind, ModelStop, NoticeKind, StopReason,
    ToolResult, TurnEnd, TurnError, TurnOutcome, Usage, as_millis,
};

use super::tool::raw_input;
use crate::extension as wire;

pub(crate) fn failure(failure: &ModelFailure) -> wire::Failure {
    wire::Failure {
        kind: failure_kind(failure.kind),
        message: failure.message.clone(),
        model: failure.model.clone(),
        status: failure.status,
        retryable: failure.kind.is_retryable(),
    }
}

fn failure_kind(kind: ModelFailureKind) -> wire::FailureKind {
    match kind {
        ModelFailureKind::Connect => wire::FailureKind::Connect,
        ModelFailureKind::RateLimited => wire::FailureKind::RateLimited,
        ModelFailureKind::Overloaded => wire::FailureKind::Overloaded,
        ModelFailureKind::Server => wire::FailureKind::Server,
        ModelFailureKind::Cut => wire::FailureKind::Cut,
        ModelFailureKind::IdleTimeout => wire::FailureKind::IdleTimeout,
        ModelFailureKind::Auth => wire::FailureKind::Auth,
        ModelFailureKind::ContextTooLong => wire::FailureKind::ContextTooLong,
        ModelFailureKind::BadRequest => wire::FailureKind::BadRequest,
        ModelFailureKind::Protocol => wire::FailureKind::Protocol,
    }
}

pub(crate) fn usage(usage: &Usage) -> wire::Usage {
    wire::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
    }
}

pub(crate) fn notice_kind(kind: NoticeKind) -> wire::NoticeKind {
    match kind {
        NoticeKind::Configuration => wire::NoticeKind::Configuration,
        NoticeKind::LoopGuard => wire::NoticeKind::LoopGuard,
        NoticeKind::Interrupted => wire::NoticeKind::Interrupted,
        NoticeKind::Capability => wire::NoticeKind::Capability,
        NoticeKind::Store => wire::NoticeKind::Store,
    }
}

pub(crate) fn step_message(message: &AssistantMessage) -> wire::StepMessage {
    wire::StepMessage {
        model: message.model.clone(),
        stop: match message.stop {
            ModelStop::EndTurn => wire::StepStop::EndTurn,
            ModelStop::ToolUse => wire::StepStop::ToolUse,
            ModelStop::MaxTokens => wire::StepStop::MaxTokens,
            ModelStop::Refusal => wire::StepStop::Refusal,
            ModelStop::Other => wire::StepStop::Other,
        },
        usage: usage(&message.usage),
        parts: message.parts.iter().map(step_part).collect(),
    }
}

fn step_part(part: &AssistantPart) -> wire::StepPart {
    match part {
        AssistantPart::Text(text) => wire::StepPart::Text { text: text.clone() },
        AssistantPart::Thought(thought) => {
            wire::StepPart::Thought { text: thought.text.clone(), signature: thought.signature.clone() }
        }
        AssistantPart::ToolCall(call) => wire::StepPart::ToolCall {
            id: call.id.0.clone(),
            name: call.name.clone(),
            arguments: raw_input(&call.arguments),
        },
    }
}

pub(crate) fn step_result(result: &ToolResult) -> wire::StepResult {
    wire::StepResult {
        call_id: result.call_id.0.clone(),
        is_error: result.output.is_error,
        content: result.output.content.iter().map(step_content).collect(),
    }
}

fn step_content(content: &Content) -> wire::StepContent {
    match content {
        Content::Text(text) => wire::StepContent::Text { text: text.clone() },
        Content::Image(image) => {
            wire::StepContent::Image { mime_type: image.mime_type.clone(), data: image.base64.clone() }
        }
        Content::Resource { uri, mime_type, text } => {
            wire::StepContent::Resource { uri: uri.clone(), mime_type: mime_type.clone(), text: text.clone() }
        }
    }
}

pub(crate) fn turn_ended(end: &TurnEnd) -> wire::TurnEnded {
    let (outcome, stop_reason, error) = match &end.outcome {
        TurnOutcome::Completed(reason) => (wire::Outcome::Completed, Some(stop_reason(*reason)), None),
        TurnOutcome::Interrupted(error) => (wire::Outcome::Interrupted, None, Some(turn_failure(error))),
    };
    wire::TurnEnded {
        outcome,
        stop_reason,
        error,
        usage: usage(&end.usage),
        steps: end.steps,
        elapsed_ms: as_millis(end.elapsed),
    }
}

fn stop_reason(reason: StopReason) -> wire::StopReason {
    match reason {
        StopReason::EndTurn => wire::StopReason::EndTurn,
        StopReason::MaxTokens => wire::StopReason::MaxTokens,
        StopReason::MaxTurnRequests => wire::StopReason::MaxTurnRequests,
        StopReason::Refusal => wire::StopReason::Refusal,
    }
}

fn turn_failure(error: &TurnError) -> wire::TurnFailure {
    let (kind, failure_kind) = match error {
        TurnError::Cancelled => (wire::TurnFailureKind::Cancelled, None),
        TurnError::Model(failure) => (wire::TurnFailureKind::Model, Some(failure_kind(failure.kind))),
        TurnError::Store(_) => (wire::TurnFailureKind::Store, None),
        TurnError::Command { .. } => (wire::TurnFailureKind::Command, None),
        TurnError::Internal(_) => (wire::TurnFailureKind::Internal, None),
    };
    wire::TurnFailure { kind, message: error.to_string(), failure_kind }
}
