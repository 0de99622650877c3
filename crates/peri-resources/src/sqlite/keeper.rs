//! The keeper: the one thread that has the connection, and what it does between requests.
//!
//! SQLite blocks, and waits up to the busy limit for other processes; a thread of its own keeps that off the runtime,
//! whichever runtime it is. Invariant: an operation runs on the file that lies at the path now. A file that was moved or
//! removed under us would take our writes with it, so it is noticed before and after each operation.

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use peri_acp_types::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use super::open::{self, Database, Origin};
use super::trouble::Trouble;
use super::{JournalMode, SqliteConfig, StoreOpenReport};

/// A request, with the way to answer it inside.
pub(super) type Job = Box<dyn FnOnce(&mut Keeper) + Send>;

/// When a write is safe from a loss of power. It is safe from the end of any process at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Durability {
    /// Before it is acknowledged.
    AtOnce,
    /// With the next write that is safe at once. For the steps of opening a session, which come before its first input
    /// and would make the start wait for the disk again and again.
    WithTheNext,
}

/// The state of the thread.
pub(super) struct Keeper {
    config: SqliteConfig,
    database: Option<Database>,
    /// What the first attempt to open met, for the first request.
    opening: Option<StoreError>,
    report: StoreOpenReport,
    /// Dropped once the file is closed.
    closed: Vec<oneshot::Sender<()>>,
}

/// Runs requests in their order until the last handle is gone, then closes the file.
pub(super) fn run(config: SqliteConfig, mut jobs: mpsc::Receiver<Job>) {
    let mut keeper = Keeper::new(config);
    // At once, so that the file is open by the time that it is needed.
    match keeper.open() {
        Ok(database) => keeper.database = Some(database),
        Err(error) => keeper.opening = Some(error),
    }
    while let Some(job) = futures::executor::block_on(jobs.next()) {
        job(&mut keeper);
    }
    if let Some(database) = keeper.database {
        database.close();
    }
}

impl Keeper {
    fn new(config: SqliteConfig) -> Keeper {
        let report = StoreOpenReport { path: config.path.clone(), ..StoreOpenReport::default() };
        Keeper { config, database: None, opening: None, report, closed: Vec::new() }
    }

    /// Whoever waits for that sender's end waits for the file to be closed.
    pub(super) fn tell_when_closed(&mut self, closed: oneshot::Sender<()>) {
        self.closed.push(closed);
    }

    /// Where the store is, as it was asked for.
    pub(super) fn path(&self) -> &std::path::Path {
        &self.config.path
    }

    /// The report, once the database is open.
    pub(super) fn report(&mut self) -> Result<StoreOpenReport, StoreError> {
        self.ready()?;
        Ok(self.report.clone())
    }

    /// Runs a read, all of it at one moment of the store. `doing` completes "cannot ...".
    pub(super) fn read<T>(
        &mut self,
        doing: &str,
        work: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let database = self.ready()?;
        // The transaction ends with its drop: there is nothing to commit.
        let outcome = database.connection.transaction().map_err(Trouble::from).and_then(|tx| work(&tx));
        self.conclude(doing, outcome)
    }

    /// Runs a write: all of it or nothing. `doing` completes "cannot ...".
    pub(super) fn write<T>(
        &mut self,
        doing: &str,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let database = self.ready()?;
        let outcome = set_durability(database, durability).and_then(|()| {
            let tx = database.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&tx)?;
            tx.commit().map_err(Trouble::Commit)?;
            Ok(value)
        });
        let value = self.conclude(doing, outcome)?;
        match &self.database {
            Some(database) if database.is_in_place() => Ok(value),
            Some(_) | None => {
                let path = self.config.path.display();
                Err(StoreError::Unknown(format!("{path} was moved or removed by another program meanwhile")))
            }
        }
    }

    /// The database that lies at the path now.
    fn ready(&mut self) -> Result<&mut Database, StoreError> {
        if let Some(error) = self.opening.take() {
            return Err(error);
        }
        let database = match self.database.take() {
            Some(database) if database.is_in_place() => database,
            Some(_) => {
                let path = self.config.path.display();
                self.report
                    .notices
                    .push(format!("{path} was moved or removed by another program; it was opened anew."));
                self.open()?
            }
            None => self.open()?,
        };
        Ok(self.database.insert(database))
    }

    fn open(&mut self) -> Result<Database, StoreError> {
        let database = open::open(&self.config, &mut self.report.notices)?;
        self.report.path = database.place.path().to_owned();
        self.report.journal = database.journal;
        self.report.created = database.origin == Origin::Created;
        Ok(database)
    }

    fn conclude<T>(&mut self, doing: &str, outcome: Result<T, Trouble>) -> Result<T, StoreError> {
        match outcome {
            Err(trouble) if trouble.is_damage() => Err(self.replace_damaged(trouble)),
            outcome => outcome.map_err(|trouble| trouble.tell(&self.report.path, doing)),
        }
    }

    /// The operation that met the damage fails; the next one finds the new store, with what could be saved.
    fn replace_damaged(&mut self, trouble: Trouble) -> StoreError {
        let Some(Database { connection, place, identity, .. }) = self.database.take() else {
            return trouble.tell(&self.report.path, "use the store");
        };
        drop(connection);
        match open::replace_after_damage(&place, identity, self.config.busy_limit, &trouble) {
            Ok((database, notice)) => {
                self.database = database;
                self.report.notices.push(notice.clone());
                StoreError::Failed(format!("{notice} Nothing was written; try again."))
            }
            Err(error) => error,
        }
    }
}

fn set_durability(database: &Database, durability: Durability) -> Result<(), Trouble> {
    let level = match (durability, database.journal) {
        (Durability::AtOnce, JournalMode::Wal) => "FULL",
        (Durability::WithTheNext, JournalMode::Wal) => "NORMAL",
        // A rollback journal that is not synced at each commit could bring a committed change to nothing.
        (_, JournalMode::Rollback) => "EXTRA",
    };
    Ok(database.connection.pragma_update(None, "synchronous", level)?)
}

#[cfg(test)]
mod tests {
    use peri_acp_types::{SessionId, ThreadMeta};

    use super::*;
    use crate::sqlite::threads;

    fn meta(cwd: String) -> ThreadMeta {
        ThreadMeta {
            id: SessionId(uuid::Uuid::from_u128(u128::try_from(cwd.len()).unwrap())),
            parent_thread_id: None,
            cwd,
            title: None,
            created_at_ms: 0,
            updated_at_ms: 0,
        }
    }

    #[test]
    fn a_full_disk_is_told_and_costs_nothing_that_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut keeper = Keeper::new(SqliteConfig::at(directory.path().join("peri.db")));
        let (small, large) = (meta("/small".to_owned()), meta("/large".repeat(10_000)));
        let create = |keeper: &mut Keeper, meta: &ThreadMeta| {
            keeper.write("add a session", Durability::AtOnce, |connection| threads::create(connection, meta))
        };
        create(&mut keeper, &small).unwrap();
        // A limit of pages fails in the same place and words as a disk without space.
        let limit = |keeper: &mut Keeper, pages: i64| {
            let set =
                keeper.ready().unwrap().connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
            set.unwrap();
        };
        limit(&mut keeper, 1);
        let error = create(&mut keeper, &large).unwrap_err();
        let StoreError::Failed(words) = &error else { panic!("{error:?}") };
        assert!(
            words.contains("cannot add a session") && words.contains("peri.db") && words.contains("free some space")
        );
        let read = |keeper: &mut Keeper, meta: &ThreadMeta| {
            keeper.read("read the session", |connection| threads::load(connection, meta.id)).map(|thread| thread.meta)
        };
        assert_eq!(read(&mut keeper, &small), Ok(small.clone()));
        assert_eq!(read(&mut keeper, &large), Err(StoreError::NotFound(large.id)));
        // With space again, the same store goes on.
        limit(&mut keeper, 100_000);
        create(&mut keeper, &large).unwrap();
        assert_eq!(read(&mut keeper, &large), Ok(large.clone()));
        assert!(keeper.report().unwrap().notices.is_empty());
    }
}
