//! The `peri` binary: arguments in, an exit code out.
//!
//! Owns: the order of the first steps, and the process's runtime. Must not: hold logic that a library should have.
//! Invariant: libraries never print; whatever a person reads is written here, in this crate.

mod acp;
mod args;
mod commands;
mod composition;
mod console;
mod demo;
mod dispatch;
mod doctor;
mod exit;
mod print;
mod signals;
mod stopping;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use dispatch::Asked;
use exit::{Exit, Failure};

fn main() -> ExitCode {
    // First of all: the supervisor is a fork server, and wants a process with one thread and no open file.
    if std::env::args_os().nth(1).is_some_and(|word| word == peri_process::SUPERVISE_COMMAND) {
        return peri_process::supervise_main();
    }
    std::panic::set_hook(Box::new(report_panic));
    match Cli::try_parse() {
        Ok(cli) => run(cli).into(),
        Err(error) => {
            // Help and version are errors to clap, and go to standard output. A stream that is gone is no news here.
            drop(error.print());
            if error.use_stderr() { Exit::Usage.into() } else { Exit::Success.into() }
        }
    }
}

/// One thread runs everything but the store, blocking reads and the standard streams, which have their own.
fn run(cli: Cli) -> Exit {
    let asked = if std::env::args_os().len() > 1 { Asked::Something } else { Asked::Nothing };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::run(format!("the system gives no resources for a run: {error}"));
            drop(writeln!(std::io::stderr(), "peri: error: {failure}"));
            return failure.exit;
        }
    };
    let exit = runtime.block_on(dispatch::dispatch(cli, asked));
    // A standard stream whose reader is stuck must not hold the end.
    runtime.shutdown_background();
    exit
}

/// A few words in place of a backtrace. What went wrong inside is ours to mend, and the place says where.
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let words = panic.payload_as_str().unwrap_or("no words");
    drop(writeln!(std::io::stderr(), "peri: internal error: {words} ({place}); please report this"));
}
