//! The command line of a print run.

use clap::{Args, ValueEnum};
use uuid::Uuid;

use super::{CwdArg, ModelArgs, PermissionArgs, SettingsArgs, StoreArg};

/// A print run: one prompt, one answer.
#[derive(Args, Debug)]
pub struct PrintArgs {
    /// Answer one prompt and exit (the only way to run so far; there is no terminal UI yet)
    #[arg(short = 'p', long)]
    pub print: bool,

    /// What to do. Read from standard input if it is left out, or `-`
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    /// What comes from standard input
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = InputFormat::Text)]
    pub input_format: InputFormat,

    /// What goes to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output_format: OutputFormat,

    /// With stream-json: pieces of the answer too, as they arrive
    #[arg(long)]
    pub include_partial_messages: bool,

    #[command(flatten)]
    pub model: ModelArgs,

    #[command(flatten)]
    pub permission: PermissionArgs,

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

impl PrintArgs {
    /// The prompt argument; None where the prompt is on standard input. Valid after [`Cli::check`](super::Cli::check).
    pub fn prompt_argument(&self) -> Option<&str> {
        self.prompt.first().map(String::as_str).filter(|prompt| *prompt != "-")
    }

    /// True where this run goes on in an earlier session.
    pub fn continues(&self) -> bool {
        self.continue_last || self.resume.is_some()
    }
}

/// What a print run reads from standard input.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFormat {
    /// The prompt, where no argument gives it
    Text,
    /// A JSON object a line, each a message that is answered; needs --output-format stream-json
    StreamJson,
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
