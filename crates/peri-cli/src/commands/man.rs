//! `peri man`: manual pages, made from the definition of the command line.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::exit::Failure;

/// The page of the command that these words name; of `peri` itself without any.
///
/// # Errors
/// A usage [`Failure`] where there is no such command.
pub fn page(words: &[String]) -> Result<String, Failure> {
    let mut command = built();
    for word in words {
        let Some(found) = command.find_subcommand(word) else {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let hint = match known.as_slice() {
                [] => format!("`{}` has no commands of its own", command.get_name()),
                known => format!("known here: {}", known.join(", ")),
            };
            return Err(Failure::usage(format!("there is no command {word}")).hint(hint));
        };
        command = found.clone();
    }
    render(command).map_err(|error| Failure::run(format!("the page cannot be made: {error}")))
}

/// Writes the pages of all commands into a directory, which is made if it is missing. Gives their names.
///
/// # Errors
/// A [`Failure`] that names the directory.
pub fn write_all(directory: &Path) -> Result<Vec<String>, Failure> {
    let unwritable = |error: io::Error| {
        Failure::run(format!("{} cannot be written: {error}", directory.display())).hint("--output-dir names another")
    };
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    let mut written = Vec::new();
    let mut waiting = vec![built()];
    while let Some(command) = waiting.pop() {
        // The pages of `help` would say what the others say.
        waiting.extend(command.get_subcommands().filter(|command| command.get_name() != "help").cloned());
        let name = format!("{}.1", page_name(&command));
        std::fs::write(directory.join(&name), render(command).map_err(unwritable)?).map_err(unwritable)?;
        written.push(name);
    }
    written.sort();
    Ok(written)
}

/// The whole tree, with the names that pages have.
fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// `peri-sessions-list`.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn render(command: Command) -> io::Result<String> {
    let name = page_name(&command);
    let mut bytes = Vec::new();
    // Commands below `peri` have no version of their own.
    let source = format!("peri {}", env!("CARGO_PKG_VERSION"));
    Man::new(command).title(name.to_uppercase()).source(source).render(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
