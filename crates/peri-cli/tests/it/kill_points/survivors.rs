//! The processes of a run, found by a variable that all of them inherit, whatever they do to their session or parent.

use std::time::{Duration, Instant};

/// The variable; its value names the run.
pub const MARK: &str = "PERI_TEST_KILL_POINT";
/// No process may be left so long after its run has ended.
const LIMIT: Duration = Duration::from_secs(2);
/// There is no event for the end of a process that is not ours.
const POLL: Duration = Duration::from_millis(10);

/// Waits until no process with that mark is left.
///
/// # Errors
/// Words that name those that are left when it is too late.
pub fn check_none(mark: &str, run_ended: Instant) -> Result<(), String> {
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(());
        }
        if run_ended.elapsed() > LIMIT {
            return Err(format!("{LIMIT:?} after the end these are left: {}", left.join("; ")));
        }
        std::thread::sleep(POLL);
    }
}

/// Ids and command lines. What ends while it is looked at is not there, nor is a zombie.
fn marked(mark: &str) -> Vec<String> {
    let variable = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    let processes = entries.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let has_mark = |variables: &[u8]| variables.split(|byte| *byte == 0).any(|known| known == variable.as_bytes());
    processes
        .filter(|process| std::fs::read(process.path().join("environ")).is_ok_and(|variables| has_mark(&variables)))
        .map(|process| {
            let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            format!("{} {}", process.file_name().display(), command.trim_end())
        })
        .collect()
}
