//! Options that several commands have, each with one meaning.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use peri_acp_types::{Effort, PermissionMode};

/// Which model, and how it is spoken to.
#[derive(Args, Clone, Debug, Default)]
pub struct ModelArgs {
    /// The model, as PROVIDER/MODEL
    #[arg(long, value_name = "PROVIDER/MODEL", help_heading = "Model")]
    pub model: Option<String>,

    /// How much the model should think before it answers
    #[arg(long, value_enum, value_name = "EFFORT", help_heading = "Model")]
    pub effort: Option<EffortArg>,

    /// Text for the end of the system prompt of a new session
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub append_system_prompt: Option<String>,

    /// Stop a turn after so many requests to the model
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_turns: Option<NonZeroU32>,
}

/// What may be done.
#[derive(Args, Clone, Debug, Default)]
pub struct PermissionArgs {
    /// How much may be done without being allowed by a rule
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Permission")]
    pub permission_mode: Option<PermissionModeArg>,

    /// Rules for calls that may run, such as `Read` or `Bash(git status:*)`; may be repeated
    #[arg(long, alias = "allowedTools", value_name = "RULES", help_heading = "Permission")]
    pub allowed_tools: Vec<String>,

    /// Rules for calls that must not run; they win over all others
    #[arg(long, alias = "disallowedTools", value_name = "RULES", help_heading = "Permission")]
    pub disallowed_tools: Vec<String>,
}

/// Where to work. Relative paths of options start at the directory in which Peri is started, that of `--cwd` included.
#[derive(Args, Clone, Debug, Default)]
pub struct CwdArg {
    /// Work in this directory
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub cwd: Option<PathBuf>,
}

/// Which settings count.
#[derive(Args, Clone, Debug, Default)]
pub struct SettingsArgs {
    /// Settings over those of all files: a file, or JSON that begins with `{`
    #[arg(long, value_name = "FILE|JSON", help_heading = "Files")]
    pub settings: Option<OsString>,

    /// The user's settings file, in place of the usual one
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub config_file: Option<PathBuf>,
}

/// Where sessions are.
#[derive(Args, Clone, Debug, Default)]
pub struct StoreArg {
    /// The file of stored sessions, in place of the usual one
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub db_path: Option<PathBuf>,
}

/// [`PermissionMode`] on the command line. The second names are those that wrappers of Claude Code pass.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum PermissionModeArg {
    /// What is not read-only needs a rule that allows it
    Default,
    /// As default, but edits inside the workspace pass
    #[value(alias = "acceptEdits")]
    AcceptEdits,
    /// Everything passes that no rule denies
    #[value(alias = "bypassPermissions")]
    Bypass,
}

impl From<PermissionModeArg> for PermissionMode {
    fn from(mode: PermissionModeArg) -> PermissionMode {
        match mode {
            PermissionModeArg::Default => PermissionMode::Default,
            PermissionModeArg::AcceptEdits => PermissionMode::AcceptEdits,
            PermissionModeArg::Bypass => PermissionMode::Bypass,
        }
    }
}

/// [`Effort`] on the command line.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum EffortArg {
    Low,
    Medium,
    High,
}

impl From<EffortArg> for Effort {
    fn from(effort: EffortArg) -> Effort {
        match effort {
            EffortArg::Low => Effort::Low,
            EffortArg::Medium => Effort::Medium,
            EffortArg::High => Effort::High,
        }
    }
}
