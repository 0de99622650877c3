//! Settings files and trust on a real file system.

#![cfg(test)]

mod source;
mod trust;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use peri_mcp_servers::config::{FileConfigSource, FileTrustStore, PeriDirs};
use tempfile::TempDir;

/// A home and a workspace of their own.
pub struct Machine {
    folder: TempDir,
    pub trust: Arc<FileTrustStore>,
    pub source: FileConfigSource,
}

impl Machine {
    pub fn new() -> Machine {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        let dirs = PeriDirs::below(&folder.path().join("home"));
        let trust = Arc::new(FileTrustStore::new(&dirs));
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let variables = Arc::new(move |name: &str| variables.get(name).cloned());
        let source = FileConfigSource::new(dirs.settings_file(), Arc::clone(&trust), variables);
        Machine { folder, trust, source }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn root(&self) -> String {
        self.path("ws").display().to_string()
    }

    /// Writes a file, making its folders.
    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }
}
