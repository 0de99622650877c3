//! Surroundings: the facts of the frozen context, and where paths lead.

use crate::ContextFacts;

/// Gives the facts that a session freezes.
#[async_trait::async_trait]
pub trait ContextSource: Send + Sync {
    /// Pulled once, at creation. What cannot be read is left out and named in the second value, a line each.
    async fn pull(&self, cwd: &str) -> (ContextFacts, Vec<String>);
}

/// Tells where a path leads, so that a rule judges the file and not its spelling.
#[async_trait::async_trait]
pub trait PathResolver: Send + Sync {
    /// Resolves `~`, `..` and links of a path as it would be opened from `cwd`; the part that does not exist yet is kept
    /// as it is written. Never fails: what cannot be resolved is marked as outside.
    async fn resolve(&self, roots: &[String], cwd: &str, path: &str) -> ResolvedPath;

    /// True where the absolute path is a directory that can be entered. A resolver that sees no files takes every path
    /// for one.
    async fn is_directory(&self, _path: &str) -> bool {
        true
    }
}

/// Where a path leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedPath {
    /// Absolute and canonical as far as it exists.
    pub path: String,
    /// Inside one of the roots, links resolved.
    pub inside: bool,
}
