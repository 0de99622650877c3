//! What went wrong, as JSON-RPC says it. One place, so that a code means one thing.
//!
//! Invariant: -32010 is sent for an incomplete close and for nothing else.

use agent_client_protocol::{Error, ErrorCode};
use peri_acp_types::{TurnEnd, TurnError, as_millis};
use peri_controller::{CloseIncomplete, ControllerError};
use serde_json::json;

use crate::map::extension::turn_ended;

/// Close incomplete: ask again.
const CLOSE_INCOMPLETE: i32 = -32010;
/// The session's or workspace's state stands in the way; the text says what to do.
const WORKSPACE: i32 = -32011;

pub(crate) fn invalid_params(detail: &str) -> Error {
    Error::new(ErrorCode::INVALID_PARAMS, detail)
}

/// A session that is not open on this connection, or not there at all.
pub(crate) fn session_not_found(session_id: &str, detail: &str) -> Error {
    Error::new(ErrorCode::RESOURCE_NOT_FOUND, detail).data(json!({"sessionId": session_id}))
}

pub(crate) fn internal(detail: impl Into<String>, kind: &str) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, detail).data(json!({"kind": kind}))
}

pub(crate) fn from_controller(error: &ControllerError) -> Error {
    let text = error.to_string();
    match error {
        ControllerError::Config(_) if error.wants_authentication() => {
            Error::new(ErrorCode::AUTH_REQUIRED, text).data(json!({"kind": "configuration"}))
        }
        ControllerError::Config(_) => Error::new(WORKSPACE, text).data(json!({"kind": "configuration"})),
        ControllerError::UnknownContext { .. } => Error::new(WORKSPACE, text).data(json!({"kind": "unknown-context"})),
        ControllerError::UnknownAgent(_)
        | ControllerError::RelativeCwd(_)
        | ControllerError::NoSuchCwd(_)
        | ControllerError::OtherCwd { .. } => invalid_params(&text),
        ControllerError::Exists(_) => invalid_params(&text).data(json!({"kind": "session-exists"})),
        ControllerError::AlreadyOpen(_) => invalid_params(&text).data(json!({"kind": "session-open"})),
        ControllerError::NotFound(id) => session_not_found(&id.to_string(), &text),
        ControllerError::ModelName { .. } => invalid_params(&text).data(json!({"kind": "model-name"})),
        ControllerError::Ended(_) => invalid_params(&text).data(json!({"kind": "session-ended"})),
        ControllerError::Held { .. } => Error::new(WORKSPACE, text).data(json!({"kind": "session-held"})),
        ControllerError::Rename(_) => invalid_params(&text).data(json!({"kind": "rename-refused"})),
        ControllerError::Rewind(_) => Error::new(WORKSPACE, text).data(json!({"kind": "rewind-refused"})),
        ControllerError::Prompt(_) => invalid_params(&text).data(json!({"kind": "prompt-refused"})),
        ControllerError::Close(incomplete) => close_incomplete(incomplete),
        ControllerError::Store(_) => internal(text, "store"),
    }
}

fn close_incomplete(incomplete: &CloseIncomplete) -> Error {
    let reasons: Vec<_> = incomplete.reasons.iter().map(|reason| json!({"kind": reason.as_str()})).collect();
    Error::new(CLOSE_INCOMPLETE, incomplete.to_string())
        .data(json!({"reasons": reasons, "retryAfterMs": as_millis(incomplete.retry_after)}))
}

/// A turn that failed. Its `data` has the error's kind first, then the whole end, as in `turn_ended`.
pub(crate) fn turn_failed(error: &TurnError, end: &TurnEnd) -> Error {
    let ended = turn_ended(end);
    let kind = ended.error.as_ref().map(|error| error.kind);
    let failure_kind = ended.error.as_ref().and_then(|error| error.failure_kind);
    let mut data = json!({"kind": kind, "peri": ended});
    if let (Some(data), Some(failure_kind)) = (data.as_object_mut(), failure_kind) {
        data.insert("failureKind".to_owned(), json!(failure_kind));
    }
    Error::new(ErrorCode::INTERNAL_ERROR, error.to_string()).data(data)
}
