//! What can go wrong below the port, and what the caller is told of it.

use std::path::Path;

use peri_acp_types::{StoreError, ThreadRuleError};
use rusqlite::ErrorCode;

/// Why an operation on the database did not end well.
#[derive(Debug)]
pub(super) enum Trouble {
    /// An answer that the port's contract knows.
    Answer(StoreError),
    /// SQLite failed before anything was committed.
    Sqlite(rusqlite::Error),
    /// The COMMIT itself failed.
    Commit(rusqlite::Error),
    /// Damage that SQLite does not call so, in words.
    Damage(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Answer(error)
    }
}

impl From<ThreadRuleError> for Trouble {
    fn from(error: ThreadRuleError) -> Trouble {
        Trouble::Answer(StoreError::Rule(error))
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Sqlite(error)
    }
}

impl Trouble {
    /// The file is no sound database.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Trouble::Answer(_) => false,
            Trouble::Damage(_) => true,
            Trouble::Sqlite(error) | Trouble::Commit(error) => is_damage(error),
        }
    }

    /// What SQLite or the port says, without the place.
    pub(super) fn cause(&self) -> String {
        match self {
            Trouble::Answer(error) => error.to_string(),
            Trouble::Sqlite(error) | Trouble::Commit(error) => error.to_string(),
            Trouble::Damage(words) => words.clone(),
        }
    }

    /// In the words of the port. `doing` completes "cannot ...".
    pub(super) fn tell(self, path: &Path, doing: &str) -> StoreError {
        match self {
            Trouble::Answer(error) => error,
            Trouble::Damage(words) => StoreError::Failed(format!("cannot {doing}: {}: {words}", path.display())),
            Trouble::Sqlite(error) => StoreError::Failed(describe(path, doing, &error)),
            // The commit's record may have reached the disk before the failure, and then counts at the next open.
            Trouble::Commit(error) if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => {
                StoreError::Unknown(describe(path, doing, &error))
            }
            Trouble::Commit(error) => StoreError::Failed(describe(path, doing, &error)),
        }
    }
}

/// SQLite's two ways to say that the file is no sound database.
fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What failed, on which file, why, and what helps.
fn describe(path: &Path, doing: &str, error: &rusqlite::Error) -> String {
    let what = format!("cannot {doing}: {}: {error}", path.display());
    match hint(error) {
        Some(hint) => format!("{what}. {hint}"),
        None => what,
    }
}

fn hint(error: &rusqlite::Error) -> Option<&'static str> {
    match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Some("Nothing was written; free some space on that disk and try again."),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Some("Another process has kept it locked; nothing was written. Try again when it is done.")
        }
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            Some("The file and its directory must be writable; --db-path names another place.")
        }
        _ => None,
    }
}
