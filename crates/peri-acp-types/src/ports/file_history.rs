//! Files as the agent found them and left them, kept outside the workspace and outside git.

use crate::{FileRewind, RewindDone, SessionId, TurnId};

/// Knows what the agent's own tools did to files, turn by turn. Commands that the agent runs are not followed.
///
/// Invariant: a file is only ever changed if it is, byte for byte and mode for mode, what the agent left.
#[async_trait::async_trait]
pub trait FileHistory: Send + Sync {
    /// What taking these turns back would do: each file once, in the order of the paths. Changes nothing.
    ///
    /// # Errors
    /// In words, where the history cannot be read.
    async fn preview(&self, session: SessionId, turns: &[TurnId]) -> Result<Vec<FileRewind>, String>;

    /// Takes these turns back. Each file is looked at again; one that is no longer what the agent left is left alone.
    /// Dropping the future may leave some files taken back and others not; what was done is kept, so that it can be undone.
    ///
    /// # Errors
    /// In words, where the history cannot be read or written; nothing was changed then.
    async fn restore(&self, session: SessionId, turns: &[TurnId]) -> Result<RewindDone, String>;

    /// Undoes the last [`FileHistory::restore`] of the session that was not undone. None where there is none.
    ///
    /// # Errors
    /// As for `restore`.
    async fn undo_restore(&self, session: SessionId) -> Result<Option<RewindDone>, String>;

    /// Forgets everything of a session. Forgetting what is not known succeeds.
    ///
    /// # Errors
    /// In words.
    async fn forget(&self, session: SessionId) -> Result<(), String>;
}

/// A history that knows of no change: where files are not reached through Peri.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFileHistory;

#[async_trait::async_trait]
impl FileHistory for NoFileHistory {
    async fn preview(&self, _session: SessionId, _turns: &[TurnId]) -> Result<Vec<FileRewind>, String> {
        Ok(Vec::new())
    }

    async fn restore(&self, _session: SessionId, _turns: &[TurnId]) -> Result<RewindDone, String> {
        Ok(RewindDone::default())
    }

    async fn undo_restore(&self, _session: SessionId) -> Result<Option<RewindDone>, String> {
        Ok(None)
    }

    async fn forget(&self, _session: SessionId) -> Result<(), String> {
        Ok(())
    }
}
