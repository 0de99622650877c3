//! Which workspaces the user trusts, kept in Peri's data folder.
//!
//! Owns: the comparison of what lies in a workspace with what was trusted. Must not: decide what follows from it.

use std::fs;
use std::path::{Path, PathBuf};

use peri_acp_types::ports::{TrustState, TrustStore, TrustVerdict};

use super::PeriDirs;
use super::replace::{lock_dir, make_private_dir};
use super::trust_files::{TrustFiles, content_hash};
use super::trust_record::TrustRecord;

/// [`TrustStore`] in `trust.json` of the data folder.
#[derive(Debug)]
pub struct FileTrustStore {
    file: PathBuf,
    /// Where it lies below a workspace (`PERI_HOME` in one), Peri's own data is no part of that workspace's files.
    own_dirs: [PathBuf; 3],
}

impl FileTrustStore {
    /// Touches nothing yet.
    pub fn new(dirs: &PeriDirs) -> FileTrustStore {
        FileTrustStore {
            file: dirs.data.join("trust.json"),
            own_dirs: [dirs.data.clone(), dirs.state.clone(), dirs.cache.clone()],
        }
    }

    /// Where trust is recorded.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Keeps a workspace's trust over a write of Peri's own: `name` (a path from the root) held `old` and holds `new` now.
    /// Trust is carried over only if everything else is still what was trusted; where the file is the first that needs
    /// trust, the workspace is trusted with it, since its content is Peri's. Anything else is left as it is.
    ///
    /// # Errors
    /// A text where trust could not be recorded: the workspace then counts as changed.
    pub(super) fn carry_over(&self, root: &Path, name: &Path, old: Option<&[u8]>, new: &[u8]) -> Result<(), String> {
        let (root, files) = self.collect(root)?;
        if files.content(name) != Some(content_hash(new)) {
            return Ok(()); // Somebody wrote after us.
        }
        let digest = files.digest();
        let before = files.with(name, old.map(content_hash));
        self.update(|record| {
            if before.is_empty() || record.digest_of(&root) == Some(before.digest().as_str()) {
                record.set(&root, digest);
            }
        })
    }

    /// The canonical root, and its files that need trust.
    fn collect(&self, root: &Path) -> Result<(String, TrustFiles), String> {
        let canonical = fs::canonicalize(root).map_err(|error| format!("{}: {error}", root.display()))?;
        let own: Vec<PathBuf> = self.own_dirs.iter().filter_map(|dir| fs::canonicalize(dir).ok()).collect();
        let files = TrustFiles::collect(&canonical, &own)?;
        match canonical.into_os_string().into_string() {
            Ok(root) => Ok((root, files)),
            Err(_) => {
                Err(format!("{}: its path is not UTF-8, so that trust cannot be recorded for it", root.display()))
            }
        }
    }

    fn update(&self, change: impl FnOnce(&mut TrustRecord)) -> Result<(), String> {
        let unwritable = |error: std::io::Error| format!("{} cannot be written: {error}", self.file.display());
        let dir = self.file.parent().unwrap_or(Path::new("/"));
        make_private_dir(dir).map_err(unwritable)?;
        let _lock = lock_dir(dir).map_err(unwritable)?;
        let mut record = TrustRecord::read(&self.file)?;
        change(&mut record);
        record.write(&self.file)
    }
}

#[async_trait::async_trait]
impl TrustStore for FileTrustStore {
    async fn verdict(&self, root: &str) -> Result<TrustVerdict, String> {
        let (root, found) = self.collect(Path::new(root))?;
        let digest = found.digest();
        // Where nothing needs trust, a damaged record is of no consequence.
        let state = match found.is_empty() {
            true => TrustState::NothingToTrust,
            false => match TrustRecord::read(&self.file)?.digest_of(&root) {
                Some(trusted) if trusted == digest => TrustState::Trusted,
                Some(_) => TrustState::Changed,
                None => TrustState::Untrusted,
            },
        };
        let files = found.names().map(|name| Path::new(&root).join(name).display().to_string()).collect();
        Ok(TrustVerdict { root, digest, files, state })
    }

    async fn grant(&self, root: &str, digest: &str) -> Result<(), String> {
        let (root, found) = self.collect(Path::new(root))?;
        if found.digest() != digest {
            return Err(format!("the files of {root} have changed since they were shown"));
        }
        self.update(|record| record.set(&root, digest.to_owned()))
    }
}
