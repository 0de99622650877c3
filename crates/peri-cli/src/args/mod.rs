//! The command line: what is accepted, and what it means.
//!
//! Owns: names, help, and the rules between options. Must not: read files, the environment or a terminal.
//! Invariant: an option that is accepted has its effect; a combination that cannot have one is refused with a hint.

mod acp;
mod groups;
mod help;
mod print;
mod rules;
mod sessions;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use acp::AcpArgs;
pub use groups::{CwdArg, ModelArgs, PermissionArgs, SettingsArgs, StoreArg};
pub use print::{InputFormat, OutputFormat, PrintArgs};
pub use sessions::{ExportFormat, SessionsCommand};

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
    args_conflicts_with_subcommands = true
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
    /// Serve an editor, or another client, over the Agent Client Protocol on standard input and output
    Acp(AcpArgs),
    /// List stored sessions; show, export or delete them
    #[command(after_help = help::SESSIONS)]
    Sessions {
        #[command(subcommand)]
        action: SessionsCommand,
    },
    /// Show the settings in effect, where they come from, and what is wrong with them
    #[command(after_help = help::CONFIG)]
    Config {
        #[command(subcommand)]
        action: ConfigCommand,
    },
    /// List the models that a provider's endpoint offers
    #[command(after_help = help::MODELS)]
    Models(ModelsArgs),
    /// Check that everything is there which a session needs: endpoint, key, model, folders, processes
    #[command(after_help = help::DOCTOR)]
    Doctor(DoctorArgs),
    /// Let a workspace's own settings take effect, after showing what they would enable
    Trust(TrustArgs),
    /// See Peri work on a small sample project: needs no key and no network
    Demo(DemoArgs),
    /// Print manual pages
    #[command(after_help = help::MAN)]
    Man(ManArgs),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell that the script is for
        shell: clap_complete::Shell,
    },
}

/// What can be asked of the settings.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Show the settings in effect, secrets left out
    #[command(after_help = help::CONFIG_SHOW)]
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
    #[command(after_help = help::CONFIG_PATH)]
    Path {
        #[command(flatten)]
        cwd: CwdArg,
        #[command(flatten)]
        settings: SettingsArgs,
        #[command(flatten)]
        store: StoreArg,
    },
    /// Check the settings: name file, key and mend of each fault (exit code 2 if there is one)
    #[command(after_help = help::CONFIG_CHECK)]
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

/// Whose models to list.
#[derive(Args, Debug)]
pub struct ModelsArgs {
    /// The provider, as the settings name it; that of the chosen model if it is left out
    #[arg(value_name = "PROVIDER")]
    pub provider: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArgs,

    #[command(flatten)]
    pub cwd: CwdArg,

    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// What to examine.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub format: ReportFormatArgs,

    /// The model to look for, as PROVIDER/MODEL, in place of the chosen one
    #[arg(long, value_name = "PROVIDER/MODEL", help_heading = "Model")]
    pub model: Option<String>,

    #[command(flatten)]
    pub cwd: CwdArg,

    #[command(flatten)]
    pub settings: SettingsArgs,

    #[command(flatten)]
    pub store: StoreArg,
}

/// Which manual pages, and where to.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The command whose page is printed, `sessions list` for example; `peri` itself if it is left out
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,

    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub output_dir: Option<PathBuf>,
}

/// The format of a list or a transcript.
#[derive(Args, Debug)]
pub struct ReportFormatArgs {
    /// What goes to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text)]
    pub output_format: ReportFormat,
}

/// What a list or a transcript is written as.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportFormat {
    Text,
    Json,
}

impl Cli {
    /// Checks the rules between options that clap cannot state with a hint.
    ///
    /// # Errors
    /// A usage [`Failure`].
    pub fn check(&self) -> Result<(), Failure> {
        match self.command {
            None => rules::check_print(&self.print),
            Some(Command::Acp(ref args)) => rules::check_acp(args),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::groups::PermissionModeArg;
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
        check(&["-p", "--input-format", "stream-json"], Err("--output-format stream-json"));
        check(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "x"], Err("--input-format"));
        check(&["-p", "--input-format", "stream-json", "--output-format", "stream-json"], Ok(()));
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
        assert_eq!(cli.print.permission.permission_mode, Some(PermissionModeArg::AcceptEdits));
        assert_eq!(cli.print.permission.allowed_tools, ["Read,Bash(a, b) Edit"]);
    }
}
