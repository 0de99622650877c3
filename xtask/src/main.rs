//! The repository's own tasks: `cargo xtask help` lists them. CI runs nothing that a developer cannot run by one of these.

mod bench;
mod fuzz;
mod interop;
mod lint;
mod prerequisites;
mod run;
mod test;
mod tidy;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the Peri repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that CI runs: `lint`, then `test`.
    Check,
    /// Formatting, clippy with warnings as errors, and `tidy`.
    Lint,
    /// The wasm32 check of every crate that must build there, all tests, and `interop` (not where a filter is given).
    /// Installs what is missing, or says what to install.
    Test {
        /// Passed on to the test runner, for example a filter.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        runner_arguments: Vec<String>,
    },
    /// Other people's ACP clients and MCP servers, installed and run against the debug build.
    Interop {
        /// One suite only.
        suite: Option<interop::Suite>,
    },
    /// The architecture's rules: allowed edges, third-party confinement, print's bans, file sizes, pages of docs/protocol.
    Tidy,
    /// Marks the pages of docs/protocol as reviewed against the sources that they describe.
    Stamp,
    /// Checks every wasm32 crate for its target.
    Wasm,
    /// Fuzzes a target of `fuzz/fuzz_targets`, or `all`, on the nightly compiler. Installs cargo-fuzz where it is missing.
    Fuzz {
        target: String,
        /// For each target.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
    /// Measures.
    Bench {
        #[command(subcommand)]
        what: bench::Bench,
    },
}

fn main() -> ExitCode {
    match run_task(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_task(task: Task) -> anyhow::Result<()> {
    let root = repository_root();
    match task {
        Task::Check => {
            lint::run(&root)?;
            test::run(&root, &[])
        }
        Task::Lint => lint::run(&root),
        Task::Test { runner_arguments } => test::run(&root, &runner_arguments),
        Task::Interop { suite } => interop::run_suites(&root, suite),
        Task::Tidy => tidy::run(&root),
        Task::Stamp => tidy::protocol_pages::stamp(&root),
        Task::Wasm => wasm::run(&root),
        Task::Fuzz { target, seconds } => fuzz::run(&root, &target, seconds),
        Task::Bench { what } => bench::run(&root, &what),
    }
}

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
