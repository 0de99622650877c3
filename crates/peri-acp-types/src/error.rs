//! Errors at the borders between layers. Inside a layer, context is free-form; here a caller can act on the variant.

use std::fmt;
use std::time::Duration;

use crate::{SessionEpoch, SessionId};

/// Why a turn was cut short.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum TurnError {
    #[error("cancelled")]
    Cancelled,
    #[error("{0}")]
    Model(ModelFailure),
    #[error("{0}")]
    Store(StoreError),
    /// A command that the input begins with could not be run. The input was not taken into the thread.
    #[error("/{name} could not be run: {reason}")]
    Command { name: String, reason: String },
    /// An invariant of ours broke; the text says which.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A model request that failed. It is the last event of its stream, never a Rust error of the stream itself.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelFailure {
    pub kind: ModelFailureKind,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// In the provider's own words where it sent some. Bounded, and free of secrets.
    pub message: String,
    /// HTTP status, if an answer came.
    pub status: Option<u16>,
    /// The provider's Retry-After.
    pub retry_after: Option<Duration>,
    /// Body bytes received before the failure.
    pub received_bytes: u64,
    /// From sending the request.
    pub elapsed: Duration,
}

impl fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed ({}", self.model, self.kind.words())?;
        if let Some(status) = self.status {
            write!(f, ", HTTP {status}")?;
        }
        write!(f, ", {} bytes received, {:.1} s): {}", self.received_bytes, self.elapsed.as_secs_f64(), self.message)
    }
}

/// What a caller can do about a model failure depends on this alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelFailureKind {
    /// No connection, or no answer on it.
    Connect,
    /// HTTP 429.
    RateLimited,
    /// HTTP 529, or an overload error inside the stream.
    Overloaded,
    /// Another 5xx, or a server error inside the stream.
    Server,
    /// The stream closed with neither finish reason nor end marker.
    Cut,
    /// No byte for the idle limit.
    IdleTimeout,
    /// HTTP 401 or 403.
    Auth,
    /// The input does not fit the model's window.
    ContextTooLong,
    /// Another 4xx.
    BadRequest,
    /// An answer that is not the protocol.
    Protocol,
}

impl ModelFailureKind {
    /// True where the same request may well succeed a little later.
    pub fn is_retryable(self) -> bool {
        match self {
            ModelFailureKind::Connect
            | ModelFailureKind::RateLimited
            | ModelFailureKind::Overloaded
            | ModelFailureKind::Server
            | ModelFailureKind::Cut
            | ModelFailureKind::IdleTimeout => true,
            ModelFailureKind::Auth
            | ModelFailureKind::ContextTooLong
            | ModelFailureKind::BadRequest
            | ModelFailureKind::Protocol => false,
        }
    }

    /// A few words for people.
    pub fn words(self) -> &'static str {
        match self {
            ModelFailureKind::Connect => "no connection",
            ModelFailureKind::RateLimited => "rate limited",
            ModelFailureKind::Overloaded => "overloaded",
            ModelFailureKind::Server => "server error",
            ModelFailureKind::Cut => "stream cut",
            ModelFailureKind::IdleTimeout => "idle timeout",
            ModelFailureKind::Auth => "not authorised",
            ModelFailureKind::ContextTooLong => "context too long",
            ModelFailureKind::BadRequest => "request refused",
            ModelFailureKind::Protocol => "unreadable answer",
        }
    }
}

/// A store operation that failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no session {0}")]
    NotFound(SessionId),
    #[error("session {0} exists already")]
    Exists(SessionId),
    /// Another process took the session over; the write was refused whole.
    #[error("another process has taken over this session (epoch {current}, ours is {ours}); nothing was written")]
    Fenced { ours: SessionEpoch, current: SessionEpoch },
    /// Another live process has the session open for writing.
    #[error("session {id} is open in another process ({holder}); close it there, or take it over")]
    Held {
        id: SessionId,
        /// What is known of the process, in words: `process 4711`.
        holder: String,
    },
    /// The change breaks a rule of the thread; the write was refused whole.
    #[error("refused by the thread's rules: {0}")]
    Rule(#[from] crate::ThreadRuleError),
    /// A record of a newer or damaged form. What can be read stays readable.
    #[error("unreadable record in the store: {0}")]
    Unreadable(String),
    /// The operation did not happen. The text names file and cause.
    #[error("{0}")]
    Failed(String),
    /// The operation may or may not have happened.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}
