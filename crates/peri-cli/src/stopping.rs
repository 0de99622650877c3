//! An end that was asked for: how long each part of it may take.
//!
//! Owns: the deadlines of a cancelled turn and of its processes. Invariant: no child outlives the request by two seconds,
//! whatever the turn does meanwhile.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::exit::StopSignal;

/// How long a cancelled turn may end its own tools before their processes are ended for it. With the half second that
/// the process host gives them, no child outlives a signal by two seconds.
const CANCEL_GRACE: Duration = Duration::from_millis(1000);
/// How long a cancelled turn is waited for in all. History stays sound without it: the next run marks the turn.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// How long the processes of a run may take to be gone.
pub const CHILDREN_LIMIT: Duration = Duration::from_secs(2);

/// Work that is being ended early, or not yet.
#[derive(Default)]
pub struct Stopping {
    signal: Option<StopSignal>,
    begun: Option<Instant>,
    children: Children,
}

#[derive(Default, PartialEq, Eq)]
enum Children {
    #[default]
    LeftToTheTurn,
    Ended,
}

impl Stopping {
    /// The end is asked for, by a signal or (None) by something else. The first request sets the deadlines.
    pub fn begin(&mut self, signal: Option<StopSignal>) {
        self.signal = self.signal.or(signal);
        self.begun.get_or_insert_with(Instant::now);
    }

    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// The first signal that asked.
    pub fn signal(&self) -> Option<StopSignal> {
        self.signal
    }

    pub fn children_ended(&mut self) {
        self.children = Children::Ended;
    }

    /// Resolves when the turn has had its time to end its own processes; never while it is not being ended.
    pub async fn children_due(&self) {
        match self.begun {
            Some(begun) if self.children == Children::LeftToTheTurn => sleep_until(begun + CANCEL_GRACE).await,
            _ => std::future::pending().await,
        }
    }

    /// Resolves when nothing more is waited for; never while it is not being ended.
    pub async fn given_up(&self) {
        match self.begun {
            Some(begun) => sleep_until(begun + CANCEL_LIMIT).await,
            None => std::future::pending().await,
        }
    }
}
