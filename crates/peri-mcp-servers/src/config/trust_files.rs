//! The files that a workspace's trust is about, and their digest.
//!
//! Owns: which files, and how they are hashed. Must not: know who is trusted. Invariants: a file that is added, removed,
//! renamed or changed in any byte changes the digest; a tree that is too large or cannot be read has no digest at all,
//! so that nothing in it can be trusted unseen.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::bounded::{Accept, read_bounded};

const MAX_FILES: usize = 1000;
const MAX_BYTES: usize = 16 << 20;
const MAX_DEPTH: usize = 16;
/// Begins what is hashed, so that a change of the form makes other digests.
const FORM: &[u8] = b"peri-trust-1\n";

/// The content of one file, or what stands in its place.
pub(super) type ContentHash = [u8; 32];

/// The files of a workspace that need trust, by their path from the root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TrustFiles {
    entries: BTreeMap<PathBuf, ContentHash>,
}

impl TrustFiles {
    /// Reads them all. `root` is canonical; folders in `skip` are Peri's own and left out.
    ///
    /// # Errors
    /// A text where one cannot be read or they are too many to vouch for.
    pub(super) fn collect(root: &Path, skip: &[PathBuf]) -> Result<TrustFiles, String> {
        let mut walk = Walk { root, skip, bytes: 0, visited: HashSet::new(), found: TrustFiles::default() };
        walk.folder(Path::new(".peri"), 0)?;
        walk.file(Path::new(".mcp.json"))?;
        for name in names_in(&root.join(".claude"))? {
            let name = name.as_bytes();
            if name.starts_with(b"settings") && name.ends_with(b".json") {
                walk.file(&Path::new(".claude").join(OsStr::from_bytes(name)))?;
            }
        }
        Ok(walk.found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Paths from the root, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &Path> {
        self.entries.keys().map(PathBuf::as_path)
    }

    pub(super) fn content(&self, name: &Path) -> Option<ContentHash> {
        self.entries.get(name).copied()
    }

    /// The same files with that one as it was before.
    pub(super) fn with(mut self, name: &Path, content: Option<ContentHash>) -> TrustFiles {
        match content {
            Some(content) => self.entries.insert(name.to_owned(), content),
            None => self.entries.remove(name),
        };
        self
    }

    /// SHA-256 over all names and contents, in hex.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(FORM);
        for (name, content) in &self.entries {
            let name = name.as_os_str().as_bytes();
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(content);
        }
        hex(&hash.finalize())
    }
}

/// The hash of a file's bytes.
pub(super) fn content_hash(bytes: &[u8]) -> ContentHash {
    Sha256::digest(bytes).into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Walk<'a> {
    root: &'a Path,
    skip: &'a [PathBuf],
    /// Read so far.
    bytes: usize,
    /// Canonical folders, so that a circle of links comes to an end.
    visited: HashSet<PathBuf>,
    found: TrustFiles,
}

impl Walk<'_> {
    /// Everything below that folder, links followed.
    fn folder(&mut self, name: &Path, depth: usize) -> Result<(), String> {
        let path = self.root.join(name);
        let Ok(real) = fs::canonicalize(&path) else { return Ok(()) };
        if self.skip.contains(&real) || !self.visited.insert(real) {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            return Err(format!("{} lies too deep to be vouched for ({MAX_DEPTH} folders at most)", path.display()));
        }
        for child in names_in(&path)? {
            let child = name.join(child);
            match fs::metadata(self.root.join(&child)) {
                Ok(metadata) if metadata.is_dir() => self.folder(&child, depth + 1)?,
                _ => self.file(&child)?,
            }
        }
        Ok(())
    }

    /// One file, if it is there: its bytes; for a link that leads nowhere, where it leads; for what is no file, that.
    fn file(&mut self, name: &Path) -> Result<(), String> {
        let path = self.root.join(name);
        let content = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                let left = MAX_BYTES.saturating_sub(self.bytes);
                let bytes = read_bounded(&path, Accept::RegularFile, left)
                    .map_err(|error| format!("{} cannot be vouched for: {error}", path.display()))?;
                let Some(bytes) = bytes else { return Ok(()) };
                self.bytes += bytes.len();
                content_hash(&bytes)
            }
            Ok(_) => content_hash(b"\0no regular file"),
            Err(_) => match fs::read_link(&path) {
                Ok(target) => content_hash(&[b"\0link to nowhere: ", target.as_os_str().as_bytes()].concat()),
                Err(_) => return Ok(()),
            },
        };
        self.found.entries.insert(name.to_owned(), content);
        if self.found.entries.len() > MAX_FILES {
            let folder = self.root.join(".peri");
            return Err(format!("{} holds more than {MAX_FILES} files, too many to be vouched for", folder.display()));
        }
        Ok(())
    }
}

/// The names in a folder; none where there is no such folder.
fn names_in(folder: &Path) -> Result<Vec<std::ffi::OsString>, String> {
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    match fs::read_dir(folder) {
        Ok(entries) => entries.take(MAX_FILES + 1).map(|entry| Ok(entry.map_err(unreadable)?.file_name())).collect(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(unreadable(error)),
    }
}
