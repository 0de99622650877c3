//! What the model has read: the content of each file as it last saw it.
//!
//! Must not read files. Invariant: a file may be changed only while its content is still the content recorded here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// The files of a session that Read, Edit or Write has shown to the model.
#[derive(Default)]
pub(crate) struct SeenFiles {
    /// Canonical path -> digest of the content. Std mutex: never held over an await or I/O.
    digests: Mutex<HashMap<PathBuf, [u8; 32]>>,
}

/// How a file's content relates to what the model saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freshness {
    Fresh,
    NeverRead,
    ChangedSince,
}

impl SeenFiles {
    /// The model has now seen (or written) this content.
    pub(crate) fn record(&self, path: &Path, bytes: &[u8]) {
        let digest = Sha256::digest(bytes).into();
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), digest);
    }

    /// Whether this content is what the model saw last.
    pub(crate) fn freshness(&self, path: &Path, bytes: &[u8]) -> Freshness {
        let known = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        match known {
            None => Freshness::NeverRead,
            Some(digest) if digest == <[u8; 32]>::from(Sha256::digest(bytes)) => Freshness::Fresh,
            Some(_) => Freshness::ChangedSince,
        }
    }
}
