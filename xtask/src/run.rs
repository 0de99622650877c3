//! Running other programs, with the command shown first.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// A program and its arguments, in the repository's root.
pub fn command(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.iter().skip(1)).current_dir(root);
    command
}

/// Where cargo puts what it builds.
pub fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named))
}

/// Runs it to its end; another exit code than 0 is an error.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    eprintln!("> {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// True where it can be started and ends with 0; its output is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Its standard output, trimmed.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = show(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
