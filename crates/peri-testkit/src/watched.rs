//! A value that a test can wait on, from a thread or from a task, without ever sleeping to see whether it has changed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How long a wait lasts before the test is taken to be stuck. The machine that runs the tests may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A shared value whose changes wake those who wait.
#[derive(Debug, Default)]
pub struct Watched<T> {
    value: Mutex<T>,
    threads: Condvar,
    tasks: Notify,
}

impl<T> Watched<T> {
    pub fn new(value: T) -> Watched<T> {
        Watched { value: Mutex::new(value), threads: Condvar::new(), tasks: Notify::new() }
    }

    /// Changes the value and wakes all who wait.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.threads.notify_all();
        self.tasks.notify_waiters();
        result
    }

    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    /// Resolves once `look` gives something.
    pub async fn until<R>(&self, mut look: impl FnMut(&T) -> Option<R>) -> R {
        loop {
            let changed = self.tasks.notified();
            tokio::pin!(changed);
            // Before the look, so that a change right after it is not missed.
            changed.as_mut().enable();
            if let Some(found) = self.read(&mut look) {
                return found;
            }
            changed.await;
        }
    }

    /// Blocks the thread until `look` gives something.
    ///
    /// # Panics
    /// After [`PATIENCE`], naming what was waited for.
    #[track_caller]
    pub fn block_until<R>(&self, awaited: &str, mut look: impl FnMut(&T) -> Option<R>) -> R {
        let mut found = None;
        let guard = self.lock();
        let waited = self.threads.wait_timeout_while(guard, PATIENCE, |value| {
            found = look(value);
            found.is_none()
        });
        drop(waited);
        found.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for {awaited}"))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
