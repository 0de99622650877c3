//! Holds: which session a live process has open, by an advisory lock on a small file beside the database.
//!
//! Must not: decide whether a write is good; that is the epoch's. Invariant: a lock counts only while its file is the one
//! at the path, so that a file that its holder removed is never mistaken for a claim.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use peri_acp_types::ports::SessionHold;
use peri_acp_types::{SessionId, StoreError};

/// A file that is removed whenever it has been locked is gone after a few tries, or somebody holds it.
const TRIES: usize = 16;

/// Claims the session. Where the file system has no locks, anybody gets a hold.
pub(super) fn take(database: &Path, id: SessionId) -> Result<SessionHold, StoreError> {
    let path = lock_file(database, id);
    for _ in 0..TRIES {
        let Some(file) = open(&path) else { return Ok(SessionHold::default()) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(StoreError::Held { id, holder: holder(&path) }),
            Err(TryLockError::Error(_)) => return Ok(SessionHold::default()),
            Ok(()) if is_at(&file, &path) => {
                sign(&file);
                return Ok(SessionHold::new(Claim { file, path }));
            }
            // Its holder removed it between our open and our lock.
            Ok(()) => {}
        }
    }
    Ok(SessionHold::default())
}

/// Removes what is left of a claim on a session that is gone.
pub(super) fn forget(database: &Path, id: SessionId) {
    // A hold on it, ours usually, removes the file when it ends.
    if let Ok(hold) = take(database, id) {
        drop(hold);
    }
}

fn lock_file(database: &Path, id: SessionId) -> PathBuf {
    let mut folder = database.as_os_str().to_owned();
    folder.push(".sessions");
    PathBuf::from(folder).join(format!("{id}.lock"))
}

fn open(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).ok().or_else(|| {
        DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?).ok()?;
        options.open(path).ok()
    })
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Who we are, for whoever finds the file locked. A courtesy: what cannot be written is not known there.
fn sign(mut file: &File) {
    let _ = file.set_len(0);
    let _ = file.write_all(std::process::id().to_string().as_bytes());
}

fn holder(path: &Path) -> String {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(20).read_to_string(&mut text));
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("process {pid}"),
        _ => "which one is not known".to_owned(),
    }
}

struct Claim {
    file: File,
    path: PathBuf,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Still locked: nobody else can have taken the file that is removed.
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}
