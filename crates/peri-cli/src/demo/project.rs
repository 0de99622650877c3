//! The sample project: three small files in POSIX sh, and a test that fails until a bug is mended.
//!
//! Owns: its text, and the edit that mends it. Invariant: nothing in it needs more than `sh`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file with the bug.
pub const PROGRAM: &str = "leap.sh";
/// Runs the tests; exit code 0 if they pass.
pub const TEST_COMMAND: &str = "sh tests/run.sh";

const PROGRAM_TEXT: &str = "\
#!/bin/sh
# leap.sh YEAR: says whether the year has 366 days.
year=$1
if [ $((year % 4)) -eq 0 ]; then
    echo yes
else
    echo no
fi
";

/// What the edit looks for, and what it puts there.
pub const BUG: &str = "if [ $((year % 4)) -eq 0 ]; then";
pub const MEND: &str =
    "if [ $((year % 4)) -eq 0 ] && { [ $((year % 100)) -ne 0 ] || [ $((year % 400)) -eq 0 ]; }; then";

const TEST_TEXT: &str = "\
#!/bin/sh
# Checks leap.sh. Exit code 0 if every year is right.
cd \"$(dirname \"$0\")/..\" || exit 2
failed=0
check() {
    got=$(sh leap.sh \"$1\")
    if [ \"$got\" = \"$2\" ]; then
        echo \"ok    $1 $2\"
    else
        echo \"FAIL  $1: expected $2, got $got\"
        failed=1
    fi
}
check 2024 yes
check 2023 no
check 1900 no
check 2000 yes
exit $failed
";

const INSTRUCTIONS: &str = "\
# Leap years

A sample project. `leap.sh YEAR` says whether a year has 366 days. The tests are run by `sh tests/run.sh`; they must pass.
";

/// A sample project on disk.
pub struct SampleProject {
    root: PathBuf,
}

impl SampleProject {
    /// Writes the project into `root`, which must not exist yet.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn write(root: PathBuf) -> io::Result<SampleProject> {
        std::fs::create_dir_all(root.join("tests"))?;
        std::fs::write(root.join(PROGRAM), PROGRAM_TEXT)?;
        std::fs::write(root.join("tests/run.sh"), TEST_TEXT)?;
        std::fs::write(root.join("AGENTS.md"), INSTRUCTIONS)?;
        Ok(SampleProject { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The program's change since it was written, as a unified diff. Empty where there is none.
    ///
    /// # Errors
    /// Where the program cannot be read.
    pub fn diff(&self) -> io::Result<String> {
        let now = std::fs::read_to_string(self.root.join(PROGRAM))?;
        let diff = similar::TextDiff::from_lines(PROGRAM_TEXT, &now);
        Ok(diff.unified_diff().header(&format!("a/{PROGRAM}"), &format!("b/{PROGRAM}")).to_string())
    }

    /// Runs the tests outside of any session: what they say is not the agent's word.
    ///
    /// # Errors
    /// Where `sh` cannot be started.
    pub fn run_tests(&self) -> io::Result<TestRun> {
        let output = Command::new("sh")
            .arg(self.root.join("tests/run.sh"))
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()?;
        Ok(TestRun {
            passed: output.status.success(),
            output: String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        })
    }
}

/// What the tests said.
pub struct TestRun {
    pub passed: bool,
    pub output: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_fail_until_the_bug_is_mended() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = SampleProject::write(folder.path().join("p")).expect("written");
        assert!(!project.run_tests().expect("sh").passed);
        assert_eq!(project.diff().expect("readable"), "");
        assert_eq!(PROGRAM_TEXT.matches(BUG).count(), 1);
        std::fs::write(project.root().join(PROGRAM), PROGRAM_TEXT.replace(BUG, MEND)).expect("writable");
        let run = project.run_tests().expect("sh");
        assert!(run.passed, "{}", run.output);
        assert!(project.diff().expect("readable").contains("+if ["));
    }
}
