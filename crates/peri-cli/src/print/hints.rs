//! What to do about a failure that came over ACP.
//!
//! Owns: the hints. Must not: change what the agent said.

use agent_client_protocol::{Error, ErrorCode};
use peri_acp::extension::{FailureKind, TurnFailure, TurnFailureKind};

use crate::exit::{Exit, Failure, StopSignal};

/// For a session that can go on. A run that keeps nothing has none: see [`without_session`].
const GO_ON: &str = "peri -p -c \"go on\" continues in this session";

/// A run that a signal ended.
pub fn signalled(signal: StopSignal) -> Failure {
    let failure = Failure { exit: Exit::Signal(signal), ..Failure::run(format!("stopped by {}", signal.name())) };
    failure.hint(GO_ON)
}

/// The failure as it is told where the session is gone with the run.
pub fn without_session(failure: Failure) -> Failure {
    let hint = failure.hint.filter(|hint| hint != GO_ON);
    Failure { hint, ..failure }
}

/// A turn that failed.
pub fn turn_failure(error: &TurnFailure) -> Failure {
    let failure = Failure::run(error.message.clone());
    match (error.kind, error.failure_kind) {
        (TurnFailureKind::Model, Some(kind)) => failure.hint(model_hint(kind)),
        (TurnFailureKind::Store, _) => failure.hint(STORE_HINT),
        _ => failure,
    }
}

fn model_hint(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Connect => "is the endpoint up? peri config check names its address",
        FailureKind::Auth => "the endpoint does not take the key; peri config check names where it comes from",
        FailureKind::ContextTooLong => "start a new session, or name fewer files",
        FailureKind::BadRequest => "is the model's name right? peri config check shows it",
        FailureKind::Protocol => "does the endpoint speak the provider's protocol? peri config show",
        FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::Server
        | FailureKind::Cut
        | FailureKind::IdleTimeout
        | FailureKind::Unknown => GO_ON,
    }
}

/// A request that the agent refused. What it says is whole; the kind tells what can be added.
pub fn refused_request(error: &Error) -> Failure {
    let kind = error.data.as_ref().and_then(|data| data.get("kind")).and_then(|kind| kind.as_str()).unwrap_or_default();
    let message = error.message.clone();
    match (error.code, kind) {
        (_, "session-exists") => Failure::usage(message).hint("--resume goes on in it"),
        (_, "session-open") => Failure::usage(message),
        (_, "configuration") => Failure::usage(message).hint("peri config check"),
        (_, "unknown-context") => Failure::usage(message).hint("peri sessions show prints what was said in it"),
        (_, "store") => Failure::run(message).hint(STORE_HINT),
        (ErrorCode::RESOURCE_NOT_FOUND, _) => {
            Failure::usage(message).hint("peri sessions list --all shows those there are")
        }
        (ErrorCode::INVALID_PARAMS, _) => Failure::usage(message),
        _ => Failure::run(message),
    }
}

const STORE_HINT: &str = "the file of sessions is named by peri config path; --db-path or PERI_HOME choose another";
