//! Opening: from a path to a database that is sound, ours and current.
//!
//! Invariant: whatever must change for that (creating, migrating, setting damage aside) happens in an exclusive turn, and
//! is decided on what is found within that turn. A database that needs nothing is opened without waiting for anybody.

use std::path::Path;
use std::time::Duration;

use peri_acp_types::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::damage;
use super::place::{FileIdentity, Place};
use super::schema::{self, SCHEMA_VERSION, SchemaState};
use super::trouble::Trouble;
use super::{JournalMode, SqliteConfig};

const OPENING: &str = "open the store";
/// Statements that stay prepared: room for every one that there is.
const STATEMENTS: usize = 32;

/// An open database.
pub(super) struct Database {
    pub connection: Connection,
    pub place: Place,
    /// The file that `connection` has open.
    pub identity: Option<FileIdentity>,
    pub journal: JournalMode,
    pub origin: Origin,
}

impl Database {
    /// Whether the file that we have open is the one at its path.
    pub(super) fn is_in_place(&self) -> bool {
        self.place.identity() == self.identity
    }

    /// The orderly end. A failure loses nothing: the log stays, and the next open reads it.
    pub(super) fn close(self) {
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }
}

/// How the database came to be here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Found,
    Created,
}

/// Opens or makes the database. What the user should know goes to `notices`.
pub(super) fn open(config: &SqliteConfig, notices: &mut Vec<String>) -> Result<Database, StoreError> {
    let place = Place::prepare(&config.path)?;
    if let Some(database) = open_if_ready(&place, config.busy_limit) {
        return Ok(database);
    }
    let _turn = place.wait_for_turn(config.busy_limit)?;
    if damage::is_log_without_database(&place) {
        let aside = damage::set_aside(&place)?;
        notices.push(format!(
            "The store {} was empty, but its log was not: it has lost its content. Its files were moved to {}; a new, empty \
             store was made.",
            place.path().display(),
            aside.display()
        ));
    }
    match open_in_turn(&place, config.busy_limit) {
        Err(trouble) if trouble.is_damage() => {
            let (database, notice) = replace_damaged(&place, config.busy_limit, &trouble)?;
            notices.push(notice);
            Ok(database)
        }
        opened => opened.map_err(|trouble| trouble.tell(place.path(), OPENING)),
    }
}

/// After damage was met in an open database (whose connection is closed by now): sets it aside like [`open`] does, unless
/// another process has done so already. Gives what the user should know.
pub(super) fn replace_after_damage(
    place: &Place,
    damaged: Option<FileIdentity>,
    busy_limit: Duration,
    trouble: &Trouble,
) -> Result<(Option<Database>, String), StoreError> {
    let _turn = place.wait_for_turn(busy_limit)?;
    if place.identity() != damaged {
        let path = place.path().display();
        return Ok((None, format!("The store {path} was damaged, and another process has moved it away already.")));
    }
    let (database, notice) = replace_damaged(place, busy_limit, trouble)?;
    Ok((Some(database), notice))
}

fn replace_damaged(place: &Place, busy_limit: Duration, trouble: &Trouble) -> Result<(Database, String), StoreError> {
    let aside = damage::set_aside(place)?;
    let mut database = open_in_turn(place, busy_limit).map_err(|trouble| trouble.tell(place.path(), OPENING))?;
    let salvage = damage::salvage(&aside, &mut database.connection);
    let notice = salvage.report(place.path(), &aside, &trouble.cause());
    Ok((database, notice))
}

/// Opens a database that is there and needs nothing. None for any other, and for any difficulty: the turn decides then.
fn open_if_ready(place: &Place, busy_limit: Duration) -> Option<Database> {
    if place.size() == 0 {
        return None;
    }
    let identity = place.identity();
    let connection = connect(place.path(), OpenFlags::SQLITE_OPEN_READ_WRITE, busy_limit).ok()?;
    if schema::schema_state(&connection).ok()? != SchemaState::Current {
        return None;
    }
    let journal = journal_mode(&connection).ok()?;
    // Another file may have taken the name since.
    if journal != JournalMode::Wal || place.identity() != identity {
        return None;
    }
    Some(Database { connection, place: place.clone(), identity, journal, origin: Origin::Found })
}

fn open_in_turn(place: &Place, busy_limit: Duration) -> Result<Database, Trouble> {
    let path = place.path();
    place.create_private().map_err(|error| {
        StoreError::Failed(format!(
            "cannot {OPENING}: {}: {error}. The directory must be writable; --db-path names another place.",
            path.display()
        ))
    })?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_limit)?;
    let state = match schema::schema_state(&connection) {
        Err(error) if needs_no_log(&error) => {
            fall_back(path, &mut connection, busy_limit)?;
            schema::schema_state(&connection)
        }
        state => state,
    }?;
    if state == SchemaState::Empty {
        refuse_remains(place, &connection)?;
    }
    match state {
        SchemaState::Empty | SchemaState::Older | SchemaState::Current => {}
        SchemaState::Newer(version) => {
            return Err(refuse(
                path,
                &format!(
                    "it was written by a newer version of Peri (form {version}; this one reads up to form {SCHEMA_VERSION}). It \
                 was left as it is. Use that version, or name another file with --db-path."
                ),
            ));
        }
        SchemaState::Foreign => {
            return Err(refuse(
                path,
                "it is a database of another program. It was left as it is; name another file with --db-path.",
            ));
        }
    }
    // Here nothing is acknowledged yet; the first write that is syncs what comes before it.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let journal = settle_journal(path, &mut connection, busy_limit)?;
    if state != SchemaState::Current {
        schema::migrate(&mut connection)?;
    }
    let origin = if state == SchemaState::Empty { Origin::Created } else { Origin::Found };
    Ok(Database { connection, place: place.clone(), identity: place.identity(), journal, origin })
}

/// Less than a page is nothing to SQLite. But it was something.
fn refuse_remains(place: &Place, connection: &Connection) -> Result<(), Trouble> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    match place.size() {
        size if size > 0 && pages == 0 => Err(Trouble::Damage(format!("its {size} bytes are less than a page"))),
        _ => Ok(()),
    }
}

fn refuse(path: &Path, reason: &str) -> Trouble {
    Trouble::Answer(StoreError::Failed(format!("cannot {OPENING} {}: {reason}", path.display())))
}

/// A connection with our settings. Reads and writes nothing yet.
pub(super) fn connect(path: &Path, access: OpenFlags, busy_limit: Duration) -> Result<Connection, rusqlite::Error> {
    // One thread has it, so SQLite need not guard it. No URI: a path that begins with `file:` is a path.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(busy_limit)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // No session's text in files of SQLite's choosing.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Finds a garbage page when it is read, not when it is misunderstood.
    connection.pragma_update(None, "cell_size_check", true)?;
    // Only an orderly end moves the log into the database and removes it: see `Database::close`.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Asks for a write-ahead log and reads back what it got; a rollback journal where the file system cannot carry the log.
fn settle_journal(path: &Path, connection: &mut Connection, busy_limit: Duration) -> Result<JournalMode, Trouble> {
    let asked = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    // The log's index is shared memory; only a read proves that this file system has it.
    let proof =
        asked.and_then(|_| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)));
    match proof {
        Ok(_) => Ok(journal_mode(connection)?),
        Err(error) if needs_no_log(&error) => fall_back(path, connection, busy_limit),
        Err(error) => Err(error.into()),
    }
}

/// Failures that the write-ahead log may be the reason of.
fn needs_no_log(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::SystemIoFailure
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

/// The file may say already that it has a log that cannot be opened here: alone, a connection needs no shared memory.
fn fall_back(path: &Path, connection: &mut Connection, busy_limit: Duration) -> Result<JournalMode, Trouble> {
    let mut alone = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_limit)?;
    std::mem::swap(connection, &mut alone);
    drop(alone);
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0))?;
    connection.pragma_update(None, "locking_mode", "NORMAL")?;
    // The lock goes with the next read.
    Ok(journal_mode(connection)?)
}

fn journal_mode(connection: &Connection) -> Result<JournalMode, rusqlite::Error> {
    // A read first: the mode is known once the file has been.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok(if mode == "wal" { JournalMode::Wal } else { JournalMode::Rollback })
}
