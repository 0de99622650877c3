//! Peri's own children: its supervisors, and the orphans of those that were killed.
//!
//! Owns: peri being a subreaper, the list of its supervisors, and the passes that end orphans. Must not: touch a child that
//! peri has started by other means; such a child is in peri's session, which no process of a job can enter again.
//! Invariant: supervisors are started and collected, and passes made, under one lock. So no pass takes a new supervisor for
//! an orphan, and no orphan is spared for having a dead supervisor's id.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::process::{Child, Command};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use peri_acp_types::ports::KillProof;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

use crate::supervise::proc_table::Process;
use crate::supervise::sweep::{self, KILL_LIMIT, PASS_INTERVAL, Pass, SLOW_INTERVAL};
use crate::supervise::{ALL_CHILDREN, LEADERS_LIMIT};

/// Of the whole process, since the process table knows no hosts.
static KIN: LazyLock<Mutex<Kin>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Kin {
    /// Started and not collected.
    supervisors: HashSet<Pid>,
    /// The sessions of those that were collected. Only their leaders are in them, and these end their jobs by themselves:
    /// they may until then.
    lost: HashMap<Pid, Instant>,
}

/// Never held over an await.
fn kin() -> MutexGuard<'static, Kin> {
    KIN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A supervisor as peri's child.
pub(crate) struct SupervisorProcess(Child);

impl SupervisorProcess {
    /// Starts it. From here on what a supervisor leaves when it is killed falls to peri.
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut kin = kin();
        set_child_subreaper(Some(getpid()))?;
        let child = command.spawn()?;
        kin.supervisors.extend(id(&child));
        Ok(Self(child))
    }

    /// Lets it go on where a command has stopped it, as with a `pkill -STOP` of peri by name.
    pub(crate) fn wake(&self) {
        let kin = kin();
        // Not yet collected, so the id is still its own.
        if let Some(pid) = id(&self.0).filter(|pid| kin.supervisors.contains(pid)) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Collects its exit, and kills it first if it is still there.
    pub(crate) fn collect(&mut self) {
        let mut kin = kin();
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
        if let Some(pid) = id(&self.0).filter(|pid| kin.supervisors.remove(pid)) {
            kin.lost.insert(pid, Instant::now() + LEADERS_LIMIT);
        }
    }
}

fn id(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().cast_signed())
}

/// Ends all orphans. Comes back when a pass over the process table has found none; `give_up` is told once what is left
/// if that takes too long. Dropping it leaves the rest undone.
///
/// The passes are made where this is polled: a machine on which no thread can be had may be why they are needed.
pub(crate) async fn end_orphans(give_up: impl FnOnce(KillProof)) {
    let limit = Instant::now() + LEADERS_LIMIT + KILL_LIMIT;
    let mut give_up = Some(give_up);
    loop {
        let pass = pass();
        if let Ok(OrphanPass { pass, leaders: 0 }) = &pass
            && pass.is_clean()
        {
            return;
        }
        if limit <= Instant::now()
            && let Some(tell) = give_up.take()
        {
            let what = sweep::describe(&pass.map(|pass| pass.pass));
            tell(KillProof::Unconfirmed(format!("still there: {what}")));
        }
        tokio::time::sleep(if give_up.is_some() { PASS_INTERVAL } else { SLOW_INTERVAL }).await;
    }
}

struct OrphanPass {
    pass: Pass,
    /// So many still have time to end their jobs.
    leaders: usize,
}

/// Kills all orphans but leaders that have time left, and collects those that have ended.
fn pass() -> io::Result<OrphanPass> {
    let mut kin = kin();
    let now = Instant::now();
    kin.lost.retain(|_, until| *until > now);
    let peri = Process::read(getpid()).ok_or_else(|| io::Error::other("/proc does not show peri"))?;
    let leaders = RefCell::new(HashSet::new());
    let pass = sweep::kill_pass(&|process| {
        if process.session.is_some_and(|session| kin.lost.contains_key(&session)) {
            if process.parent == Some(peri.pid) {
                leaders.borrow_mut().insert(process.pid);
            }
            return true;
        }
        // A supervisor is the leader of its session, or still in peri's.
        process.session == peri.session || process.session.is_some_and(|session| kin.supervisors.contains(&session))
    })?;
    let leaders = leaders.into_inner();
    for leader in &leaders {
        // Nobody who means well stops one.
        let _ = kill_process(*leader, Signal::CONT);
    }
    let children = pass.found().iter().filter(|process| process.parent == Some(peri.pid)).map(|process| process.pid);
    for orphan in children.chain(leaders.iter().copied()) {
        let _ = waitpid(Some(orphan), ALL_CHILDREN | WaitOptions::NOHANG);
    }
    Ok(OrphanPass { pass, leaders: leaders.len() })
}
