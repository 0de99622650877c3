//! The process table as `/proc` shows it, and signals that hit exactly the process that was seen.
//!
//! Owns: reading `/proc/PID/stat`, finding descendants, and the guard against reused process ids. Must not: decide whom to
//! kill. Invariant: a signal goes to the process of the snapshot or to none.

use std::collections::{HashMap, HashSet};
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// A line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub pid: Pid,
    pub parent: Option<Pid>,
    pub group: Option<Pid>,
    pub threads: u32,
    /// In clock ticks since boot: tells apart two processes that had the same id.
    pub start: u64,
    pub name: String,
}

impl Process {
    /// Reads one line; None where there is no such process (any more).
    pub(super) fn read(pid: Pid) -> Option<Self> {
        parse(&std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
    }

    /// What stays the same for the life of a process, and is never the same for two.
    pub(super) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.start)
    }

    /// Signals this process. That it is gone is no error.
    ///
    /// # Errors
    /// Where the system refuses, as for a process that has become another user's.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let handle = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(Errno::SRCH) => return Ok(()),
            // An old kernel, or no descriptor free: the check below leaves a gap of microseconds then.
            Err(_) => None,
        };
        // The handle is that of the process seen if that one still has the id now.
        if Self::read(self.pid).is_none_or(|now| now.start != self.start) {
            return Ok(());
        }
        let sent = match handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => kill_process(self.pid, signal),
        };
        if sent == Err(Errno::SRCH) { Ok(()) } else { sent }
    }
}

/// All processes. The newest come first, for they are the ones that may be gone soonest; `seen` is shown each at once, when
/// its line is fresh.
///
/// # Errors
/// Where `/proc` cannot be listed.
pub(super) fn scan(mut seen: impl FnMut(&Process)) -> io::Result<Vec<Process>> {
    let mut pids: Vec<i32> =
        std::fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable_by(|left, right| right.cmp(left));
    let processes = pids.into_iter().filter_map(|pid| {
        let process = Process::read(Pid::from_raw(pid)?)?;
        seen(&process);
        Some(process)
    });
    Ok(processes.collect())
}

/// Those of `processes` that descend from `root`, but not from the `spared` ones, nor those themselves.
pub(super) fn descendants(processes: Vec<Process>, root: Pid, spared: &HashSet<Pid>) -> Vec<Process> {
    let mut children: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in processes {
        if let Some(parent) = process.parent.filter(|_| !spared.contains(&process.pid)) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut visited = 0;
    while let Some(process) = found.get(visited) {
        let next = children.remove(&process.pid).unwrap_or_default();
        found.extend(next);
        visited += 1;
    }
    found
}

/// The name is in parentheses and may hold anything, parentheses and line ends too: the fields begin after the last one.
fn parse(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.trim().parse::<u64>().ok();
    let pid_of = |value: u64| Pid::from_raw(i32::try_from(value).ok()?);
    let fields: Vec<&[u8]> = line.get(close + 2..)?.split(|byte| *byte == b' ').collect();
    // Numbered from the state, which proc(5) calls field 3.
    let field = |index: usize| number(fields.get(index)?);
    Some(Process {
        pid: pid_of(number(line.get(..open)?)?)?,
        parent: pid_of(field(1)?),
        group: pid_of(field(2)?),
        threads: u32::try_from(field(17)?).ok()?,
        start: field(19)?,
        name: String::from_utf8_lossy(line.get(open + 1..close)?).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    fn process(raw: i32, parent: i32) -> Process {
        Process { pid: pid(raw), parent: Pid::from_raw(parent), group: None, threads: 1, start: 0, name: String::new() }
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a) R 1 (\n) S 7 40 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 98765 1000 2 18446744073709551615";
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.pid, pid(42));
        assert_eq!(parsed.name, "a) R 1 (\n");
        assert_eq!(
            (parsed.parent, parsed.group, parsed.threads, parsed.start),
            (Some(pid(7)), Some(pid(40)), 3, 98765)
        );
    }

    #[test]
    fn lines_that_are_cut_are_no_process() {
        for line in [&b""[..], b"42", b"42 (sh", b"42 (sh)", b"42 (sh) S 1 2 3"] {
            assert_eq!(parse(line), None);
        }
    }

    #[test]
    fn descendants_stop_at_the_spared() {
        let table = [(10, 1), (11, 10), (12, 11), (20, 1), (21, 20), (30, 2), (0x7fff, 12)];
        let table: Vec<Process> = table.into_iter().map(|(pid, parent)| process(pid, parent)).collect();
        let found = descendants(table, pid(1), &HashSet::from([pid(20)]));
        let found: Vec<i32> = found.iter().map(|process| process.pid.as_raw_pid()).collect();
        assert_eq!(found, [10, 11, 12, 0x7fff]);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let mut shown = 0;
        let processes = scan(|_| shown += 1).unwrap();
        assert_eq!(shown, processes.len());
        let own = rustix::process::getpid();
        assert!(processes.iter().any(|process| process.pid == own && process.start > 0));
    }
}
