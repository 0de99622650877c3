//! Which places a call may touch: the workspace roots, what permission granted for the call, and (to read) the files
//! that Bash output was spilled to.
//!
//! Must not read or write a file's content. Invariant: a [`Place`] was found inside one of those, links resolved, and
//! is opened without following any link that appears later.

mod open;
mod resolve;
mod resolver;

use globset::GlobSet;
use std::path::{Path, PathBuf};

pub(super) use open::{
    OpenError, OpenedFile, open_directory, open_directory_in, open_file, open_listed_file, regular, stat_in,
};
pub(super) use resolve::Resolved;
use resolve::{ResolveError, absolute};
pub use resolver::WorkspacePathResolver;

/// The roots of a session and what else its tools may read.
pub(super) struct Territory {
    /// Canonical, at least one; the first is the working directory.
    roots: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// May not exist yet.
    spill_dir: PathBuf,
}

/// What permission says of the places that one call may touch.
#[derive(Clone, Default, Debug)]
pub(super) struct Grants {
    /// Outside the roots, opened for this call: absolute, canonical.
    pub(super) opened: Vec<PathBuf>,
    /// What a search must leave out: globs on absolute, canonical paths.
    pub(super) hidden: GlobSet,
}

/// What a tool means to do with a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Write,
}

/// A place that the call may touch.
#[derive(Clone, Debug)]
pub(super) struct Place {
    resolved: Resolved,
}

impl Place {
    /// Absolute, without links, whether it exists or not.
    pub(super) fn path(&self) -> PathBuf {
        self.resolved.path()
    }

    pub(super) fn exists(&self) -> bool {
        self.resolved.missing.is_empty()
    }

    /// Where it stops existing.
    pub(super) fn resolved(&self) -> &Resolved {
        &self.resolved
    }
}

/// Why a place is out of reach.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    #[error("the path is empty")]
    Empty,
    #[error("`{written}` is outside the workspace: it leads to {leads_to}. Paths must stay inside {roots}.")]
    Outside { written: String, leads_to: String, roots: String },
    #[error("`{written}` cannot be followed: {reason}")]
    Unresolvable { written: String, reason: ResolveError },
}

/// A root that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("a workspace needs at least one root")]
    None,
    #[error("workspace root {}: {source}", path.display())]
    Unusable { path: PathBuf, source: std::io::Error },
    #[error("workspace root {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
}

impl Territory {
    /// Resolves the roots, once for the session. Blocks on the file system.
    pub(super) fn new(roots: &[PathBuf], home: Option<PathBuf>, spill_dir: PathBuf) -> Result<Territory, RootError> {
        let roots = roots.iter().map(|root| canonical_root(root)).collect::<Result<Vec<_>, _>>()?;
        if roots.is_empty() {
            return Err(RootError::None);
        }
        Ok(Territory { roots, home, spill_dir })
    }

    /// The working directory, canonical.
    pub(super) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// The root that a place lies in.
    pub(super) fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots.iter().map(PathBuf::as_path).find(|root| path.starts_with(root))
    }

    /// Finds out where a path leads and whether the call may touch that place.
    pub(super) fn locate(&self, written: &str, grants: &Grants, intent: Intent) -> Result<Place, PlaceError> {
        if written.is_empty() {
            return Err(PlaceError::Empty);
        }
        let asked = absolute(self.cwd(), self.home.as_deref(), written);
        let resolved = resolve::resolve(&asked)
            .map_err(|reason| PlaceError::Unresolvable { written: written.to_owned(), reason })?;
        let path = resolved.path();
        let allowed = self.root_of(&path).is_some()
            || grants.opened.iter().any(|granted| path.starts_with(granted))
            || (intent == Intent::Read && self.is_spilled(&path));
        if allowed {
            return Ok(Place { resolved });
        }
        let roots: Vec<String> = self.roots.iter().map(|root| printable(root)).collect();
        Err(PlaceError::Outside { written: written.to_owned(), leads_to: printable(&path), roots: roots.join(", ") })
    }

    /// The path as the model is shown it: below the working directory without its prefix.
    pub(super) fn show(&self, path: &Path) -> String {
        match path.strip_prefix(self.cwd()) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => printable(below),
            Err(_) => printable(path),
        }
    }

    /// The directory as a sentence names it.
    pub(super) fn name_directory(&self, path: &Path) -> String {
        if path == self.cwd() { "the working directory".to_owned() } else { self.show(path) }
    }

    fn is_spilled(&self, path: &Path) -> bool {
        self.spill_dir.canonicalize().is_ok_and(|spill_dir| path.starts_with(spill_dir))
    }
}

/// A path as text that stays on one line: what is not UTF-8 becomes U+FFFD, a control character its escape.
pub(super) fn printable(path: &Path) -> String {
    let mut text = String::new();
    for character in path.to_string_lossy().chars() {
        if character.is_control() { text.extend(character.escape_default()) } else { text.push(character) }
    }
    text
}

fn canonical_root(root: &Path) -> Result<PathBuf, RootError> {
    let canonical = root.canonicalize().map_err(|source| RootError::Unusable { path: root.to_owned(), source })?;
    if canonical.is_dir() { Ok(canonical) } else { Err(RootError::NotADirectory(canonical)) }
}
