//! Where a path leads: `.`, `..` and links worked out as the kernel would, one name at a time.
//!
//! Must not open anything. Invariant: a [`Resolved`] holds no link and no `..`, so that comparing it with a root by
//! names is comparing places.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as Linux follows before it gives up.
const MAX_LINKS: usize = 40;

/// A path without links, split where it stops existing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Resolved {
    /// Absolute and canonical.
    pub(crate) existing: PathBuf,
    /// The names below it that are not there, as they were written.
    pub(crate) missing: Vec<OsString>,
}

impl Resolved {
    /// The whole path.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = self.existing.clone();
        path.extend(&self.missing);
        path
    }
}

/// A path that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("its links lead in a circle")]
    LinkCircle,
    #[error("`..` follows a directory that does not exist")]
    ParentOfMissing,
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The path as it was meant: `~` is the home directory, and what is not absolute starts at `cwd`.
pub(crate) fn absolute(cwd: &Path, home: Option<&Path>, written: &str) -> PathBuf {
    match (home, written.strip_prefix('~')) {
        (Some(home), Some("")) => home.to_owned(),
        (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(written),
    }
}

/// Follows an absolute path through all its links. Blocks on the file system.
///
/// # Errors
/// [`ResolveError`] where the path as a whole cannot lead to a file, not even to a new one.
pub(crate) fn resolve(path: &Path) -> Result<Resolved, ResolveError> {
    let mut ahead: VecDeque<OsString> = names(path).collect();
    let mut here = PathBuf::from("/");
    let mut here_is_dir = true;
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if !here_is_dir {
            return Err(ResolveError::NotADirectory(here));
        }
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        let metadata = match std::fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return missing_below(here, name, ahead),
            Err(source) => return Err(ResolveError::Io { path: next, source }),
        };
        if !metadata.is_symlink() {
            here = next;
            here_is_dir = metadata.is_dir();
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(ResolveError::LinkCircle);
        }
        let target = std::fs::read_link(&next).map_err(|source| ResolveError::Io { path: next, source })?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for name in names(&target).rev() {
            ahead.push_front(name);
        }
    }
    Ok(Resolved { existing: here, missing: Vec::new() })
}

fn missing_below(existing: PathBuf, first: OsString, rest: VecDeque<OsString>) -> Result<Resolved, ResolveError> {
    if rest.iter().any(|name| name == "..") {
        return Err(ResolveError::ParentOfMissing);
    }
    Ok(Resolved { existing, missing: std::iter::once(first).chain(rest).collect() })
}

/// The names of a path, with `..` among them and `.` left out.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}
