//! Opens places by canonical path, following no link on the way.
//!
//! A path was judged before it is opened; whoever swaps one of its directories for a link in between gets an error
//! instead of a file elsewhere. Invariant: nothing here follows a symbolic link, in any position.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A handle that serves as a starting point for names below it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// `NONBLOCK` and `NOCTTY`: should a pipe or a terminal stand where a file stood a moment ago, opening it must not hang
/// and must not adopt it.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Something that is no regular file, or cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("it does not exist")]
    NotFound,
    #[error("it is a directory")]
    Directory,
    /// A pipe, device or socket: reading one may never end and writing one is no edit.
    #[error("it is a {0}, not a regular file")]
    Special(&'static str),
    /// A link, say, stands where none was when the path was judged.
    #[error("a part of the path was replaced while it was being opened")]
    Moved,
    #[error("{0}")]
    Io(io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> OpenError {
        match errno {
            Errno::NOENT => OpenError::NotFound,
            Errno::ISDIR => OpenError::Directory,
            Errno::LOOP => OpenError::Moved,
            // Opening a socket.
            Errno::NXIO => OpenError::Special("socket or device"),
            other => OpenError::Io(other.into()),
        }
    }
}

/// An open file and what was known of it at that moment.
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    pub(crate) stat: Stat,
}

/// Opens a directory by its canonical path, to reach names below it.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, OpenError> {
    open_beneath_slash(path, DIRECTORY).map_err(OpenError::from)
}

/// Opens a regular file by its canonical path. Looks before it opens, since opening a device may already do something.
pub(crate) fn open_file(path: &Path) -> Result<OpenedFile, OpenError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(OpenError::Directory) };
    let parent = open_directory(parent)?;
    regular(&stat_in(&parent, name)?)?;
    checked(rustix::fs::openat(&parent, name, READ | OFlags::NOFOLLOW, Mode::empty())?)
}

/// As [`open_file`], in one step, for a path that a directory listing has just called a regular file.
pub(crate) fn open_listed_file(path: &Path) -> Result<OpenedFile, OpenError> {
    checked(open_beneath_slash(path, READ | OFlags::NOFOLLOW)?)
}

/// What a name in a directory is; a link is itself.
pub(crate) fn stat_in(directory: &OwnedFd, name: &OsStr) -> Result<Stat, OpenError> {
    Ok(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Opens a directory by its name in another, never through a link.
pub(crate) fn open_directory_in(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, OpenError> {
    Ok(rustix::fs::openat(directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Ok for a regular file; anything else by its name.
pub(crate) fn regular(stat: &Stat) -> Result<(), OpenError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(OpenError::Directory),
        FileType::Symlink => Err(OpenError::Moved),
        FileType::Fifo => Err(OpenError::Special("named pipe")),
        FileType::Socket => Err(OpenError::Special("socket")),
        FileType::CharacterDevice | FileType::BlockDevice => Err(OpenError::Special("device")),
        FileType::Unknown => Err(OpenError::Special("file of an unknown kind")),
    }
}

fn checked(fd: OwnedFd) -> Result<OpenedFile, OpenError> {
    let stat = rustix::fs::fstat(&fd)?;
    regular(&stat)?;
    Ok(OpenedFile { file: File::from(fd), stat })
}

#[cfg(target_os = "linux")]
fn open_beneath_slash(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), rustix::fs::ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(path, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath_slash(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_step_by_step(path, flags)
}

/// The same by one `openat` for each name, none of which may be a link.
fn open_step_by_step(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut here = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
    let Some(mut name) = names.next() else { return Ok(here) };
    for next in names {
        here = rustix::fs::openat(&here, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map_err(link_as_loop)?;
        name = next;
    }
    rustix::fs::openat(&here, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(link_as_loop)
}

/// `O_DIRECTORY | O_NOFOLLOW` on a link says "not a directory"; `openat2` says "loop" for the same.
fn link_as_loop(errno: Errno) -> Errno {
    if errno == Errno::NOTDIR { Errno::LOOP } else { errno }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn both_ways_of_opening_refuse_links_and_find_files() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("dir")).unwrap();
        std::fs::write(base.join("dir/file"), "text").unwrap();
        std::os::unix::fs::symlink("dir", base.join("link")).unwrap();
        std::os::unix::fs::symlink("dir/file", base.join("file-link")).unwrap();
        for open in [open_beneath_slash, open_step_by_step] {
            let mut text = String::new();
            File::from(open(&base.join("dir/file"), READ).unwrap()).read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
            assert_eq!(open(&base.join("link/file"), READ).unwrap_err(), Errno::LOOP);
            assert_eq!(open(&base.join("file-link"), READ).unwrap_err(), Errno::LOOP);
            assert_eq!(open(&base.join("none"), READ).unwrap_err(), Errno::NOENT);
        }
    }
}
