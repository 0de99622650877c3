//! Where a setting came from.
//!
//! Owns the order of the sources. Invariant: the order of [`Layer`]'s variants is the order of precedence.

use std::collections::BTreeMap;
use std::fmt;

use crate::path::visible;

/// A source of settings, from the lowest to the highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Layer {
    /// What holds where nothing is set, among it the provider of `ANTHROPIC_API_KEY`.
    Default,
    /// The user's own file.
    User,
    /// `.mcp.json` of the workspace.
    WorkspaceMcp,
    /// `.peri/settings.json` of the workspace.
    Workspace,
    /// `.peri/settings.local.json` of the workspace.
    WorkspaceLocal,
    /// `--settings`.
    Argument,
    /// `PERI_MODEL`.
    Environment,
    /// An option of the command line.
    CommandLine,
}

impl Layer {
    /// True for what a repository can bring along: it takes trust to let such a layer loosen anything.
    pub fn needs_trust(self) -> bool {
        matches!(self, Layer::WorkspaceMcp | Layer::Workspace | Layer::WorkspaceLocal)
    }

    /// A word for lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Default => "default",
            Layer::User => "user",
            Layer::WorkspaceMcp => "workspace-mcp",
            Layer::Workspace => "workspace",
            Layer::WorkspaceLocal => "workspace-local",
            Layer::Argument => "settings-argument",
            Layer::Environment => "environment",
            Layer::CommandLine => "command-line",
        }
    }
}

/// A layer and the file, variable or option within it. `Display` gives the name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    pub layer: Layer,
    /// An absolute path, `environment variable PERI_MODEL`, `--model`.
    pub name: String,
}

impl Origin {
    pub(crate) fn new(layer: Layer, name: impl Into<String>) -> Origin {
        Origin { layer, name: name.into() }
    }

    pub(crate) fn variable(layer: Layer, name: &str) -> Origin {
        Origin::new(layer, format!("environment variable {name}"))
    }

    pub(crate) fn option(name: &str) -> Origin {
        Origin::new(Layer::CommandLine, name)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&self.name))
    }
}

/// Which source set each key: `model`, `providers.mine`, `permissions.mode`. A key that is not in it has its default.
/// Permission rules and directories carry their origins themselves.
pub type Origins = BTreeMap<String, Origin>;
