//! Benchmarks: whole processes, release build, a scripted endpoint on loopback, medians of several runs.

mod endpoint;
mod figures;
mod grep;
mod machine;
mod once;
mod print;
mod tree;

use std::path::{Path, PathBuf};

use clap::Subcommand;

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
        Bench::Grep { runs } => grep::run(root, *runs),
        Bench::Once { command } => once::run(command),
    }
}

/// The middle of the values; between two middles, the lower one.
fn median<T: PartialOrd + Copy>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|left, right| left.partial_cmp(right).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}
