//! `peri completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

/// The completion script.
pub fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "peri", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
