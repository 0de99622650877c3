//! Settings documents in files.
//!
//! Owns: where each place is, and compare-and-swap of bytes. Invariants: a write happens only over the bytes that the
//! caller has seen; a workspace's document is never written through a link that leads out of the workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use peri_acp_types::ports::{ConfigDocument, ConfigPlace, ConfigRevision, ConfigSource, ConfigSourceError};

use super::bounded::{Accept, read_bounded};
use super::replace::{lock_dir, make_private_dir, replace_file};
use super::trust_files::{content_hash, hex};
use super::{FileTrustStore, Variables};

/// The largest document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// [`ConfigSource`] of this machine.
pub struct FileConfigSource {
    user_file: PathBuf,
    /// Learns of every write, so that "allow always" does not void the trust in the workspace.
    trust: Arc<FileTrustStore>,
    variables: Variables,
}

/// A file, and what kind of care it needs.
struct Place {
    path: PathBuf,
    accept: Accept,
    /// For a workspace's file: the root, and the path from there.
    within: Option<(PathBuf, &'static Path)>,
}

impl FileConfigSource {
    /// `user_file` is [`super::PeriDirs::settings_file`], or the file of `--config-file`.
    pub fn new(user_file: PathBuf, trust: Arc<FileTrustStore>, variables: Variables) -> FileConfigSource {
        FileConfigSource { user_file, trust, variables }
    }

    /// Where a place is, whether or not there is anything.
    pub fn path_of(&self, place: &ConfigPlace) -> PathBuf {
        self.place(place).path
    }

    fn place(&self, place: &ConfigPlace) -> Place {
        let within = |root: &str, name: &'static str| Place {
            path: Path::new(root).join(name),
            accept: Accept::RegularFile,
            within: Some((PathBuf::from(root), Path::new(name))),
        };
        let anywhere = |path: PathBuf| Place { path, accept: Accept::Anything, within: None };
        match place {
            ConfigPlace::User => anywhere(self.user_file.clone()),
            ConfigPlace::Workspace { root } => within(root, ".peri/settings.json"),
            ConfigPlace::WorkspaceLocal { root } => within(root, ".peri/settings.local.json"),
            ConfigPlace::WorkspaceMcp { root } => within(root, ".mcp.json"),
            ConfigPlace::File { path } => anywhere(PathBuf::from(path)),
        }
    }
}

#[async_trait::async_trait]
impl ConfigSource for FileConfigSource {
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
        let Place { path, accept, .. } = self.place(place);
        let origin = path.display().to_string();
        match read_bounded(&path, accept, MAX_DOCUMENT_BYTES) {
            Ok(bytes) => Ok(bytes.map(|bytes| ConfigDocument { origin, revision: revision(&bytes), bytes })),
            Err(error) => Err(ConfigSourceError::Unreadable { origin, reason: error.to_string() }),
        }
    }

    async fn write(
        &self,
        place: &ConfigPlace,
        expected: Option<&ConfigRevision>,
        bytes: Vec<u8>,
    ) -> Result<ConfigRevision, ConfigSourceError> {
        let place = self.place(place);
        let origin = place.path.display().to_string();
        let unwritable = |reason: String| ConfigSourceError::Unwritable { origin: origin.clone(), reason };
        let target = target_of(&place).map_err(|error| unwritable(error.to_string()))?;
        let dir = target.parent().unwrap_or(Path::new("/"));
        let _lock = lock_dir(dir).map_err(|error| unwritable(error.to_string()))?;

        let old = read_bounded(&target, Accept::RegularFile, MAX_DOCUMENT_BYTES)
            .map_err(|error| unwritable(error.to_string()))?;
        if old.as_deref().map(revision).as_ref() != expected {
            return Err(ConfigSourceError::Changed { origin });
        }
        replace_file(&target, &bytes).map_err(|error| unwritable(error.to_string()))?;
        if let Some((root, name)) = &place.within {
            self.trust
                .carry_over(root, name, old.as_deref(), &bytes)
                .map_err(|reason| unwritable(format!("it is written, but trust in it could not be kept: {reason}")))?;
        }
        Ok(revision(&bytes))
    }

    fn env(&self, name: &str) -> Option<String> {
        (self.variables)(name)
    }
}

fn revision(bytes: &[u8]) -> ConfigRevision {
    ConfigRevision(hex(&content_hash(bytes)))
}

/// The file that a write to the place replaces: links followed, its folder made.
fn target_of(place: &Place) -> io::Result<PathBuf> {
    let path = match fs::symlink_metadata(&place.path) {
        Ok(metadata) if metadata.is_symlink() => fs::canonicalize(&place.path)
            .map_err(|error| io::Error::new(error.kind(), format!("it is a link that cannot be followed: {error}")))?,
        _ => place.path.clone(),
    };
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it names no file"));
    };
    match &place.within {
        None => make_private_dir(dir)?,
        Some((root, _)) if dir != root.as_path() => match fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        },
        Some(_) => {}
    }
    let target = fs::canonicalize(dir)?.join(name);
    if let Some((root, _)) = &place.within
        && !target.starts_with(fs::canonicalize(root)?)
    {
        return Err(io::Error::other("it leads out of the workspace"));
    }
    Ok(target)
}
