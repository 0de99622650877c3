//! Rewinding: taking a session back to before one of its turns. The conversation is the thread's, files are the file
//! history's; what a person is shown and asked to confirm is here.

use crate::TurnId;

/// What is taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RewindScope {
    Conversation,
    Files,
    Both,
}

impl RewindScope {
    pub fn conversation(self) -> bool {
        matches!(self, RewindScope::Conversation | RewindScope::Both)
    }

    pub fn files(self) -> bool {
        matches!(self, RewindScope::Files | RewindScope::Both)
    }
}

/// A turn to which a session can be taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewindTarget {
    pub turn_id: TurnId,
    /// Unix time in milliseconds of its input.
    pub at_ms: i64,
    /// The beginning of its input, in one line.
    pub preview: String,
}

/// What a rewind to before a turn would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewindPreview {
    /// Stands for everything in this preview: a rewind that names it does that or nothing.
    pub fingerprint: String,
    /// Messages that would leave the conversation.
    pub messages: u64,
    pub files: Vec<FileRewind>,
}

/// A file that the agent changed since, and what would become of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRewind {
    /// Absolute.
    pub path: String,
    pub action: FileAction,
    /// Why it would be left alone; None where nothing stands in the way.
    pub left_alone: Option<LeftAlone>,
}

/// What happens to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAction {
    /// Its content and mode go back to what they were.
    Restore,
    /// It was deleted since and comes back.
    Recreate,
    /// It was created since and goes away.
    Remove,
}

/// Why a file is left as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftAlone {
    /// Somebody else changed it after the agent did, or between the agent's changes.
    ChangedByOthers,
    /// It is not what it was: a directory or a link lies there, say, or it cannot be read. In words.
    Unusable(String),
}

/// What a rewind, or its undoing, did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RewindDone {
    /// Messages that left the conversation, or came back.
    pub messages: u64,
    /// Files that are as they were.
    pub restored: Vec<FileRewind>,
    /// Files that were left alone, each with its reason.
    pub left: Vec<FileRewind>,
}
