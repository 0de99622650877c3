//! Ending everything that descends from this process.
//!
//! Owns: the passes over the process table. Must not: wait, or reap: between two reaps the ids of this process's own
//! children, dead or alive, cannot be reused, and a pass relies on that. Invariant: a pass that finds nothing is proof.
//! Whatever descends from a subreaper hangs on one of its children, and a child that dies during the pass stays visible,
//! since nobody else can reap it.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process, kill_process_group};

use super::proc_table::{self, Process};

/// How long to go on before saying that something is left.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Between two passes: a killed process needs some time to go.
pub(super) const PASS_INTERVAL: Duration = Duration::from_millis(10);

/// The same for what has withstood [`KILL_LIMIT`].
pub(super) const SLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Processes are stopped before they are signalled, until none is found running, so that none can fork meanwhile. In each
/// round those not yet caught may have become more; after so many rounds the caught ones are dealt with anyway.
const FREEZE_ROUNDS: usize = 20;

/// At most so many processes are named in a report.
const NAMED: usize = 5;

/// What a pass has found.
#[derive(Debug, Default)]
pub(super) struct Pass {
    found: Vec<Process>,
    refused: HashSet<Pid>,
}

impl Pass {
    pub(super) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    fn describe(&self) -> String {
        let named: Vec<String> = self.found.iter().take(NAMED).map(|process| self.name(process)).collect();
        match self.found.len() {
            0 => "a process that /proc does not show".to_owned(),
            count if count > NAMED => format!("{count} processes, among them {}", named.join(", ")),
            _ => named.join(", "),
        }
    }

    fn name(&self, process: &Process) -> String {
        let refused = if self.refused.contains(&process.pid) { ", not ours to signal" } else { "" };
        format!("{} ({}{refused})", process.pid.as_raw_pid(), process.name)
    }
}

/// What is left after a pass, in words for a person.
pub(super) fn describe(pass: &io::Result<Pass>) -> String {
    match pass {
        Ok(pass) => pass.describe(),
        Err(error) => format!("what it was is not known, since /proc cannot be read: {error}"),
    }
}

/// Asks all descendants to end: SIGTERM, and SIGCONT for those that are stopped.
///
/// Exactly those that exist now are asked. Without the freeze a process being forked could be missed, and would live on
/// until the grace is over; asking again later would hit what others start in order to clean up.
///
/// # Errors
/// Where `/proc` cannot be listed.
pub(super) fn terminate() -> io::Result<()> {
    let asked = freeze(&HashSet::new())?;
    // A refusal shows itself in the kill that follows.
    for process in &asked {
        let _ = process.signal(Signal::TERM);
    }
    // Children before parents, so that no shell wakes to find its child stopped.
    for process in asked.iter().rev() {
        let _ = process.signal(Signal::CONT);
    }
    Ok(())
}

/// Kills all descendants but the `spared` children and what descends from them.
///
/// # Errors
/// Where `/proc` cannot be listed.
pub(super) fn kill_pass(spared: &HashSet<Pid>) -> io::Result<Pass> {
    let found = freeze(spared)?;
    let refused = found
        .iter()
        .filter(|process| process.signal(Signal::KILL) == Err(Errno::PERM))
        .map(|process| process.pid)
        .collect();
    Ok(Pass { found, refused })
}

/// Stops all descendants but the `spared` children and what descends from them, in rounds until none is found running.
fn freeze(spared: &HashSet<Pid>) -> io::Result<Vec<Process>> {
    let mut frozen = HashSet::new();
    let mut rounds = 0;
    loop {
        let found = freeze_round(&frozen, spared)?;
        let before = frozen.len();
        frozen.extend(found.iter().map(Process::identity));
        rounds += 1;
        if frozen.len() == before || rounds == FREEZE_ROUNDS {
            return Ok(found);
        }
    }
}

/// Finds all descendants, and stops those that no earlier round has stopped.
fn freeze_round(frozen: &HashSet<(Pid, u64)>, spared: &HashSet<Pid>) -> io::Result<Vec<Process>> {
    let (root, own_group) = (getpid(), getpgrp());
    let table = proc_table::scan(|process| {
        // A process that forks and exits all the time is always our own child. It is gone before the scan ends, so it is
        // stopped here and now, together with its group: a signal to a group cannot be dodged by forking.
        if process.parent == Some(root) && !spared.contains(&process.pid) {
            let _ = kill_process(process.pid, Signal::STOP);
            if let Some(group) = process.group.filter(|group| *group != own_group) {
                let _ = kill_process_group(group, Signal::STOP);
            }
        }
    })?;
    let found = proc_table::descendants(table, root, spared);
    for process in &found {
        if !frozen.contains(&process.identity()) {
            let _ = process.signal(Signal::STOP);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(raw: i32) -> Process {
        let pid = Pid::from_raw(raw).unwrap();
        Process { pid, parent: None, group: None, threads: 1, start: 0, name: format!("p{raw}") }
    }

    fn check_words(found: &[i32], refused: &[i32], expected: &str) {
        let refused = refused.iter().map(|raw| process(*raw).pid).collect();
        let pass = Pass { found: found.iter().map(|raw| process(*raw)).collect(), refused };
        assert_eq!(describe(&Ok(pass)), expected);
    }

    #[test]
    fn what_is_left_is_named() {
        check_words(&[], &[], "a process that /proc does not show");
        check_words(&[7, 8], &[8], "7 (p7), 8 (p8, not ours to signal)");
        check_words(&[1, 2, 3, 4, 5, 6, 7], &[], "7 processes, among them 1 (p1), 2 (p2), 3 (p3), 4 (p4), 5 (p5)");
    }
}
