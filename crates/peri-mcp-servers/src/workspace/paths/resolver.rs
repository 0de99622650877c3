//! The `PathResolver` port: tells permission where a path leads, by the same rules by which the tools open it.

use std::path::{Path, PathBuf};

use peri_acp_types::ports::{PathResolver, ResolvedPath};

use super::resolve::{absolute, resolve};
use crate::workspace::threads::{self, Unfinished};

/// Resolves paths on this machine's file system.
#[derive(Clone, Debug, Default)]
pub struct WorkspacePathResolver {
    home: Option<PathBuf>,
    also_inside: Vec<PathBuf>,
}

impl WorkspacePathResolver {
    /// `home` is what `~` stands for. `also_inside` are directories that count as inside whatever the roots are: the
    /// one that Bash output is spilled to, so that reading on is not asked about. The tools themselves write to no
    /// place outside the roots without a grant.
    pub fn new(home: Option<PathBuf>, also_inside: Vec<PathBuf>) -> WorkspacePathResolver {
        WorkspacePathResolver { home, also_inside }
    }

    fn resolve_now(&self, roots: &[String], cwd: &str, path: &str) -> ResolvedPath {
        let asked = absolute(Path::new(cwd), self.home.as_deref(), path);
        let Ok(resolved) = resolve(&asked) else {
            return ResolvedPath { path: asked.to_string_lossy().into_owned(), inside: false };
        };
        let leads_to = resolved.path();
        let inside = roots
            .iter()
            .map(Path::new)
            .chain(self.also_inside.iter().map(PathBuf::as_path))
            .any(|root| root.canonicalize().is_ok_and(|root| leads_to.starts_with(root)));
        ResolvedPath { path: leads_to.to_string_lossy().into_owned(), inside }
    }
}

#[async_trait::async_trait]
impl PathResolver for WorkspacePathResolver {
    async fn resolve(&self, roots: &[String], cwd: &str, path: &str) -> ResolvedPath {
        let (resolver, roots) = (self.clone(), roots.to_vec());
        let (cwd, asked) = (cwd.to_owned(), path.to_owned());
        match threads::run(move || resolver.resolve_now(&roots, &cwd, &asked)).await {
            Ok(resolved) => resolved,
            // A wrong answer could open what a rule closes, so the runtime waits for the file system for once.
            Err(Unfinished::NoThread { work, .. }) => work(),
            Err(Unfinished::Died) => ResolvedPath { path: path.to_owned(), inside: false },
        }
    }

    async fn is_directory(&self, path: &str) -> bool {
        // Its own entry `.` is found only by who may enter it.
        let entry = Path::new(path).join(".");
        match threads::run(move || entry.is_dir()).await {
            Ok(found) => found,
            Err(Unfinished::NoThread { work, .. }) => work(),
            Err(Unfinished::Died) => false,
        }
    }
}
