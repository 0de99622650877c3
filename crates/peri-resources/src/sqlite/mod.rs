//! The local store: one SQLite file, any number of processes.
//!
//! Owns the file, its tables and their migrations (docs/protocol/store-format.md). Must not: judge changes, which is the
//! reducer's, or block a runtime, which is why one thread of its own does the work. Invariant: a write that was
//! acknowledged is in the file, whole, whatever kills the process; a write that was not is there whole or not at all.

#![expect(clippy::disallowed_types, reason = "native only: this is where the store meets the file system")]

mod commit;
mod damage;
mod hold;
mod keeper;
mod open;
mod place;
mod schema;
mod threads;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use futures::SinkExt;
use futures::channel::{mpsc, oneshot};
use peri_acp_types::ports::{MessagePage, SessionHold, ThreadHead, ThreadPage, ThreadQuery, ThreadStore};
use peri_acp_types::{FrozenBlob, SessionEpoch, SessionId, StoreError, Thread, ThreadChange, ThreadMeta};

use keeper::{Durability, Job, Keeper};

/// Requests that wait for the thread before a further caller waits to hand its own over.
const WAITING_REQUESTS: usize = 16;

/// Where the store is and how patient it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqliteConfig {
    /// The database file. Made where it is missing, with its directory.
    pub path: PathBuf,
    /// How long an operation waits for other processes before it fails.
    pub busy_limit: Duration,
}

impl SqliteConfig {
    /// The usual patience: longer than any transaction of ours, even with many processes in line.
    pub fn at(path: impl Into<PathBuf>) -> SqliteConfig {
        SqliteConfig { path: path.into(), busy_limit: Duration::from_secs(10) }
    }
}

/// What came of opening the store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoreOpenReport {
    /// The database file, links resolved.
    pub path: PathBuf,
    pub journal: JournalMode,
    /// There was no store; this is a new one.
    pub created: bool,
    /// What the user must be told, a sentence or more each: damage that was moved aside, a file that was replaced.
    pub notices: Vec<String>,
}

/// How SQLite keeps a transaction whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum JournalMode {
    /// A write-ahead log: readers and a writer side by side.
    #[default]
    Wal,
    /// A rollback journal, where the file system cannot carry the log.
    Rollback,
}

/// A store in one SQLite file. Cheap to open: the thread does it, and what goes wrong there is the first operation's error.
///
/// Dropping it closes the file once the requests under way are done, without waiting for that. A process that ends
/// earlier loses nothing that was acknowledged.
pub struct SqliteStore {
    jobs: mpsc::Sender<Job>,
}

impl SqliteStore {
    /// Starts the store's thread, which opens the file.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where no thread can be started.
    pub fn open(config: SqliteConfig) -> Result<SqliteStore, StoreError> {
        let (jobs, waiting) = mpsc::channel(WAITING_REQUESTS);
        std::thread::Builder::new()
            .name("peri-store".to_owned())
            .spawn(move || keeper::run(config, waiting))
            .map_err(|error| StoreError::Failed(format!("cannot start the store's thread: {error}")))?;
        Ok(SqliteStore { jobs })
    }

    /// Waits until the file is open and tells what came of it. May be asked again: notices are added when there are new
    /// ones, and never removed.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where the file cannot be opened; every operation would fail alike.
    pub async fn report(&self) -> Result<StoreOpenReport, StoreError> {
        self.ask(Keeper::report).await
    }

    /// Waits until the requests under way are done and the file is closed. Never needed for safety; it spares the next
    /// open the reading of the log.
    pub async fn close(self) {
        let (closed, wait) = oneshot::channel::<()>();
        let mut jobs = self.jobs;
        // The sender is dropped with the thread's state, after the file is closed.
        let keep: Job = Box::new(|keeper| keeper.tell_when_closed(closed));
        if jobs.send(keep).await.is_ok() {
            drop(jobs);
            let _ = wait.await;
        }
    }

    /// Runs a request on the store's thread. Dropping the future does not stop a request that was handed over.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Keeper) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(|keeper| {
            // Nobody listens where the caller was dropped.
            let _ = reply.send(work(keeper));
        });
        let mut jobs = self.jobs.clone();
        jobs.send(job).await.map_err(|_| StoreError::Failed("the store's thread has ended".to_owned()))?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the store's thread ended at the request".to_owned())))
    }
}

#[async_trait::async_trait]
impl ThreadStore for SqliteStore {
    async fn create(&self, meta: &ThreadMeta) -> Result<(), StoreError> {
        let meta = meta.clone();
        let work = move |keeper: &mut Keeper| {
            keeper.write("add a session", Durability::WithTheNext, |connection| threads::create(connection, &meta))
        };
        self.ask(work).await
    }

    async fn load(&self, id: SessionId) -> Result<Thread, StoreError> {
        self.ask(move |keeper| keeper.read("read the session", |connection| threads::load(connection, id))).await
    }

    async fn head(&self, id: SessionId) -> Result<ThreadHead, StoreError> {
        self.ask(move |keeper| keeper.read("read the session", |connection| threads::head_of(connection, id))).await
    }

    async fn page(&self, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, StoreError> {
        let work = move |keeper: &mut Keeper| {
            keeper.read("read the session", |connection| threads::page(connection, id, from, limit))
        };
        self.ask(work).await
    }

    async fn fork(&self, source: SessionId, meta: &ThreadMeta) -> Result<(), StoreError> {
        let meta = meta.clone();
        let work = move |keeper: &mut Keeper| {
            keeper.write("copy the session", Durability::WithTheNext, |connection| {
                threads::fork(connection, source, &meta)
            })
        };
        self.ask(work).await
    }

    async fn hold(&self, id: SessionId) -> Result<SessionHold, StoreError> {
        self.ask(move |keeper| hold::take(keeper.path(), id)).await
    }

    async fn take_epoch(&self, id: SessionId, expected: SessionEpoch) -> Result<SessionEpoch, StoreError> {
        let work = move |keeper: &mut Keeper| {
            keeper.write("open the session", Durability::WithTheNext, |connection| {
                threads::take_epoch(connection, id, expected)
            })
        };
        self.ask(work).await
    }

    async fn freeze(&self, id: SessionId, epoch: SessionEpoch, blob: &FrozenBlob) -> Result<(), StoreError> {
        let blob = blob.clone();
        let work = move |keeper: &mut Keeper| {
            keeper.write("save the session's context", Durability::WithTheNext, |connection| {
                threads::freeze(connection, id, epoch, &blob)
            })
        };
        self.ask(work).await
    }

    async fn commit(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        changes: &[ThreadChange],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let changes = changes.to_vec();
        let work = move |keeper: &mut Keeper| {
            keeper.write("save the session", Durability::AtOnce, |connection| {
                commit::commit(connection, id, epoch, &changes, now_ms)
            })
        };
        self.ask(work).await
    }

    async fn put_close_intent(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.set_close_intent(id, epoch, Some(epoch)).await
    }

    async fn settle_close(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.set_close_intent(id, epoch, None).await
    }

    async fn list(&self, query: &ThreadQuery) -> Result<ThreadPage, StoreError> {
        let query = query.clone();
        self.ask(move |keeper| keeper.read("list the sessions", |connection| threads::list(connection, &query))).await
    }

    async fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        let work = move |keeper: &mut Keeper| {
            keeper.write("delete the session", Durability::AtOnce, |connection| threads::delete(connection, id))?;
            hold::forget(keeper.path(), id);
            Ok(())
        };
        self.ask(work).await
    }
}

impl SqliteStore {
    async fn set_close_intent(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        intent: Option<SessionEpoch>,
    ) -> Result<(), StoreError> {
        let work = move |keeper: &mut Keeper| {
            keeper.write("record the session's close", Durability::AtOnce, |connection| {
                threads::set_close_intent(connection, id, epoch, intent)
            })
        };
        self.ask(work).await
    }
}
