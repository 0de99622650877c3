//! The command line: what is accepted, and what it means.
//!
//! Owns: names, help, and the rules between options. Must not: read files, the environment or a terminal.
//! Invariant: an option that is accepted has its effect; a combination that cannot have one is refused with a hint.

mod help;
mod rules;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use peri_acp_types::PermissionMode;
use uuid::Uuid;

use crate::exit::Failure;

/// Everything that was asked for.
#[derive(Parser, Debug)]
#[command(
    name = "peri",
    version,
    about = "An agent that works in your repository",
    before_help = help::BEFORE,
    after_help = help::AFTER_SHORT,
    after_long_help = help::AFTER_LONG,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,

    #[command(flatten)]
    pub print: PrintArgs,
}

/// What `peri` does besides a print run.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// List stored sessions, or show one
    Sessions {
        #[command(subcommand)]
        action: SessionsCommand,
    },
    /// Show the settings in effect, where they come from, and what is wrong with them
    Config {
        #[command(subcommand)]
        action: ConfigCommand,
    },
    /// Let a workspace's own settings take effect, after showing what they would enable
    Trust(TrustArgs),
    /// See Peri work on a small sample project: needs no key and no network
    Demo(DemoArgs),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell that the script is for
        shell: clap_complete::Shell,
    },
}

/// A print run: one prompt, one answer.
#[derive(Args, Debug)]
pub struct PrintArgs {
    /// Answer one prompt and exit (the only way to run so far; there is no terminal UI yet)
    #[arg(short = 'p', long)]
    pub print: bool,

    /// What to do. Read from standard input if it is left out
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    /// What goes to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output_format: OutputFormat,

    /// With stream-json: pieces of the answer too, as they arrive
    #[arg(long)]
    pub include_partial_messages: bool,

    /// The model, as PROVIDER/MODEL
    #[arg(long, value_name = "PROVIDER/MODEL", help_heading = "Model")]
    pub model: Option<String>,

    /// Text for the end of the system prompt of a new session
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub append_system_prompt: Option<String>,

    /// Stop after so many requests to the model (exit code 3)
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_turns: Option<NonZeroU32>,

    /// How much may be done without being allowed by a rule
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Permission")]
    pub permission_mode: Option<PermissionModeArg>,

    /// Rules for calls that may run, such as `Read` or `Bash(git status:*)`; may be repeated
    #[arg(long, alias = "allowedTools", value_name = "RULES", help_heading = "Permission")]
    pub allowed_tools: Vec<String>,

    /// Rules for calls that must not run; they win over all others
    #[arg(long, alias = "disallowedTools", value_name = "RULES", help_heading = "Permission")]
    pub disallowed_tools: Vec<String>,

    /// Let the workspace's own settings take effect in this run
    #[arg(long, help_heading = "Permission")]
    pub trust_workspace: bool,

    /// Go on in the last session of this directory
    #[arg(short = 'c', long = "continue", help_heading = "Session")]
    pub continue_last: bool,

    /// Go on in this session; the beginning of its id will do
    #[arg(short = 'r', long, value_name = "ID", help_heading = "Session")]
    pub resume: Option<String>,

    /// The id of the new session
    #[arg(long, value_name = "UUID", help_heading = "Session")]
    pub session_id: Option<Uuid>,

    /// Keep nothing of this session
    #[arg(long, help_heading = "Session")]
    pub no_session_persistence: bool,

    /// Show progress on standard error, also where it is not a terminal
    #[arg(long)]
    pub verbose: bool,

    #[command(flatten)]
    pub cwd: CwdArg,

    #[command(flatten)]
    pub settings: SettingsArgs,

    #[command(flatten)]
    pub store: StoreArg,
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

/// What can be asked of stored sessions.
#[derive(Subcommand, Debug)]
pub enum SessionsCommand {
    /// List stored sessions, the newest first
    List {
        /// Those of every directory, not only of this one
        #[arg(long, conflicts_with = "cwd")]
        all: bool,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        #[command(flatten)]
        format: ReportFormatArgs,
        #[command(flatten)]
        cwd: CwdArg,
        #[command(flatten)]
        store: StoreArg,
    },
    /// Show the messages of a session
    Show {
        /// The session's id; its beginning will do
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: ReportFormatArgs,
        #[command(flatten)]
        store: StoreArg,
    },
}

/// What can be asked of the settings.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Show the settings in effect, secrets left out
    Show {
        /// Show them as if this workspace were trusted
        #[arg(long)]
        trust_workspace: bool,
        #[command(flatten)]
        cwd: CwdArg,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Show which files are read, and which of them are there
    Path {
        #[command(flatten)]
        cwd: CwdArg,
        #[command(flatten)]
        settings: SettingsArgs,
        #[command(flatten)]
        store: StoreArg,
    },
    /// Check the settings: name file, key and mend of each fault (exit code 2 if there is one)
    Check {
        #[command(flatten)]
        cwd: CwdArg,
        #[command(flatten)]
        settings: SettingsArgs,
    },
}

/// A workspace to trust.
#[derive(Args, Debug)]
#[command(after_help = help::TRUST)]
pub struct TrustArgs {
    /// The workspace; the current directory if it is left out
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// How to show the demo.
#[derive(Args, Debug)]
#[command(after_help = help::DEMO)]
pub struct DemoArgs {
    /// Leave the sample project where it is, and tell where
    #[arg(long)]
    pub keep: bool,
}

/// The format of a list or a transcript.
#[derive(Args, Debug)]
pub struct ReportFormatArgs {
    /// What goes to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    pub output_format: ReportFormat,
}

/// What a print run writes to standard output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputFormat {
    /// The answer and nothing else
    Text,
    /// One JSON object at the end
    Json,
    /// A JSON object a line, as things happen
    StreamJson,
}

/// What a list or a transcript is written as.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportFormat {
    Text,
    Json,
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

impl Cli {
    /// Checks the rules between options that clap cannot state with a hint.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn check(&self) -> Result<(), Failure> {
        match self.command {
            None => rules::check_print(&self.print),
            Some(_) => Ok(()),
        }
    }
}

impl PrintArgs {
    /// The prompt argument, if there is one. Valid after [`Cli::check`].
    pub fn prompt_argument(&self) -> Option<&str> {
        self.prompt.first().map(String::as_str)
    }

    /// True where this run goes on in an earlier session.
    pub fn continues(&self) -> bool {
        self.continue_last || self.resume.is_some()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn check(line: &[&str], expect: Result<(), &str>) {
        let cli =
            Cli::try_parse_from(std::iter::once("peri").chain(line.iter().copied())).expect("clap takes the line");
        match (cli.check(), expect) {
            (Ok(()), Ok(())) => {}
            (Err(failure), Err(part)) => {
                let text = format!("{failure}");
                assert!(text.contains(part), "{line:?}: {text}");
            }
            (got, expect) => panic!("{line:?}: got {got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn combinations_without_effect_are_refused_with_a_hint() {
        let id = "0197c2a0-0000-7000-8000-000000000001";
        check(&["-p", "x"], Ok(()));
        check(&["-p", "-c", "x"], Ok(()));
        check(&["-p", "--session-id", id, "x"], Ok(()));
        check(&["x"], Err("-p"));
        check(&["-p", "fix", "it"], Err("quote"));
        check(&["-p", "-c", "--session-id", id, "x"], Err("--session-id"));
        check(&["-p", "-r", "0197", "--session-id", id, "x"], Err("--session-id"));
        check(&["-p", "-c", "-r", "0197", "x"], Err("--resume"));
        check(&["-p", "-c", "--append-system-prompt", "t", "x"], Err("--append-system-prompt"));
        check(&["-p", "-c", "--no-session-persistence", "x"], Err("--no-session-persistence"));
        check(&["-p", "--no-session-persistence", "--db-path", "f", "x"], Err("--db-path"));
        check(&["-p", "--include-partial-messages", "x"], Err("stream-json"));
        check(&["-p", "--include-partial-messages", "--output-format", "stream-json", "x"], Ok(()));
        check(&["--cwd", "/", "sessions"], Err("options come after"));
    }

    #[test]
    fn a_prompt_may_be_named_like_a_command() {
        let cli = Cli::try_parse_from(["peri", "-p", "demo"]).expect("a prompt");
        assert!(cli.command.is_none());
        assert_eq!(cli.print.prompt_argument(), Some("demo"));
    }

    #[test]
    fn wrappers_spellings_are_known() {
        let cli = Cli::try_parse_from([
            "peri",
            "-p",
            "x",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Read,Bash(a, b) Edit",
        ])
        .expect("known spellings");
        assert_eq!(cli.print.permission_mode, Some(PermissionModeArg::AcceptEdits));
        assert_eq!(cli.print.allowed_tools, ["Read,Bash(a, b) Edit"]);
    }
}
