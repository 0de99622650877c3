//! The place of the database in the file system: its directory, its file, and the turn to open it.
//!
//! Must not: open the database file while SQLite has it open. Closing any descriptor of a file drops the process's POSIX
//! locks on it, and SQLite's locks are of that kind.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use peri_acp_types::StoreError;

/// How often a taken turn is asked for again. The system has no lock with a time limit.
const TURN_POLL: Duration = Duration::from_millis(5);

/// Where the database is: absolute, links resolved, in a directory that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place(PathBuf);

/// Which file it is, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

/// The exclusive turn to create, migrate or set aside the database. Ends when it is dropped.
pub(super) struct OpeningTurn {
    /// None on a file system without locks, where only SQLite's own locks are left to rely on.
    _lock: Option<File>,
}

impl Place {
    /// Makes the directory where it is missing (mode 0700), and refuses what cannot be a database file.
    pub(super) fn prepare(path: &Path) -> Result<Place, StoreError> {
        let refuse = |reason: &str| StoreError::Failed(format!("cannot open the store {}: {reason}", path.display()));
        let Some(name) = path.file_name() else { return Err(refuse("this is a directory; name a file in it")) };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|error| refuse(&format!("its directory cannot be made: {error}")))?;
        let directory = fs::canonicalize(parent).map_err(|error| refuse(&error.to_string()))?;
        // A link is followed now: SQLite puts its files beside the target.
        let place = match fs::symlink_metadata(directory.join(name)) {
            Ok(found) if found.is_symlink() => fs::canonicalize(directory.join(name))
                .map_err(|error| refuse(&format!("it is a link that cannot be followed: {error}")))?,
            Ok(_) | Err(_) => directory.join(name),
        };
        match fs::metadata(&place) {
            Ok(found) if found.is_dir() => Err(refuse("this is a directory; name a file in it")),
            Ok(found) if !found.is_file() => Err(refuse("this is not a regular file")),
            Ok(_) => Ok(Place(place)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Place(place)),
            Err(error) => Err(refuse(&error.to_string())),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The file beside the database with that ending.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.0.clone().into_os_string();
        path.push(ending);
        PathBuf::from(path)
    }

    /// Which file lies there now; None where there is none.
    pub(super) fn identity(&self) -> Option<FileIdentity> {
        let found = fs::metadata(&self.0).ok()?;
        Some(FileIdentity { device: found.dev(), inode: found.ino() })
    }

    /// Bytes of the database file, 0 where there is none.
    pub(super) fn size(&self) -> u64 {
        fs::metadata(&self.0).map_or(0, |found| found.len())
    }

    /// Makes an empty file that only its owner can read, unless there is one. SQLite gives its own files the same mode.
    pub(super) fn create_private(&self) -> io::Result<()> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.0) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for the turn, at most that long.
    pub(super) fn wait_for_turn(&self, limit: Duration) -> Result<OpeningTurn, StoreError> {
        let path = self.beside(".lock");
        let refuse =
            |reason: String| StoreError::Failed(format!("cannot open the store {}: {reason}", self.0.display()));
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(|error| {
                let path = path.display();
                refuse(format!(
                    "cannot write {path}: {error}. The directory must be writable; --db-path names another place."
                ))
            })?;
        let started = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(OpeningTurn { _lock: Some(lock) }),
                Err(TryLockError::WouldBlock) if started.elapsed() < limit => std::thread::sleep(TURN_POLL),
                Err(TryLockError::WouldBlock) => {
                    let seconds = limit.as_secs();
                    return Err(refuse(format!("another process has been preparing it for more than {seconds} s")));
                }
                Err(TryLockError::Error(_)) => return Ok(OpeningTurn { _lock: None }),
            }
        }
    }
}
