//! The record of trusted workspaces as it is kept: one JSON file, by canonical root.
//!
//! Invariant: a record that is damaged or of a newer form trusts nothing and is not overwritten.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::bounded::{Accept, read_bounded};
use super::replace::replace_file;

const VERSION: u32 = 1;
/// Some ten thousand workspaces.
const MAX_BYTES: usize = 4 << 20;

#[derive(Serialize, Deserialize)]
pub(super) struct TrustRecord {
    version: u32,
    workspaces: BTreeMap<String, TrustedWorkspace>,
}

#[derive(Serialize, Deserialize)]
struct TrustedWorkspace {
    /// What the files had when they were trusted.
    digest: String,
}

impl TrustRecord {
    /// An empty record where there is no file.
    pub(super) fn read(file: &Path) -> Result<TrustRecord, String> {
        let bytes = read_bounded(file, Accept::RegularFile, MAX_BYTES)
            .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        let Some(bytes) = bytes else {
            return Ok(TrustRecord { version: VERSION, workspaces: BTreeMap::new() });
        };
        let record: TrustRecord = serde_json::from_slice(&bytes).map_err(|error| {
            format!("{} is damaged ({error}); move it away and trust your workspaces again", file.display())
        })?;
        match record.version {
            VERSION => Ok(record),
            newer => Err(format!("{} was written by a newer Peri (version {newer})", file.display())),
        }
    }

    pub(super) fn digest_of(&self, root: &str) -> Option<&str> {
        self.workspaces.get(root).map(|workspace| workspace.digest.as_str())
    }

    pub(super) fn set(&mut self, root: &str, digest: String) {
        self.workspaces.insert(root.to_owned(), TrustedWorkspace { digest });
    }

    /// Its folder is locked.
    pub(super) fn write(&self, file: &Path) -> Result<(), String> {
        let unwritable = |error: &dyn std::fmt::Display| format!("{} cannot be written: {error}", file.display());
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| unwritable(&error))?;
        bytes.push(b'\n');
        replace_file(file, &bytes).map_err(|error| unwritable(&error))
    }
}
