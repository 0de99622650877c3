//! Fuzzing with cargo-fuzz on the nightly compiler.
//!
//! The repository's corpus is read and never written: what a run comes upon goes to `target/fuzz`, and a finding to
//! `fuzz/artifacts`, where it stays until it has become a test.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::run::{self, command, output, succeeds};

/// One input may take so long; the slowest honest one takes a few milliseconds.
const MAX_SECONDS_PER_INPUT: u32 = 20;
const MAX_MEMORY_MIB: u32 = 2048;
const MAX_INPUT_BYTES: u32 = 8192;

/// Fuzzes one target, or one after the other, for that many seconds each. A finding ends the run and is an error.
pub fn run(root: &Path, target: &str, seconds: u64) -> anyhow::Result<()> {
    let known = targets(root)?;
    let chosen: Vec<&str> = match target {
        "all" => known.iter().map(String::as_str).collect(),
        one if known.iter().any(|name| name == one) => vec![one],
        other => bail!("there is no fuzz target `{other}`. There are: {}, all", known.join(", ")),
    };
    require_tools(root)?;
    chosen.into_iter().try_for_each(|target| fuzz(root, target, seconds))
}

fn fuzz(root: &Path, target: &str, seconds: u64) -> anyhow::Result<()> {
    let found = root.join("target/fuzz/corpus").join(target);
    std::fs::create_dir_all(&found).with_context(|| format!("cannot create {}", found.display()))?;
    let mut fuzz = cargo_fuzz(root, &["run"]);
    // The crates hold no unsafe code, so that the address sanitizer would only cost half of the speed.
    fuzz.args(["--sanitizer", "none", target]).arg(found).arg(root.join("fuzz/corpus").join(target)).arg("--");
    fuzz.arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={MAX_SECONDS_PER_INPUT}"))
        .arg(format!("-rss_limit_mb={MAX_MEMORY_MIB}"))
        .arg(format!("-max_len={MAX_INPUT_BYTES}"))
        .args(["-print_final_stats=1", "-verbosity=1"]);
    run::run(&mut fuzz)
}

fn cargo_fuzz(root: &Path, words: &[&str]) -> Command {
    let mut fuzz = command(root, &["cargo", "+nightly", "fuzz"]);
    fuzz.args(words);
    fuzz
}

fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn require_tools(root: &Path) -> anyhow::Result<()> {
    let toolchains = output(&mut command(root, &["rustup", "toolchain", "list"]))?;
    if !toolchains.lines().any(|line| line.starts_with("nightly")) {
        bail!("fuzzing needs a nightly compiler: rustup toolchain install nightly");
    }
    if !succeeds(&mut cargo_fuzz(root, &["--version"])) {
        run::run(&mut command(root, &["cargo", "install", "cargo-fuzz"]))?;
    }
    Ok(())
}
