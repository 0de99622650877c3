//! Rewind and rename: what a session does between turns.
//!
//! Owns: why they are refused, and the fingerprint of a preview. Must not: know where files or their history are.
//! Invariant: a rewind does what its preview said, or nothing.

use peri_acp_types::StoreError;

/// Why a session was not taken back, nor forth.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RewindRefused {
    #[error("the session is closing or closed")]
    Ended,
    #[error("a turn runs or waits; cancel it, or let it end")]
    TurnActive,
    #[error("there is no such turn in the conversation")]
    NoSuchTurn,
    #[error("something has changed since the preview; look at a new one")]
    StalePreview,
    #[error("there is no rewind that can be undone: there was none, or something was said since")]
    NothingToUndo,
    #[error("the file history: {0}")]
    Files(String),
    /// Where files were to be taken back too, they were.
    #[error("the conversation could not be changed: {0}")]
    Store(StoreError),
}

/// Why a session kept its title.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RenameRefused {
    #[error("the session is closing or closed")]
    Ended,
    #[error("a turn runs; wait for its end")]
    TurnActive,
    #[error("a title is one line of 1 to 200 characters, without control characters")]
    NotATitle,
    #[error("the title could not be stored: {0}")]
    Store(StoreError),
}
