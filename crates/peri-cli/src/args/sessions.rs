//! The command line of `peri sessions`.

use clap::Subcommand;

use super::{CwdArg, ReportFormatArgs, StoreArg};

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
