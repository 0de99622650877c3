//! What a campaign hit, and what became of its turns.

use std::fmt;
use std::process::ExitStatus;

use super::history::{History, TurnEnd};
use super::scripted::{Progress, STEPS};
use super::witness::Witness;

/// Where a run was when it was killed, seen from the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillPoint {
    BeforeFirstRequest,
    /// An answer was awaited or under way.
    Streaming,
    /// An answer with calls had been sent: they ran, or were being committed.
    Acting,
    /// The last answer had been sent.
    Ending,
    /// The run had ended before.
    Over,
}

impl KillPoint {
    pub fn of(status: ExitStatus, progress: Progress) -> KillPoint {
        match progress {
            _ if status.code().is_some() => KillPoint::Over,
            Progress { requests: 0, .. } => KillPoint::BeforeFirstRequest,
            Progress { requests, answers_sent } if answers_sent < requests => KillPoint::Streaming,
            Progress { requests, .. } if requests < STEPS => KillPoint::Acting,
            Progress { .. } => KillPoint::Ending,
        }
    }
}

/// The figures of a campaign.
#[derive(Default)]
pub struct Tally {
    pub kills: Vec<KillPoint>,
    runs: usize,
    completed: usize,
    pub interrupted: usize,
}

impl Tally {
    /// Adds those of a session that has come to its end.
    pub fn add_turns(&mut self, witness: &Witness) {
        let count = |end| witness.history().map_or(0, |history: &History| history.count(end));
        self.runs += witness.printed.len();
        self.completed += count(TurnEnd::Completed);
        self.interrupted += count(TurnEnd::Interrupted);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |point| self.kills.iter().filter(|kill| **kill == point).count();
        write!(
            f,
            "{} kills: {} before the first request, {} during a stream, {} during tools and their commit, {} at the end of \
             the turn, {} after it; of {} turns {} are complete, {} marked as interrupted, {} left no trace",
            self.kills.len(),
            count(KillPoint::BeforeFirstRequest),
            count(KillPoint::Streaming),
            count(KillPoint::Acting),
            count(KillPoint::Ending),
            count(KillPoint::Over),
            self.runs,
            self.completed,
            self.interrupted,
            self.runs - self.completed - self.interrupted,
        )
    }
}
