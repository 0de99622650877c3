//! The input queue as everybody sees it: what waits for the running turn, and what became of it.
//!
//! Owns the states and their words. The queue itself is the session actor's, in memory: a restart forgets it.

use crate::{CommandId, Content, TurnId};

/// Where an input is. It goes from left to right and never back: `Queued -> Dispatching -> Claimed -> Delivered`, or from
/// `Queued` to `Withdrawn`, or from anywhere before `Delivered` to `Unknown`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum InputState {
    /// It waits, and can be taken back.
    Queued,
    /// Its turn comes, or the running turn takes it in at its next Receive. It cannot be taken back any more.
    Dispatching,
    /// Receive has it.
    Claimed,
    /// It is in the transcript: acknowledged.
    Delivered,
    /// It was taken back, or cleared by a cancel, or refused by the command that it begins with. It is not in the transcript.
    Withdrawn,
    /// Whether it reached the transcript is not known: the store did not say.
    Unknown,
}

impl InputState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            InputState::Queued => "queued",
            InputState::Dispatching => "dispatching",
            InputState::Claimed => "claimed",
            InputState::Delivered => "delivered",
            InputState::Withdrawn => "withdrawn",
            InputState::Unknown => "unknown",
        }
    }

    /// True where nothing more will happen to it.
    pub fn is_final(self) -> bool {
        match self {
            InputState::Queued | InputState::Dispatching | InputState::Claimed => false,
            InputState::Delivered | InputState::Withdrawn | InputState::Unknown => true,
        }
    }
}

/// When an input is to reach the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Delivery {
    /// With a turn of its own, after those before it.
    #[default]
    OwnTurn,
    /// At the next Receive of the running turn, as part of it. Where no turn runs, or it ends before, a turn of its own.
    Steer,
}

/// An input as it is handed in.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptInput {
    pub content: Vec<Content>,
    /// None: one is made up.
    pub command_id: Option<CommandId>,
    pub delivery: Delivery,
}

impl PromptInput {
    /// An input with a turn of its own and no name.
    pub fn new(content: Vec<Content>) -> PromptInput {
        PromptInput { content, command_id: None, delivery: Delivery::OwnTurn }
    }
}

/// An input in a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuedItem {
    pub command_id: CommandId,
    /// The turn that it has, or would have; the one that it joined once it was steered in.
    pub turn_id: TurnId,
    pub state: InputState,
    pub delivery: Delivery,
    /// The beginning of its text, in one line, for people.
    pub preview: String,
}

/// The queue at one moment. A snapshot replaces every earlier one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueSnapshot {
    /// Inputs that are not settled, in the order in which they will run.
    pub waiting: Vec<QueuedItem>,
    /// The last that were settled, oldest first: bounded, so a client that looks seldom may miss some.
    pub settled: Vec<QueuedItem>,
}

/// The answer to a take-back.
#[derive(Clone, PartialEq, Debug)]
pub enum TakeBack {
    /// It will not run; this is what it said.
    Withdrawn(Vec<Content>),
    /// It cannot be taken back any more, or has been already.
    TooLate(InputState),
    /// No input of that name is known here. It may have been one of an earlier process: nothing is known of it.
    NoSuchInput,
}

/// The answer to a steer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SteerAnswer {
    /// The running turn takes it in at its next Receive, or it has a turn of its own if that turn ends before.
    Steering,
    /// No turn runs, or the input is not waiting any more: this is where it is.
    TooLate(InputState),
    NoSuchInput,
}
