//! Benchmarks: whole processes, release build, a scripted endpoint on loopback, medians of several runs.

mod acp_client;
mod endpoint;
mod figures;
mod grep;
mod machine;
mod once;
mod print;
mod startup;
mod stream;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;

use crate::run::{self, command};

#[derive(Subcommand)]
pub enum Bench {
    /// A text turn of `peri -p`: time to the first model request, time of the whole turn, peak memory, size of the binary.
    Print {
        /// Counted runs, after a warm-up.
        #[arg(long, default_value_t = 10)]
        runs: usize,
        /// Measure this binary instead of building one.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Processor time of `peri acp` per streamed delta, from the endpoint's socket to the client's pipe.
    Stream {
        /// Counted runs, after a warm-up.
        #[arg(long, default_value_t = 10)]
        runs: usize,
        /// Text deltas that the endpoint sends in one turn.
        #[arg(long, default_value_t = 200_000)]
        deltas: usize,
        /// Measure this binary instead of building one.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// From the start of the process to `--version`, to `initialize` and to `session/new` answered, and the memory then.
    Startup {
        /// Counted runs, after a warm-up.
        #[arg(long, default_value_t = 20)]
        runs: usize,
        /// Measure this binary instead of building one.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// The workspace server's Grep against `rg`, on the same queries and trees. Installs `rg` where it is missing.
    Grep {
        /// Counted runs, after a warm-up.
        #[arg(long, default_value_t = 10)]
        runs: usize,
    },
    /// One measured process, for the benchmarks themselves: its peak memory must not be mixed with another child's.
    #[command(hide = true)]
    Once {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

pub fn run(root: &Path, what: &Bench) -> anyhow::Result<()> {
    match what {
        Bench::Print { runs, binary } => print::run(root, *runs, binary.as_deref()),
        Bench::Stream { runs, deltas, binary } => stream::run(root, *runs, *deltas, binary.as_deref()),
        Bench::Startup { runs, binary } => startup::run(root, *runs, binary.as_deref()),
        Bench::Grep { runs } => grep::run(root, *runs),
        Bench::Once { command } => once::run(command),
    }
}

/// The binary to measure: the one that was named, or one built for it.
fn release_binary(root: &Path, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(binary) = named {
        return Ok(binary.to_path_buf());
    }
    run::run(&mut command(root, &["cargo", "build", "--release", "--quiet", "-p", "peri-cli"]))?;
    Ok(run::target_directory(root).join("release/peri"))
}

/// A home of Peri's own with an empty workspace in it; gone with the value.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> anyhow::Result<Home> {
        let home = Home(std::env::temp_dir().join(format!("peri-bench-{name}-{}", std::process::id())));
        std::fs::create_dir_all(home.workspace()).context("cannot create a home")?;
        Ok(home)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What is left in a temporary folder is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The middle of the values; between two middles, the lower one.
fn median<T: PartialOrd + Copy>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|left, right| left.partial_cmp(right).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}
