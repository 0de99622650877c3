//! Rules on single source files.

use std::path::Path;

use super::rules::MAX_FILE_LINES;
use crate::run::{command, output};

/// A source file of the repository.
pub struct SourceFile {
    /// From the root, with slashes.
    pub path: String,
    pub text: String,
}

/// Sources that git knows or would add.
pub fn tracked_files(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let listed = output(&mut command(root, &["git", "ls-files", "-co", "--exclude-standard"]))?;
    let is_source = |path: &&str| [".rs", ".ts", ".tsx"].iter().any(|end| path.ends_with(end));
    // A file that is listed and gone was deleted and not committed yet.
    let read = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).ok()?;
        Some(SourceFile { path: path.to_owned(), text })
    };
    Ok(listed.lines().filter(is_source).filter_map(read).collect())
}

pub fn check(files: &[SourceFile]) -> Vec<String> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines > MAX_FILE_LINES {
        findings.push(format!("{}: {lines} lines; split it (at most {MAX_FILE_LINES})", file.path));
    }
    let is_rust = file.path.ends_with(".rs");
    if is_rust && file.path.contains("/src/") && !file.text.starts_with("//!") {
        findings.push(format!("{}: begin with `//!`: what it owns, what it must not do", file.path));
    }
    // Spelled so that this file does not find itself.
    let skipped_test = concat!("#[", "ignore");
    if is_rust && file.text.contains(skipped_test) {
        findings.push(format!("{}: a skipped test", file.path));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: String) -> usize {
        check(&[SourceFile { path: path.into(), text }]).len()
    }

    #[test]
    fn long_files_silent_modules_and_skipped_tests_are_found() {
        assert_eq!(findings("crates/x/src/a.rs", format!("//! A.\n{}", "x\n".repeat(800))), 1);
        assert_eq!(findings("npm/x/src/a.ts", "x\n".repeat(801)), 1);
        assert_eq!(findings("crates/x/src/a.rs", "fn f() {}\n".into()), 1);
        assert_eq!(findings("crates/x/tests/it/a.rs", concat!("#[", "ignore]\nfn f() {}\n").into()), 1);
    }

    #[test]
    fn a_documented_short_file_passes() {
        assert_eq!(findings("crates/x/src/a.rs", format!("//! A.\n{}", "x\n".repeat(799))), 0);
    }
}
