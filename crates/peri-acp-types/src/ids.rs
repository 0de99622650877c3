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

/// What a cancel names: this session, this turn, this attempt. An older attempt is answered `stale`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TurnKey {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub attempt_id: AttemptId,
}
