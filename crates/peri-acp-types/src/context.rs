//! The frozen context: what a session knows of its surroundings, pulled once at creation and never again.

/// Facts that [`crate::ports::ContextSource`] gives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContextFacts {
    /// AGENTS.md, CLAUDE.md and their local variants, from the repository root down to the working directory.
    pub instructions: Vec<InstructionFile>,
    /// `YYYY-MM-DD` in local time.
    pub date: String,
    /// For example `linux x86_64`.
    pub platform: String,
    /// None outside a repository.
    pub git: Option<GitFacts>,
    /// The user's language by locale, if it is known: `en_GB`.
    pub language: Option<String>,
}

/// One file of project instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstructionFile {
    /// Absolute path.
    pub path: String,
    /// Bounded by the source, which says so inside the text where it cut.
    pub text: String,
}

/// Facts of the repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GitFacts {
    /// Absolute path of the work tree's top.
    pub root: String,
    /// None where HEAD is detached.
    pub branch: Option<String>,
}

/// The blob as it is stored: a version and bytes. Written once by compare-and-swap; a fork copies the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrozenBlob {
    /// The form of `bytes`. A session with an unknown version can be read but not continued.
    pub version: u32,
    pub bytes: Vec<u8>,
}
