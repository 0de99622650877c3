//! The tables and how they come to be: numbered migrations, each applied once and never edited afterwards.
//!
//! Invariant: a database of another program or of a newer version is told apart before anything is written to it.

use rusqlite::{Connection, TransactionBehavior};

use super::trouble::Trouble;

/// In the file's header, so that `--db-path` cannot make tables in another program's database.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Peri");

/// In the order of their numbers. A database's `user_version` says how many of them it has had.
const MIGRATIONS: [&str; 2] =
    [include_str!("migrations/0001_threads.sql"), include_str!("migrations/0002_rewinds_and_summaries.sql")];

/// The form that this version reads and writes.
pub(super) const SCHEMA_VERSION: i32 = MIGRATIONS.len() as i32;

/// What a file that SQLite can read turns out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SchemaState {
    /// Nothing in it yet.
    Empty,
    /// Ours, from an earlier version.
    Older,
    Current,
    /// Ours, from a later version.
    Newer(i32),
    /// Another program's.
    Foreign,
}

/// Looks, and writes nothing.
pub(super) fn schema_state(connection: &Connection) -> Result<SchemaState, rusqlite::Error> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version) {
        (0, 0) if tables == 0 => SchemaState::Empty,
        (APPLICATION_ID, SCHEMA_VERSION) => SchemaState::Current,
        (APPLICATION_ID, 0..SCHEMA_VERSION) => SchemaState::Older,
        (APPLICATION_ID, newer) => SchemaState::Newer(newer),
        _ => SchemaState::Foreign,
    })
}

/// Applies the migrations that the database has not had, all or none.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Trouble> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let applied: i32 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(applied).unwrap_or(0)) {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    tx.commit().map_err(Trouble::Commit)
}
