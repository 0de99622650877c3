//! What one server instance remembers: its roots, the files that the model has read, the tasks of its terminal.
//!
//! Must not outlive the connection: [`Session::end`] leaves no process behind.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::files::SeenFiles;
use super::paths::Territory;
use super::terminal::Tasks;

pub(super) struct Session {
    pub(super) territory: Territory,
    pub(super) seen: SeenFiles,
    pub(super) tasks: Tasks,
    /// Held from checking a file to replacing it, so that of two changes at once the second sees the first.
    change: Mutex<()>,
}

impl Session {
    pub(super) fn new(territory: Territory, tasks: Tasks) -> Session {
        Session { territory, seen: SeenFiles::default(), tasks, change: Mutex::new(()) }
    }

    /// Waits until no other change to a file is under way. Only for threads that may block.
    pub(super) fn changing(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every task of the terminal and waits, for a bounded time, until their processes are gone. What may be left
    /// is told, a line each.
    pub(super) async fn end(&self) -> Vec<String> {
        self.tasks.end().await
    }
}
