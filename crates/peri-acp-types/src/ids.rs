//! Identity: one newtype per id, so that a turn can never be passed where a session is wanted.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map($name)
            }
        }
    };
}

uuid_id! {
    /// A session, stored as a thread. UUIDv7, or any UUID that a client chose.
    SessionId
}
uuid_id! {
    /// One accepted input and everything that follows from it. UUIDv7.
    TurnId
}
uuid_id! {
    /// One try of a turn at the model. Never reused.
    AttemptId
}
uuid_id! {
    /// One message of a transcript. UUIDv7.
    MessageId
}
uuid_id! {
    /// One compaction of a session's context. UUIDv7.
    CompactionId
}

/// Which process owns the session's writes. Starts at 1 and only grows; a write of an older epoch is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionEpoch(pub u64);

impl SessionEpoch {
    /// The epoch of a thread that nobody has opened for writing yet.
    pub const UNOPENED: SessionEpoch = SessionEpoch(0);

    /// The epoch that the next writer takes.
    #[must_use]
    pub fn next(self) -> SessionEpoch {
        SessionEpoch(self.0 + 1)
    }
}

impl fmt::Display for SessionEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The place of an event within (session, epoch). Gapless where the runtime stamps it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionSeq(pub u64);

/// The main agent (`main`) or a subagent of a session.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AgentId(pub String);

impl AgentId {
    /// The agent that a session starts with.
    pub fn main() -> AgentId {
        AgentId("main".to_owned())
    }
}

/// The provider's id of a tool call. Unique within a session; made up by the model edge where a provider sends none.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ToolCallId(pub String);

impl fmt::Display for ToolCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A client's name for an input that it hands in: sent again, it is the same input. Unique within a session; made up
/// where a client gives none.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CommandId(String);

impl CommandId {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// None where the text is empty, too long, or holds control characters.
    pub fn new(text: impl Into<String>) -> Option<CommandId> {
        let text = text.into();
        let fits = !text.is_empty() && text.len() <= CommandId::MAX_BYTES && !text.contains(char::is_control);
        fits.then_some(CommandId(text))
    }

    /// The name of an input that came without one.
    pub fn of_turn(turn_id: TurnId) -> CommandId {
        CommandId(turn_id.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a cancel names: this session, this turn, this attempt. An older attempt is answered `stale`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TurnKey {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub attempt_id: AttemptId,
}
