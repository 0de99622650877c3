//! The command line of `peri sessions`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{CwdArg, ReportFormatArgs, StoreArg, help};

/// What can be asked of stored sessions.
#[derive(Subcommand, Debug)]
pub enum SessionsCommand {
    /// List stored sessions, the newest first
    #[command(after_help = help::SESSIONS_LIST)]
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
    /// Show the messages of a session, without the secrets that the settings know
    #[command(after_help = help::SESSIONS_SHOW)]
    Show {
        /// The session's id; its beginning will do
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: ReportFormatArgs,
        #[command(flatten)]
        store: StoreArg,
    },
    /// Write a whole session as a document, without the secrets that the settings know
    #[command(after_help = help::SESSIONS_EXPORT)]
    Export {
        /// The session's id; its beginning will do
        #[arg(value_name = "ID")]
        id: String,
        /// What is written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ExportFormat::Json)]
        output_format: ExportFormat,
        /// Write to this file instead of standard output; one that is there is replaced
        #[arg(short = 'o', long, value_name = "FILE", help_heading = "Files")]
        output: Option<PathBuf>,
        #[command(flatten)]
        store: StoreArg,
    },
    /// Delete sessions, after showing which
    #[command(after_help = help::SESSIONS_DELETE)]
    Delete {
        /// Their ids; the beginning of each will do
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Do not ask
        #[arg(short = 'y', long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArg,
    },
}

/// What a session is exported as.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportFormat {
    /// Everything that is stored, for programs
    Json,
    /// What was said and done, for people
    #[value(alias = "md")]
    Markdown,
}
