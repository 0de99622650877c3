//! What the command line says about settings. Owns the typed form; parsing of arguments is the command line's.

use std::num::NonZeroU32;

use peri_acp_types::{Effort, PermissionMode};

/// What the command line says about settings. The default says nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommandLineOverlay {
    /// `--settings`.
    pub settings: Option<SettingsArgument>,
    /// `--model`.
    pub model: Option<String>,
    /// `--effort`. It replaces a budget of thoughts that settings name.
    pub effort: Option<Effort>,
    /// `--permission-mode`.
    pub permission_mode: Option<PermissionMode>,
    /// `--allowed-tools`, each as it was given: one rule or several (see [`split_rule_list`](crate::split_rule_list)).
    pub allowed_tools: Vec<String>,
    /// `--disallowed-tools`, likewise.
    pub disallowed_tools: Vec<String>,
    /// `--max-turns`.
    pub max_turns: Option<NonZeroU32>,
    /// `--append-system-prompt`.
    pub append_system_prompt: Option<String>,
    /// `--trust-workspace`: for this run, whatever the trust store says.
    pub trust_workspace: bool,
}

/// The value of `--settings`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingsArgument {
    /// The document itself.
    Inline(String),
    /// The path of a file.
    File(String),
}

impl SettingsArgument {
    /// Text that begins with `{` is a document, any other is a path.
    pub fn from_text(text: &str) -> SettingsArgument {
        match text.trim_start().starts_with('{') {
            true => SettingsArgument::Inline(text.to_owned()),
            false => SettingsArgument::File(text.to_owned()),
        }
    }
}
