//! Reading a small file that somebody else may have put there.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// A regular file, found and not yet read.
pub(super) struct SmallFile {
    /// Canonical as far as the caller made it so.
    pub path: PathBuf,
    pub identity: (u64, u64),
    pub size: u64,
}

/// Looks without opening. None where there is nothing.
///
/// # Errors
/// What keeps it from being a file to read, in words.
pub(super) fn find(path: &Path) -> Result<Option<SmallFile>, String> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            let identity = (found.dev(), found.ino());
            Ok(Some(SmallFile { path: path.to_owned(), identity, size: found.len() }))
        }
        // Never opened: opening a pipe can wait for ever, and a device can do anything.
        Ok(_) => Err("is not a regular file".to_owned()),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads at most `limit` bytes of what was found, provided that it is still the same file.
pub(super) fn read(file: &SmallFile, limit: u64) -> io::Result<Vec<u8>> {
    // Between looking and opening somebody may have put a link or a pipe there.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = File::from(rustix::fs::open(&file.path, flags, Mode::empty())?);
    let found = opened.metadata()?;
    if !found.is_file() || (found.dev(), found.ino()) != file.identity {
        return Err(io::Error::other("was replaced while it was read"));
    }
    let mut bytes = Vec::new();
    opened.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The file's beginning as text; None where it is not there or no file to read.
pub(super) fn read_beginning(path: &Path, limit: u64) -> Option<String> {
    let file = find(path).ok()??;
    Some(String::from_utf8_lossy(&read(&file, limit).ok()?).into_owned())
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
