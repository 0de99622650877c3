//! Where settings come from: bytes and names, no meaning. Meaning is peri-config's.

/// Reads and writes the documents that settings are made of.
#[async_trait::async_trait]
pub trait ConfigSource: Send + Sync {
    /// The document at that place; None where there is none. Bounded by the source.
    ///
    /// # Errors
    /// [`ConfigSourceError`] where it is there and cannot be read.
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError>;

    /// Replaces the document, provided that its revision is still the expected one (None: that it is not there).
    ///
    /// # Errors
    /// [`ConfigSourceError::Changed`] where somebody else was first; nothing is written then.
    async fn write(
        &self,
        place: &ConfigPlace,
        expected: Option<&ConfigRevision>,
        bytes: Vec<u8>,
    ) -> Result<ConfigRevision, ConfigSourceError>;

    /// A variable of the environment, by name. There is no way to list them.
    fn env(&self, name: &str) -> Option<String>;
}

/// A place that may hold a settings document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigPlace {
    /// `settings.json` in the user's configuration directory, or the file of `--config-file`.
    User,
    /// `<root>/.peri/settings.json`.
    Workspace { root: String },
    /// `<root>/.peri/settings.local.json`.
    WorkspaceLocal { root: String },
    /// `<root>/.mcp.json`.
    WorkspaceMcp { root: String },
    /// A file that was named on the command line.
    File { path: String },
}

/// A document and where it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigDocument {
    /// For messages: an absolute path.
    pub origin: String,
    pub bytes: Vec<u8>,
    pub revision: ConfigRevision,
}

/// Changes whenever the bytes do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigRevision(pub String);

/// A document that cannot be read or written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigSourceError {
    #[error("cannot read {origin}: {reason}")]
    Unreadable { origin: String, reason: String },
    #[error("cannot write {origin}: {reason}")]
    Unwritable { origin: String, reason: String },
    #[error("{origin} was changed by somebody else meanwhile")]
    Changed { origin: String },
}

/// Remembers which workspaces the user trusts, by canonical root and the digest of the files that trust would enable.
#[async_trait::async_trait]
pub trait TrustStore: Send + Sync {
    /// Whether what lies in the workspace now is what was trusted.
    ///
    /// # Errors
    /// A text where it cannot be found out; the caller must then treat the workspace as untrusted.
    async fn verdict(&self, root: &str) -> Result<TrustVerdict, String>;

    /// Trusts what lies in the workspace now, if its digest is still that one (what the user was shown).
    ///
    /// # Errors
    /// A text where it changed meanwhile or cannot be recorded.
    async fn grant(&self, root: &str, digest: &str) -> Result<(), String>;
}

/// The answer of a [`TrustStore`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustVerdict {
    /// Canonical path of the workspace.
    pub root: String,
    /// SHA-256 over the names and bytes of the files below, in hex.
    pub digest: String,
    /// The files that trust is about, those that are there: absolute paths.
    pub files: Vec<String>,
    pub state: TrustState,
}

/// What is known of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrustState {
    /// Nothing there needs trust.
    NothingToTrust,
    Trusted,
    Untrusted,
    /// It was trusted once; its files have changed since.
    Changed,
}
