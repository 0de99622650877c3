//! Changes a file's content in one step: a new file beside it, then a rename over it.
//!
//! Must not decide whether a file may be changed. Invariants: the path holds the old content or the new, never a part;
//! nothing is replaced that is not what the caller loaded; no link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, RawMode, Stat, Uid};
use rustix::io::Errno;

use super::WHOLE_FILE_BYTES;
use crate::workspace::paths::{
    OpenError, OpenedFile, Resolved, open_directory, open_directory_in, open_file, regular, stat_in,
};

/// A file's content, and what it was when that was read.
pub(crate) struct Loaded {
    pub(crate) bytes: Vec<u8>,
    stat: Stat,
}

/// Why a file keeps its old content.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("it is larger than 16 MiB")]
    TooLarge,
    #[error("it is write-protected")]
    WriteProtected,
    #[error("somebody else changed it at this moment; read it again")]
    ChangedMeanwhile,
    #[error("{step}: {source}")]
    Io { step: &'static str, source: io::Error },
}

/// Reads a regular file whole. Blocks.
pub(crate) fn load(path: &Path) -> Result<Loaded, ReplaceError> {
    let OpenedFile { file, stat } = open_file(path)?;
    let mut bytes = Vec::new();
    file.take(WHOLE_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed("reading it"))?;
    if bytes.len() as u64 > WHOLE_FILE_BYTES {
        return Err(ReplaceError::TooLarge);
    }
    Ok(Loaded { bytes, stat })
}

/// Puts new content in the place of what was loaded, with the same mode and, as far as we may, the same owner. Blocks.
pub(crate) fn replace(path: &Path, loaded: &Loaded, bytes: &[u8]) -> Result<(), ReplaceError> {
    let (directory, name) = parent_of(path)?;
    writable(&directory, name)?;
    // Not readable by others before it has the mode of the original.
    let new = NewFile::create(&directory, Mode::RUSR | Mode::WUSR)?;
    new.fill(bytes)?;
    new.dress_as(&loaded.stat)?;
    if !is_same(&stat_in(&directory, name)?, &loaded.stat) {
        return Err(ReplaceError::ChangedMeanwhile);
    }
    new.rename_to(name, Over::TheOld)
}

/// Makes a new file, and the directories on the way to it. Blocks.
pub(crate) fn create(resolved: &Resolved, bytes: &[u8]) -> Result<(), ReplaceError> {
    let Some((name, directories)) = resolved.missing.split_last() else {
        return Err(ReplaceError::ChangedMeanwhile);
    };
    let mut directory = open_directory(&resolved.existing)?;
    for missing in directories {
        match rustix::fs::mkdirat(&directory, missing, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => directory = open_directory_in(&directory, missing)?,
            Err(errno) => return Err(failed("creating its directory")(errno)),
        }
    }
    let new = NewFile::create(&directory, Mode::from_raw_mode(0o666))?;
    new.fill(bytes)?;
    new.rename_to(name, Over::Nothing)
}

/// What a rename may find at its target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    TheOld,
    Nothing,
}

/// A file that has no name worth keeping yet; it is removed unless it was renamed.
struct NewFile<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    file: File,
    renamed: std::cell::Cell<bool>,
}

impl<'a> NewFile<'a> {
    fn create(directory: &'a OwnedFd, mode: Mode) -> Result<NewFile<'a>, ReplaceError> {
        /// Tells apart the files of this process; the process id tells those of others.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        const TRIES: usize = 16;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!(".peri-{}-{number}.tmp", std::process::id()));
            match rustix::fs::openat(directory, &name, flags, mode) {
                Ok(fd) => {
                    return Ok(NewFile { directory, name, file: File::from(fd), renamed: std::cell::Cell::new(false) });
                }
                // Left over from a process that was killed.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("creating a file beside it")(errno)),
            }
        }
        Err(failed("creating a file beside it")(Errno::EXIST))
    }

    fn fill(&self, bytes: &[u8]) -> Result<(), ReplaceError> {
        (&self.file).write_all(bytes).map_err(failed("writing the new content"))?;
        self.file.sync_all().map_err(failed("writing the new content"))
    }

    /// Owner and mode of the original. Only root may give a file away: where we may not, the file becomes ours, as with
    /// any editor that saves by rename.
    fn dress_as(&self, stat: &Stat) -> Result<(), ReplaceError> {
        let ours = rustix::fs::fstat(&self.file).map_err(failed("keeping its mode"))?;
        if (ours.st_uid, ours.st_gid) != (stat.st_uid, stat.st_gid) {
            let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            if rustix::fs::fchown(&self.file, Some(owner), Some(group)).is_err() {
                let _only_the_group_then = rustix::fs::fchown(&self.file, None, Some(group));
            }
        }
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(stat.st_mode as RawMode)).map_err(failed("keeping its mode"))
    }

    fn rename_to(&self, name: &OsStr, over: Over) -> Result<(), ReplaceError> {
        match over {
            Over::TheOld => rustix::fs::renameat(self.directory, &self.name, self.directory, name),
            Over::Nothing => rename_over_nothing(self.directory, &self.name, name),
        }
        .map_err(|errno| match errno {
            Errno::EXIST => ReplaceError::ChangedMeanwhile,
            errno => failed("putting the new content in place")(errno),
        })?;
        self.renamed.set(true);
        // The rename is done; whether it survives a power cut is all that is still open, so a failure changes nothing.
        if let Ok(directory) = rustix::fs::openat(self.directory, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        {
            let _best_effort = rustix::fs::fsync(directory);
        }
        Ok(())
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.renamed.get() {
            let _nothing_more_to_do = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// Renames unless the target exists. Where the file system cannot do both in one step, looks first.
fn rename_over_nothing(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    match rustix::fs::renameat_with(directory, from, directory, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {}
        done => return done,
    }
    match stat_in(directory, to) {
        Err(OpenError::NotFound) => rustix::fs::renameat(directory, from, directory, to),
        _ => Err(Errno::EXIST),
    }
}

fn parent_of(path: &Path) -> Result<(OwnedFd, &OsStr), OpenError> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((open_directory(parent)?, name)),
        _ => Err(OpenError::Directory),
    }
}

/// A rename asks only the directory; a file that was made read-only is left alone nevertheless.
fn writable(directory: &OwnedFd, name: &OsStr) -> Result<(), ReplaceError> {
    regular(&stat_in(directory, name)?)?;
    match rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Err(ReplaceError::WriteProtected),
        // Any other trouble shows itself at the next step.
        _ => Ok(()),
    }
}

fn is_same(now: &Stat, then: &Stat) -> bool {
    let identity = |stat: &Stat| {
        (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
    };
    identity(now) == identity(then)
}

fn failed<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> ReplaceError {
    move |error| ReplaceError::Io { step, source: error.into() }
}
