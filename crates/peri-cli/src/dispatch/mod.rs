//! From a command line to what it asks for.
//!
//! Owns: which parts of the composition a command needs. Invariant: a command starts no more than it needs: only a
//! print run, the demo and `peri acp` start an agent.

mod acp;
mod print;
mod reports;

use crate::args::{Cli, Command};
use crate::commands::completions;
use crate::composition::{Environment, Host, Persistence};
use crate::console::{Console, Look, Verbosity};
use crate::demo::{self, Afterwards};
use crate::exit::{Exit, Failure};

/// What `peri` alone says.
const WELCOME: &str = "\
Peri reads, edits and runs things in a repository, with a model of your choice.

  peri demo                     watch it work on a sample project; needs no key
  peri -p \"what to do\"          run one prompt in this directory
  peri -p -c \"and then?\"        go on in the last session of this directory
  peri acp                      for editors: they start it, and talk to Peri through it
  peri models                   which models the endpoint has
  peri doctor                   is everything set up?
  peri sessions list            what was said before
  peri --help                   options, examples, files, exit codes

There is no terminal UI yet.
";

/// Whether there was anything on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    Nothing,
    Something,
}

/// Does what was asked and says how the process should exit.
pub async fn dispatch(cli: Cli, asked: Asked) -> Exit {
    let verbosity = if is_verbose(&cli) { Verbosity::Verbose } else { Verbosity::Usual };
    let mut console = Console::new(Look::detect(verbosity, |name| Environment::Process.var(name)));
    let checked = cli.check();
    match cli.command {
        None if asked == Asked::Nothing => out(&mut console, WELCOME).await,
        None => print::run(&cli.print, checked, &mut console).await,
        Some(Command::Acp(args)) => acp::run(&args, checked, &mut console).await,
        Some(Command::Demo(args)) => {
            let afterwards = if args.keep { Afterwards::Keep } else { Afterwards::Remove };
            demo::run(afterwards, &mut console.with_progress_on_stdout()).await
        }
        Some(Command::Completions { shell }) => out(&mut console, &completions::script(shell)).await,
        Some(command) => match report(command, &mut console).await {
            Ok(exit) => exit,
            Err(failure) => told(&mut console, failure).await,
        },
    }
}

/// Ends the run's host, and tells what the user should know of it.
async fn end(host: Host, console: &mut Console) {
    for notice in host.store_notices().await {
        console.notice(&notice).await;
    }
    for trouble in host.end().await {
        console.notice(&trouble).await;
    }
}

fn persistence(keeps_nothing: bool) -> Persistence {
    match keeps_nothing {
        true => Persistence::GoneWithTheProcess,
        false => Persistence::Kept,
    }
}

fn is_verbose(cli: &Cli) -> bool {
    match &cli.command {
        None => cli.print.verbose,
        Some(Command::Acp(args)) => args.verbose,
        Some(_) => false,
    }
}

/// The commands that read files and report.
async fn report(command: Command, console: &mut Console) -> Result<Exit, Failure> {
    match command {
        Command::Sessions { action } => reports::sessions(&action, console).await,
        Command::Models(args) => reports::models(&args, console).await,
        Command::Doctor(args) => reports::doctor(&args, console).await,
        Command::Man(args) => reports::manual(&args, console).await,
        Command::Config { action } => {
            let report = reports::config(&action).await?;
            for notice in &report.notices {
                console.notice(notice).await;
            }
            match report.text.is_empty() {
                true => Ok(report.exit),
                false => Ok(worse(report.exit, out(console, &report.text).await)),
            }
        }
        Command::Trust(args) => reports::trust_workspace(&args, console).await,
        Command::Acp(_) | Command::Demo(_) | Command::Completions { .. } => Ok(Exit::Success),
    }
}

/// Writes a report. A reader that went away has had enough of it.
async fn out(console: &mut Console, text: &str) -> Exit {
    match console.text(text).await {
        Ok(()) => Exit::Success,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => told(console, Failure::run(format!("standard output cannot be written: {error}"))).await,
    }
}

async fn told(console: &mut Console, failure: Failure) -> Exit {
    console.failure(&failure).await;
    failure.exit
}

/// What was found counts unless it could not be told.
fn worse(found: Exit, written: Exit) -> Exit {
    if written == Exit::Success { found } else { written }
}
