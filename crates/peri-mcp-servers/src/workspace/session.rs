//! What one server instance remembers: its roots, the files that the model has read, the tasks of its terminal.
//!
//! Must not outlive the connection: [`Session::end`] leaves no process behind.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::files::SeenFiles;
use super::paths::Territory;
use super::terminal::Tasks;

/// How long the end of a session waits for work on files.
const WORK_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Session {
    pub(super) territory: Territory,
    pub(super) seen: SeenFiles,
    pub(super) tasks: Tasks,
    /// Held from checking a file to replacing it, so that of two changes at once the second sees the first.
    change: Mutex<()>,
    /// Work on threads, which a process that ends would cut off.
    work: TaskTracker,
}

impl Session {
    pub(super) fn new(territory: Territory, tasks: Tasks) -> Session {
        Session { territory, seen: SeenFiles::default(), tasks, change: Mutex::new(()), work: TaskTracker::new() }
    }

    /// Waits until no other change to a file is under way. Only for threads that may block.
    pub(super) fn changing(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be kept by work on a thread until it is done.
    pub(super) fn work_begins(&self) -> TaskTrackerToken {
        self.work.token()
    }

    /// Ends every task of the terminal and waits, for a bounded time, until their processes are gone. What may be left
    /// is told, a line each. Waits for changes to files, too.
    pub(super) async fn end(&self) -> Vec<String> {
        self.work.close();
        let may_be_left = self.tasks.end().await;
        tokio::select! {
            () = self.work.wait() => {}
            () = self.tasks.clock().sleep(WORK_LIMIT) => {}
        }
        may_be_left
    }
}
