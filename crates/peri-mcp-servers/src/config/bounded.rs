//! Reading a small file that somebody else may have put there.
//!
//! Invariant: no read of a workspace's file waits for anything but the disk, or takes more memory than the bound.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// What may stand at the path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Accept {
    /// A regular file, or a link to one. What a repository brings along: a named pipe there must not hold Peri up.
    RegularFile,
    /// Whatever can be read to an end: `/dev/null`, a pipe of the shell. For paths that the user gave.
    Anything,
}

/// The bytes of the file, `limit` at most; None where there is none.
pub(super) fn read_bounded(path: &Path, accept: Accept, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let file = match open(path, accept) {
        Ok(file) => file,
        // Not a directory: a part of the path is a file, so that nothing can be below it.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error),
    };
    if accept == Accept::RegularFile && !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(Some(bytes))
}

fn open(path: &Path, accept: Accept) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    if accept == Accept::RegularFile {
        // Opening a named pipe would wait for its writer otherwise; a regular file does not mind.
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32);
    }
    options.open(path)
}
