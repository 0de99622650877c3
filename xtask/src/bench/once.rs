//! One process, measured from outside: runs it, then prints `elapsed-microseconds peak-kibibytes` on standard error's
//! last line. A process of its own, because the kernel keeps one peak for all children of a process.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};

/// Marks the line with the figures.
pub const MARK: &str = "figures:";

pub fn run(words: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = words.split_first().context("a command is needed")?;
    let started = Instant::now();
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let elapsed = started.elapsed();
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    eprintln!("{MARK} {} {peak}", elapsed.as_micros());
    Ok(())
}
