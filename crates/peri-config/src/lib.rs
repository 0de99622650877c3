//! The settings authority: what settings mean, where each may come from, and which of two wins.
//!
//! Owns: the typed settings, the order of their sources, the JSON schema, what an untrusted workspace may still say, and
//! the text form of permission rules. Must not: read a file, the environment or the working directory; bytes arrive by
//! [`ConfigSource`](peri_acp_types::ports::ConfigSource). Nor does it judge a command: that is the permission middleware's.
//! Invariant: every key of a document that Peri read either has its effect or is named in a [`Diagnostic`].

mod base_url;
mod default_providers;
mod diagnostic;
mod display;
mod document;
mod expand;
mod layer;
mod load;
mod local_rules;
mod mcp;
mod merge;
mod model_ref;
mod overlay;
mod parse;
mod path;
mod read_document;
mod reader;
mod rule;
mod settings;
mod tighten;
mod trust;
mod workspace_settings;

pub use diagnostic::{ConfigError, Diagnostic, Severity};
pub use display::REDACTED;
pub use document::{
    BashDocument, ModelDocument, PermissionsDocument, Protocol, ProviderDocument, RetryDocument, SettingsDocument,
    ThinkingDocument, schema,
};
pub use layer::{Layer, Origin, Origins};
pub use load::{Resolution, load};
pub use local_rules::{RuleList, add_local_rules, local_rule_patch};
pub use mcp::{McpDocument, McpServer, McpServerDocument, McpServerKind};
pub use model_ref::{ModelRef, ModelRefError};
pub use overlay::{CommandLineOverlay, SettingsArgument};
pub use rule::{BUILTIN_TOOLS, PermissionRule, RuleError, RuleSubject, split_rule_list};
pub use settings::*;
pub use trust::{TrustGrounds, WorkspaceTrust};
pub use workspace_settings::WorkspaceSetting;
