//! The command line of `peri acp`.

use clap::Args;

use super::{ModelArgs, PermissionArgs, SettingsArgs, StoreArg, help};

/// Serving a client of another program. Where to work is the client's choice, session by session, so there is no `--cwd`.
#[derive(Args, Debug)]
#[command(before_long_help = help::ACP_BEFORE, after_long_help = help::ACP, after_help = help::ACP_SHORT)]
pub struct AcpArgs {
    #[command(flatten)]
    pub model: ModelArgs,

    #[command(flatten)]
    pub permission: PermissionArgs,

    /// Let the own settings of every workspace take effect that the client opens: for containers that hold nothing foreign
    #[arg(long, help_heading = "Permission")]
    pub trust_workspace: bool,

    /// Keep nothing: sessions are gone when the client is
    #[arg(long, help_heading = "Session")]
    pub no_session_persistence: bool,

    /// Tell each message on standard error: method, id and size, no contents
    #[arg(long)]
    pub verbose: bool,

    #[command(flatten)]
    pub settings: SettingsArgs,

    #[command(flatten)]
    pub store: StoreArg,
}
