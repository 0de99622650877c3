//! The tasks of a session: starting, finding, ending them all.
//!
//! Must not speak to the model. Invariant: every command that was started is in here, running or not, until it was
//! killed: what it left in the background lives exactly as long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use peri_acp_types::CancellationToken;
use peri_acp_types::ports::{
    ChildProcess, Clock, KillProof, ProcessError, ProcessHost, ProcessOutput, ProcessSpec, ProcessStdin,
};
use tokio_util::task::TaskTracker;

use super::capture::Capture;
use super::task::{Pipe, Task, TaskState};
use crate::workspace::{BashLimits, WorkspacePorts};

/// Commands that may run, or hold their output open, at once.
const MAX_ACTIVE: usize = 32;
/// Tasks kept after their end, for what they may have left running.
const MAX_KEPT: usize = 256;
/// How long the end of a session waits for processes to go.
const END_LIMIT: Duration = Duration::from_secs(5);

/// What makes programs behave that would wait for a person or draw on a screen. The host's own settings go over it.
const UNATTENDED: [(&str, &str); 4] =
    [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Starts commands and knows them.
pub(crate) struct Tasks {
    process: Arc<dyn ProcessHost>,
    clock: Arc<dyn Clock>,
    limits: BashLimits,
    env: BTreeMap<String, Option<String>>,
    spill_dir: PathBuf,
    cwd: PathBuf,
    /// Std mutex: never held over an await.
    known: Mutex<Known>,
    attendants: TaskTracker,
    closing: CancellationToken,
}

#[derive(Default)]
struct Known {
    /// By number: `bash_3` is 3.
    tasks: BTreeMap<u64, Arc<Task>>,
    last: u64,
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("{MAX_ACTIVE} commands are running already; end some with KillBash first")]
    TooMany,
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl Tasks {
    /// Cancelling `closing` ends every task.
    pub(crate) fn new(ports: &WorkspacePorts, cwd: &Path, closing: CancellationToken) -> Tasks {
        let unattended = UNATTENDED.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
        let mut env: BTreeMap<String, Option<String>> = unattended.collect();
        env.extend(ports.env.clone());
        Tasks {
            process: ports.process.clone(),
            clock: ports.clock.clone(),
            limits: ports.limits,
            env,
            spill_dir: ports.spill_dir.clone(),
            cwd: cwd.to_owned(),
            known: Mutex::default(),
            attendants: TaskTracker::new(),
            closing,
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    pub(crate) fn limits(&self) -> &BashLimits {
        &self.limits
    }

    /// Starts a command, which lists name by `label`. If the future is dropped meanwhile, nothing is left of it.
    pub(crate) async fn start(&self, command: &str, label: &str) -> Result<Arc<Task>, StartError> {
        if self.active() >= MAX_ACTIVE {
            return Err(StartError::TooMany);
        }
        let child = self.spawn(command).await?;
        let (task, attendant) = {
            let mut known = self.known();
            known.last += 1;
            let (number, id) = (known.last, format!("bash_{}", known.last));
            let capture = Capture::new(self.spill_dir.clone(), id.clone());
            let kill = self.closing.child_token();
            let (task, attendant) = Task::new(id, label.to_owned(), child, capture, self.clock.clone(), kill);
            known.tasks.insert(number, task.clone());
            known.make_room();
            (task, attendant)
        };
        self.attendants.spawn(attendant.run());
        Ok(task)
    }

    /// The task of that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Task>> {
        let number = id.strip_prefix("bash_")?.parse().ok()?;
        self.known().tasks.get(&number).cloned()
    }

    /// The tasks whose ids the model knows, oldest first.
    pub(crate) fn in_background(&self) -> Vec<Arc<Task>> {
        self.known().tasks.values().filter(|task| task.is_in_background()).cloned().collect()
    }

    /// Ends every task and waits for it, for a bounded time. What may be left is told, a line each.
    pub(crate) async fn end(&self) -> Vec<String> {
        self.closing.cancel();
        self.attendants.close();
        tokio::select! {
            () = self.attendants.wait() => {}
            () = self.clock.sleep(END_LIMIT) => {}
        }
        self.known().tasks.values().filter_map(|task| unconfirmed(task)).collect()
    }

    async fn spawn(&self, command: &str) -> Result<Box<dyn ChildProcess>, ProcessError> {
        match self.process.spawn(self.spec("bash", command)).await {
            // No bash on this machine. Should `sh` fail too, bash is what was meant to be there.
            Err(error @ ProcessError::NotStarted { .. }) => {
                self.process.spawn(self.spec("sh", command)).await.map_err(|_| error)
            }
            spawned => spawned,
        }
    }

    fn spec(&self, shell: &str, command: &str) -> ProcessSpec {
        ProcessSpec {
            program: shell.to_owned(),
            args: vec!["-c".to_owned(), command.to_owned()],
            cwd: self.cwd.to_string_lossy().into_owned(),
            env: self.env.clone(),
            stdin: ProcessStdin::Null,
            output: ProcessOutput::Merged,
        }
    }

    fn active(&self) -> usize {
        let is_active =
            |task: &&Arc<Task>| matches!(task.state(), TaskState::Running | TaskState::Exited { pipe: Pipe::Held, .. });
        self.known().tasks.values().filter(is_active).count()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Lets go of the oldest tasks that have ended, those first that seem to have left nothing running.
    fn make_room(&mut self) {
        while self.tasks.len() > MAX_KEPT {
            let ended = |task: &Task| {
                matches!(task.state(), TaskState::Killed { .. } | TaskState::Exited { pipe: Pipe::Closed, .. })
            };
            let oldest = |leaves: &dyn Fn(&Task) -> bool| {
                self.tasks.iter().find(|(_, task)| ended(task) && leaves(task)).map(|(number, _)| *number)
            };
            let Some(number) = oldest(&|task| !has_group(task.pid)).or_else(|| oldest(&|_| true)) else { return };
            if let Some(task) = self.tasks.remove(&number) {
                task.kill_token().cancel();
            }
        }
    }
}

/// Whether the process group of a command has members. One that left the group is not seen.
fn has_group(pid: u32) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
}

fn unconfirmed(task: &Task) -> Option<String> {
    match task.state() {
        TaskState::Killed { proof: KillProof::Gone, .. } => None,
        TaskState::Killed { proof: KillProof::Unconfirmed(reason), .. } => Some(format!("{}: {reason}", task.id)),
        TaskState::Running | TaskState::Exited { .. } => Some(format!("{}: did not end in time", task.id)),
    }
}
