//! Damage: the file is moved aside with everything that belongs to it, and what can still be read is copied.
//!
//! Invariant: no byte of a damaged store is changed or removed. Callers hold the opening turn.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use peri_acp_types::{SessionId, StoreError};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::open::connect;
use super::place::Place;
use super::threads;
use super::trouble::Trouble;

/// What SQLite keeps beside a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Sessions that a report names before it only counts.
const NAMED_SESSIONS: usize = 10;

/// A write-ahead log with content beside an empty or missing database. SQLite would throw the log away.
pub(super) fn is_log_without_database(place: &Place) -> bool {
    place.size() == 0 && fs::metadata(place.beside("-wal")).is_ok_and(|log| log.is_file() && log.len() > 0)
}

/// Moves the database and its companions to `<name>.damaged-<ms>`, and gives that path.
pub(super) fn set_aside(place: &Place) -> Result<PathBuf, StoreError> {
    let aside = free_name(place);
    // The database first: should we die in between, the log that is left is found without a database and moved as well.
    let moved = rename_if_there(place.path(), &aside).and_then(|()| {
        COMPANIONS.iter().try_for_each(|ending| {
            let mut target = aside.clone().into_os_string();
            target.push(ending);
            rename_if_there(&place.beside(ending), Path::new(&target))
        })
    });
    match moved {
        Ok(()) => Ok(aside),
        Err(error) => Err(StoreError::Failed(format!(
            "the store {} is damaged and cannot be moved aside: {error}. Move it away by hand, with the files beside it.",
            place.path().display()
        ))),
    }
}

/// A name for people, with the time in it; counted up where it is taken.
fn free_name(place: &Place) -> PathBuf {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut stamp = now.as_millis();
    loop {
        let name = place.beside(&format!(".damaged-{stamp}"));
        if fs::symlink_metadata(&name).is_err() {
            return name;
        }
        stamp += 1;
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// What came of copying a damaged store.
#[derive(Default)]
pub(super) struct Salvage {
    copied: usize,
    /// Sessions that could not be read whole; empty too where not even the list could be read.
    lost: Vec<String>,
    /// Why the list of sessions is not whole, if it is not.
    list_failure: Option<String>,
}

impl Salvage {
    pub(super) fn report(&self, path: &Path, aside: &Path, cause: &str) -> String {
        let mut text = format!(
            "The store {} was damaged ({cause}). It was moved to {}, as it was. {} sessions were read whole and copied to a \
             new store.",
            path.display(),
            aside.display(),
            self.copied
        );
        if !self.lost.is_empty() {
            let named: Vec<&str> = self.lost.iter().take(NAMED_SESSIONS).map(String::as_str).collect();
            text.push_str(&format!(" {} could not be read whole: {}", self.lost.len(), named.join(", ")));
            text.push_str(if self.lost.len() > NAMED_SESSIONS { ", and more." } else { "." });
        }
        if let Some(failure) = &self.list_failure {
            text.push_str(&format!(" There may have been more: the list of sessions was not whole ({failure})."));
        }
        text
    }
}

/// Copies every thread that reads whole from the damaged store into the new one.
pub(super) fn salvage(aside: &Path, into: &mut Connection) -> Salvage {
    let mut salvage = Salvage::default();
    // Read only: nothing is written to what may be evidence.
    let damaged = match connect(aside, OpenFlags::SQLITE_OPEN_READ_ONLY, Duration::ZERO) {
        Ok(damaged) => damaged,
        Err(error) => {
            salvage.list_failure = Some(error.to_string());
            return salvage;
        }
    };
    let (mut waiting, failure) = thread_ids(&damaged);
    salvage.list_failure = failure;
    let mut copied: HashSet<SessionId> = HashSet::new();
    // Parents before their children: as long as one round copies something, the next may find its parent.
    loop {
        let before = waiting.len();
        waiting.retain(|text| match copy(&damaged, into, text, &copied) {
            Copied::Whole(id) => {
                copied.insert(id);
                false
            }
            Copied::NotYet => true,
            Copied::Unreadable => {
                salvage.lost.push(text.clone());
                false
            }
        });
        if waiting.len() == before || waiting.is_empty() {
            break;
        }
    }
    salvage.copied = copied.len();
    salvage.lost.extend(waiting);
    salvage
}

enum Copied {
    Whole(SessionId),
    /// Its parent is not there.
    NotYet,
    Unreadable,
}

fn copy(damaged: &Connection, into: &mut Connection, text: &str, copied: &HashSet<SessionId>) -> Copied {
    let Ok(id) = text.parse::<SessionId>() else { return Copied::Unreadable };
    let Ok(thread) = threads::load_whole(damaged, id) else { return Copied::Unreadable };
    if thread.meta.parent_thread_id.is_some_and(|parent| !copied.contains(&parent)) {
        return Copied::NotYet;
    }
    let written =
        into.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Trouble::from).and_then(|tx| {
            threads::insert_whole(&tx, &thread)?;
            tx.commit().map_err(Trouble::Commit)
        });
    match written {
        Ok(()) => Copied::Whole(id),
        Err(_) => Copied::Unreadable,
    }
}

/// The ids that can be read by either way: the table itself, and the index of its key.
fn thread_ids(damaged: &Connection) -> (BTreeSet<String>, Option<String>) {
    let mut ids = BTreeSet::new();
    let mut failure = None;
    for sql in ["SELECT id FROM threads NOT INDEXED", "SELECT id FROM threads ORDER BY id"] {
        let read = damaged.prepare(sql).and_then(|mut statement| {
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                ids.insert(row.get::<_, String>(0)?);
            }
            Ok(())
        });
        if let Err(error) = read {
            failure = Some(error.to_string());
        }
    }
    (ids, failure)
}
