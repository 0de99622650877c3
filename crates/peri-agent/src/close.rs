//! Close: what can stand in its way, in words that a machine can read.

use std::time::Duration;

/// The session is not settled; ask again. Over ACP this is error -32010 and nothing else is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the session is not settled yet: {}", reasons.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(", "))]
pub struct CloseIncomplete {
    pub reasons: Vec<CloseReason>,
    pub retry_after: Duration,
}

/// Why a close is incomplete. An open list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// A turn runs: cancel first, then close.
    PromptActive,
    /// Tasks or resources of the session are not confirmed to be gone.
    TasksActive,
    /// The store has not confirmed the last writes.
    StoreUnsettled,
    /// The intent to close could not be stored.
    CloseIntentUnconfirmed,
    /// The client has not taken the session's last events.
    EventsUndelivered,
}

impl CloseReason {
    /// The word in `data.reasons[].kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            CloseReason::PromptActive => "prompt-active",
            CloseReason::TasksActive => "tasks-active",
            CloseReason::StoreUnsettled => "store-unsettled",
            CloseReason::CloseIntentUnconfirmed => "close-intent-unconfirmed",
            CloseReason::EventsUndelivered => "events-undelivered",
        }
    }
}
