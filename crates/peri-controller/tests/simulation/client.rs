//! What the client did and was told, whatever process told it: the ledger that the contract is checked on.

use std::collections::{BTreeMap, BTreeSet};

use peri_acp_types::{
    AttemptId, CommandId, Envelope, InputState, MessageId, QueueSnapshot, QueuedItem, RewindDone, RewindPreview,
    SessionEvent, SteerAnswer, TakeBack, TurnError, TurnId, TurnKey, TurnOutcome,
};
use peri_controller::{AcceptedInput, CancelAnswer, ControllerError, LoadedSession, OpenedSession};

/// The answer to a request, with what was asked.
pub enum Reply {
    Opened(Result<OpenedSession, ControllerError>),
    Loaded(Result<LoadedSession, ControllerError>),
    Prompted { input: usize, answer: Result<AcceptedInput, ControllerError> },
    TakenBack { input: usize, answer: Result<TakeBack, ControllerError> },
    Steered { answer: Result<SteerAnswer, ControllerError> },
    Queue(Result<QueueSnapshot, ControllerError>),
    Cancelled { key: Option<TurnKey>, answer: Result<CancelAnswer, ControllerError> },
    Closed(Result<(), ControllerError>),
    Ended,
    Renamed,
    Previewed { to_before: TurnId, answer: Result<RewindPreview, ControllerError> },
    Rewound(Result<RewindDone, ControllerError>),
    Undone(Result<RewindDone, ControllerError>),
    Changed,
}

/// An input as the client knows it.
pub struct Input {
    pub text: String,
    pub command_id: CommandId,
    /// The life of the process to which it was given.
    pub life: usize,
    pub accepted: Option<AcceptedInput>,
    pub state: Option<InputState>,
    pub taken_back: bool,
}

/// A turn as the client knows it.
#[derive(Default)]
pub struct SeenTurn {
    pub life: usize,
    pub started: bool,
    pub ended: bool,
}

#[derive(Default)]
pub struct Ledger {
    pub life: usize,
    pub inputs: Vec<Input>,
    pub turns: BTreeMap<TurnId, SeenTurn>,
    pub keys: Vec<TurnKey>,
    pub committed: BTreeSet<MessageId>,
    /// Turns that some cancel named.
    pub cancelled: BTreeSet<TurnId>,
    /// A cancel that names no turn, or the end of the client, came in this life.
    pub cancelled_any: bool,
    /// Messages that were in the store at some time.
    pub stored: BTreeSet<MessageId>,
    pub counts: crate::life::Counts,
    /// Everything, in words, for replays.
    pub log: Vec<String>,
}

impl Ledger {
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn note_event(&mut self, envelope: &Envelope) {
        let event = &envelope.event;
        self.log.push(format!("{} {:?}", envelope.session_seq.0, event.event));
        if let SessionEvent::QueueChanged(snapshot) = &event.event {
            self.note_queue(snapshot);
        }
        let Some(turn_id) = event.turn_id else { return };
        let turn = self.turns.entry(turn_id).or_insert_with(|| SeenTurn { life: self.life, ..SeenTurn::default() });
        assert!(!turn.ended, "{turn_id}: {:?} after its end", event.event);
        match &event.event {
            SessionEvent::TurnStarted => {
                assert!(!turn.started, "{turn_id} started twice");
                turn.started = true;
            }
            SessionEvent::AttemptStarted => {
                let attempt_id = event.attempt_id.expect("an attempt");
                let key = TurnKey { session_id: envelope.session_id, turn_id, attempt_id };
                let of_others = self.keys.iter().any(|known| known.attempt_id == attempt_id && *known != key);
                assert!(!of_others, "{attempt_id} is used for two turns");
                if self.keys.last() != Some(&key) {
                    // One that is over never comes back.
                    assert!(!self.keys.contains(&key), "{attempt_id} is used again");
                    self.keys.push(key);
                }
            }
            SessionEvent::StepCommitted { message_id, .. } => {
                self.committed.insert(*message_id);
            }
            SessionEvent::TurnEnded(end) => {
                turn.ended = true;
                let outcome = end.outcome.clone();
                self.note_end(turn_id, &outcome);
            }
            _ => {}
        }
    }

    fn note_end(&mut self, turn_id: TurnId, outcome: &TurnOutcome) {
        match outcome {
            TurnOutcome::Completed(_) => self.count("turn completed"),
            TurnOutcome::Interrupted(TurnError::Cancelled) => {
                self.count("turn cancelled");
                assert!(
                    self.cancelled_any || self.cancelled.contains(&turn_id),
                    "{turn_id} was cancelled, and nobody asked for it"
                );
            }
            TurnOutcome::Interrupted(TurnError::Model(_)) => self.count("turn failed at the model"),
            TurnOutcome::Interrupted(TurnError::Internal(words)) => panic!("{turn_id}: {words}"),
            TurnOutcome::Interrupted(_) => self.count("turn failed otherwise"),
        }
    }

    pub fn note_queue(&mut self, snapshot: &QueueSnapshot) {
        for item in snapshot.waiting.iter().chain(&snapshot.settled) {
            self.note_state(item);
        }
        assert!(snapshot.waiting.iter().all(|item| !item.state.is_final()), "{snapshot:?}");
        assert!(snapshot.settled.iter().all(|item| item.state.is_final()), "{snapshot:?}");
    }

    fn note_state(&mut self, item: &QueuedItem) {
        let life = self.life;
        let known = self.inputs.iter_mut().find(|input| {
            input.life == life
                && (input.command_id == item.command_id
                    || input.accepted.as_ref().is_some_and(|accepted| accepted.command_id == item.command_id))
        });
        let Some(input) = known else { return };
        let (before, now) = (input.state, item.state);
        match before {
            Some(before) if before.is_final() && now.is_final() => {
                return assert_eq!(before, now, "{} changed after its end", item.command_id);
            }
            // Answers and events take different ways to the client, so an older state may come later.
            Some(before) if now <= before => return,
            Some(_) | None => {}
        }
        input.state = Some(now);
        match now {
            InputState::Delivered => self.count("input delivered"),
            InputState::Withdrawn => self.count("input withdrawn"),
            InputState::Unknown => self.count("input unknown"),
            _ => {}
        }
    }

    /// A triple that is over, or any that is known.
    pub fn no_attempt(&self, like: &TurnKey) -> TurnKey {
        TurnKey { attempt_id: "00000000-0000-0000-0000-000000000000".parse::<AttemptId>().expect("an id"), ..*like }
    }
}
