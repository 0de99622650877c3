//! Patterns of `Read(...)`, `Edit(...)` and their kin: which files a rule means.
//!
//! Invariant: both sides are compared after links, `..` and `~` are resolved, so that a spelling decides nothing.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use peri_acp_types::ports::{PathResolver, ResolvedPath};
use peri_agent::SessionScope;

/// The longest pattern and the costliest that is compiled.
const MAX_GLOB_BYTES: usize = 1024;

/// The pattern of a rule about files.
#[derive(Clone, Debug)]
pub(super) enum PathPattern {
    /// Without a slash: a name at any depth, `.env`, `*.pem`. What is below a folder of that name counts too.
    Name { glob: GlobSet, text: String },
    /// A path up to the first part with a `*` or the like, then a glob for the rest; None: the path and what is below it.
    Below { path: String, rest: Option<Varying> },
}

/// The part of a pattern from its first `*` or the like on.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    glob: GlobSet,
    text: String,
}

/// How much a pattern without a slash means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Breadth {
    /// Files in the workspace: for what is allowed.
    Workspace,
    /// Files anywhere: for what is refused or asked about.
    Anywhere,
}

/// What is needed to tell where a path leads.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) resolver: &'a dyn PathResolver,
    pub(super) session: &'a SessionScope,
}

impl Place<'_> {
    pub(super) async fn resolve(&self, path: &str) -> ResolvedPath {
        self.resolver.resolve(&self.session.roots, &self.session.cwd, path).await
    }

    async fn resolve_in(&self, folder: &str, path: &str) -> String {
        self.resolver.resolve(&self.session.roots, folder, path).await.path
    }

    /// The path below one of the roots, both resolved.
    pub(super) async fn below_root(&self, path: &str) -> Option<String> {
        for root in &self.session.roots {
            let root = self.resolve_in(root, ".").await;
            if let Some(below) = below(path, &root) {
                return Some(below.to_owned());
            }
        }
        None
    }
}

impl PathPattern {
    /// Reads a pattern. The error reads on from "its pattern".
    pub(super) fn parse(text: &str) -> Result<PathPattern, String> {
        let text = text.trim();
        if text.len() > MAX_GLOB_BYTES {
            return Err(format!("is longer than {MAX_GLOB_BYTES} bytes"));
        }
        let is_name = !text.contains('/') && !text.starts_with('~') && !matches!(text, "." | ".." | "**");
        if is_name {
            return Ok(PathPattern::Name { glob: glob(text)?, text: text.to_owned() });
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        let folder = text.strip_suffix('/').unwrap_or(text);
        // Two slashes are one, as in paths.
        let folder = if text.starts_with("//") { folder.trim_start_matches('/') } else { folder };
        let absolute = if text.starts_with("//") { "/" } else { "" };
        let mut literal: Vec<&str> = Vec::new();
        let mut parts = folder.split('/').peekable();
        while let Some(part) = parts.next_if(|part| !part.contains(['*', '?', '[', '{', '\\'])) {
            literal.push(part);
        }
        let rest: Vec<&str> = parts.collect();
        if rest.contains(&"..") {
            return Err("has `..` after a part that varies".to_owned());
        }
        let path = match format!("{absolute}{}", literal.join("/")) {
            path if path.is_empty() && text.starts_with('/') => "/".to_owned(),
            path => path,
        };
        let rest = match rest.join("/") {
            text if text.is_empty() => None,
            text => Some(Varying { glob: glob(&text)?, text }),
        };
        Ok(PathPattern::Below { path, rest })
    }

    /// True where the rule means that file; `path` is resolved.
    pub(super) async fn means(&self, path: &str, place: Place<'_>, breadth: Breadth) -> bool {
        match self {
            PathPattern::Name { glob: name, .. } => match (place.below_root(path).await, breadth) {
                (Some(below), _) => below.split('/').any(|part| name.is_match(part)),
                (None, Breadth::Workspace) => false,
                (None, Breadth::Anywhere) => path.split('/').any(|part| name.is_match(part)),
            },
            PathPattern::Below { path: begin, rest } => {
                let folders: &[String] = if begin.starts_with(['/', '~']) {
                    std::slice::from_ref(&place.session.cwd)
                } else {
                    &place.session.roots
                };
                for folder in folders {
                    let begin = place.resolve_in(folder, if begin.is_empty() { "." } else { begin }).await;
                    let met = match (below(path, &begin), rest) {
                        (None, _) => false,
                        (Some(_), None) => true,
                        (Some(below), Some(rest)) => rest.glob.is_match(below),
                    };
                    if met {
                        return true;
                    }
                }
                false
            }
        }
    }
}

impl PathPattern {
    /// Globs on absolute, canonical paths that mean at least the same files, for a search that has to leave them out.
    pub(super) async fn globs(&self, place: Place<'_>) -> Vec<String> {
        match self {
            PathPattern::Name { text, .. } => vec![format!("**/{text}"), format!("**/{text}/**")],
            PathPattern::Below { path: begin, rest } => {
                let mut globs = Vec::new();
                for root in place.session.roots.iter().chain([&place.session.cwd]) {
                    let begin = place.resolve_in(root, if begin.is_empty() { "." } else { begin }).await;
                    let begin = globset::escape(begin.trim_end_matches('/'));
                    let whole = match rest {
                        None => begin,
                        Some(rest) => format!("{begin}/{}", rest.text),
                    };
                    globs.extend([format!("{whole}/**"), whole]);
                }
                globs.sort();
                globs.dedup();
                globs
            }
        }
    }
}

/// What follows the folder in the path; empty for the folder itself.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// A glob, and everything below what it means.
fn glob(text: &str) -> Result<GlobSet, String> {
    let compile = |text: &str| GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
    let set = compile(text).and_then(|glob| {
        let mut set = GlobSetBuilder::new();
        set.add(glob).add(compile(&format!("{text}/**"))?);
        set.build()
    });
    set.map_err(|error| format!("is no glob ({error})"))
}
