//! The README's test command.

use std::path::Path;

use crate::run::{self, command, succeeds};
use crate::{interop, prerequisites, wasm};

/// All tests; with arguments for the runner, a filter say, only what they select of our own.
pub fn run(root: &Path, runner_arguments: &[String]) -> anyhow::Result<()> {
    prerequisites::require_tools(root)?;
    wasm::run(root)?;
    // The binary under test, and the scripted endpoint that some tests start beside it.
    run::run(&mut command(root, &["cargo", "build", "--workspace", "--bins", "--quiet"]))?;
    let by_nextest = succeeds(&mut command(root, &["cargo", "nextest", "--version"]));
    let words: &[&str] = if by_nextest {
        &["cargo", "nextest", "run", "--workspace", "--no-fail-fast"]
    } else {
        &["cargo", "test", "--workspace", "--no-fail-fast"]
    };
    let ours = run::run(command(root, words).args(runner_arguments));
    if !runner_arguments.is_empty() {
        return ours;
    }
    // Whoever reads a failure wants to know whether the others are well.
    let theirs = interop::run_suites(root, None);
    ours.and(theirs)
}
