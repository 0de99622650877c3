//! Replacing a file in one step, while holding off other writers of ours.
//!
//! Invariant: a reader sees the old bytes or the new ones, whole; a crash leaves one of the two.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use tempfile::Builder;

/// How often a lock that somebody else holds is tried for.
const LOCK_TRIES: usize = 1000;
/// The wait between two tries.
const LOCK_WAIT: Duration = Duration::from_millis(5);

/// Makes the folder and those above it; private to the user where they are new.
pub(super) fn make_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Holds off every other writer of that folder that locks it too. Freed by dropping it, or by the system if we die.
///
/// The folder itself is locked: a lock file would litter a workspace and count as one of its files.
pub(super) fn lock_dir(dir: &Path) -> io::Result<File> {
    let folder = File::open(dir)?;
    for _ in 0..LOCK_TRIES {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            // The caller's thread waits, so the wait is short and bounded; holders are done within milliseconds.
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_WAIT),
            // File systems without such locks: what is left is the comparison of revisions right before the write.
            Err(TryLockError::Error(_)) => return Ok(folder),
        }
    }
    Err(io::Error::new(ErrorKind::WouldBlock, format!("{} is locked by another process", dir.display())))
}

/// Puts the bytes in the file's place. An existing file's mode is kept, a new file is private to the user. `target` is no
/// link, and its folder is locked.
pub(super) fn replace_file(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = target.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    let mut new = Builder::new().prefix(".peri-").suffix(".tmp").tempfile_in(dir)?;
    new.write_all(bytes)?;
    if let Ok(metadata) = fs::metadata(target) {
        new.as_file().set_permissions(metadata.permissions())?;
    }
    new.as_file().sync_all()?;
    new.persist(target).map_err(|error| error.error)?;
    // The rename itself is to survive a power cut as well.
    File::open(dir)?.sync_all()
}
