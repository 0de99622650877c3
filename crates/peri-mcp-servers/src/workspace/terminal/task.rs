//! One command and whoever attends to it until its last process is gone.
//!
//! Must not know tools. Invariants: somebody reads the command's output for as long as anything holds the pipe, so that
//! nothing it left running blocks or breaks on it; the child is dropped only after it was killed with proof, or with
//! the whole task.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::io::AsyncRead;
use peri_acp_types::CancellationToken;
use peri_acp_types::ports::{ChildProcess, Clock, KillProof, ProcessExit};
use tokio::sync::watch;

use super::capture::Capture;
use super::spill::SpillOutcome;
use crate::workspace::threads::{self, Unfinished};

/// How long the pipe may stay open after the command itself has exited before its call is answered.
const PIPE_GRACE: Duration = Duration::from_millis(200);
/// From SIGTERM to SIGKILL.
const KILL_GRACE: Duration = Duration::from_millis(800);
const READ_BYTES: usize = 64 * 1024;

/// A command that was started, as the tools see it.
pub(crate) struct Task {
    pub(crate) id: String,
    /// For lists: what the model said it does, or the command itself.
    pub(crate) label: String,
    pub(crate) pid: u32,
    /// By the clock's monotonic time.
    pub(crate) started: Duration,
    /// Shared with the attendant. Std mutex: never held over an await or I/O.
    capture: Arc<Mutex<Capture>>,
    state: watch::Receiver<TaskState>,
    kill: CancellationToken,
    in_background: AtomicBool,
}

/// How far a command has come. It only goes down this list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TaskState {
    Running,
    Exited {
        exit: ProcessExit,
        pipe: Pipe,
    },
    /// It was ended by us, or what it left running was (then `exit` is how the command itself ended before).
    Killed {
        exit: Option<ProcessExit>,
        proof: KillProof,
    },
}

/// The command's output after the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pipe {
    Closed,
    /// Something that the command left running may still write.
    Held,
}

impl Task {
    /// Makes the task of a child and the attendant that must be run for it. Cancelling `kill` ends both.
    pub(crate) fn new(
        id: String,
        label: String,
        mut child: Box<dyn ChildProcess>,
        capture: Capture,
        clock: Arc<dyn Clock>,
        kill: CancellationToken,
    ) -> (Arc<Task>, Attendant) {
        let capture = Arc::new(Mutex::new(capture));
        let (state_tx, state) = watch::channel(TaskState::Running);
        let task = Task {
            id,
            label,
            pid: child.pid(),
            started: clock.monotonic(),
            capture: capture.clone(),
            state,
            kill: kill.clone(),
            in_background: AtomicBool::new(false),
        };
        let intake = Intake { output: child.take_stdout(), buffer: vec![0; READ_BYTES], capture };
        (Arc::new(task), Attendant { child, intake, state: state_tx, kill, clock })
    }

    pub(crate) fn state(&self) -> TaskState {
        self.state.borrow().clone()
    }

    /// Waits until the command itself has ended. Dropping it has no effect on the command.
    pub(crate) async fn ended(&self) -> TaskState {
        self.reached(|state| *state != TaskState::Running).await
    }

    /// Ends the command and everything it started. Idempotent; dropping the future does not take it back.
    pub(crate) async fn kill(&self) -> TaskState {
        self.kill.cancel();
        self.reached(|state| matches!(state, TaskState::Killed { .. })).await
    }

    /// For a guard that ends the command when its call goes away.
    pub(crate) fn kill_token(&self) -> CancellationToken {
        self.kill.clone()
    }

    /// What it has written since the last reading.
    pub(crate) fn read(&self) -> Option<String> {
        lock(&self.capture).read()
    }

    /// The model learned its id, so it is listed from now on.
    pub(crate) fn goes_to_background(&self) {
        self.in_background.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_in_background(&self) -> bool {
        self.in_background.load(Ordering::Relaxed)
    }

    async fn reached(&self, wanted: impl FnMut(&TaskState) -> bool) -> TaskState {
        let mut state = self.state.clone();
        let reached = state.wait_for(wanted).await.map(|state| state.clone());
        // The attendant went away without a word: it panicked, or the runtime is ending.
        reached.unwrap_or_else(|_| TaskState::Killed {
            exit: None,
            proof: KillProof::Unconfirmed("nobody attends to it any more".to_owned()),
        })
    }
}

/// Owns the child. To be run as a task of its own.
pub(crate) struct Attendant {
    child: Box<dyn ChildProcess>,
    intake: Intake,
    state: watch::Sender<TaskState>,
    kill: CancellationToken,
    clock: Arc<dyn Clock>,
}

impl Attendant {
    /// Stays until the task is killed, since dropping the child would end what the command left running.
    pub(crate) async fn run(mut self) {
        let exit = self.until_killed().await;
        let proof = self.kill_child().await;
        self.drain(None).await;
        self.intake.finish().await;
        self.state.send_replace(TaskState::Killed { exit, proof });
    }

    async fn until_killed(&mut self) -> Option<ProcessExit> {
        let exit = loop {
            tokio::select! {
                () = self.kill.cancelled() => return None,
                exit = self.child.wait() => break exit,
                length = self.intake.read() => self.intake.keep(length).await,
            }
        };
        let kill = self.kill.clone();
        self.drain(Some(&kill)).await;
        if self.intake.is_open() && !kill.is_cancelled() {
            self.state.send_replace(TaskState::Exited { exit, pipe: Pipe::Held });
        }
        while self.intake.is_open() {
            tokio::select! {
                () = kill.cancelled() => return Some(exit),
                length = self.intake.read() => self.intake.keep(length).await,
            }
        }
        self.intake.finish().await;
        self.state.send_replace(TaskState::Exited { exit, pipe: Pipe::Closed });
        kill.cancelled().await;
        Some(exit)
    }

    /// Takes what is still in the pipe, until it is closed or for a short time.
    async fn drain(&mut self, until: Option<&CancellationToken>) {
        let mut grace = self.clock.sleep(PIPE_GRACE);
        while self.intake.is_open() {
            tokio::select! {
                () = &mut grace => return,
                () = cancelled(until) => return,
                length = self.intake.read() => self.intake.keep(length).await,
            }
        }
    }

    /// Reads on meanwhile, so that a process that says goodbye does not hang on a full pipe.
    async fn kill_child(&mut self) -> KillProof {
        let mut kill = self.child.kill(KILL_GRACE);
        loop {
            tokio::select! {
                proof = &mut kill => return proof,
                length = self.intake.read() => self.intake.keep(length).await,
            }
        }
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// From the pipe into the capture.
struct Intake {
    /// None once it has ended.
    output: Option<Pin<Box<dyn AsyncRead + Send>>>,
    buffer: Vec<u8>,
    capture: Arc<Mutex<Capture>>,
}

impl Intake {
    fn is_open(&self) -> bool {
        self.output.is_some()
    }

    /// Waits for output; 0 is its end. Never resolves once it has ended. May be dropped without losing anything.
    async fn read(&mut self) -> usize {
        match &mut self.output {
            // An error is an end too: there is no more to be had.
            Some(output) => futures::AsyncReadExt::read(output, &mut self.buffer).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }

    /// Takes over what [`Intake::read`] has read.
    async fn keep(&mut self, length: usize) {
        if length == 0 {
            self.output = None;
            return;
        }
        lock(&self.capture).push(self.buffer.get(..length).unwrap_or_default());
        self.spill().await;
    }

    async fn finish(&mut self) {
        lock(&self.capture).finish();
        self.spill().await;
    }

    /// Writes what is due to the spill file. The command waits meanwhile, which bounds what is in memory.
    async fn spill(&mut self) {
        let Some(write) = lock(&self.capture).due_write() else { return };
        let outcome = match threads::run(|| write.run()).await {
            Ok(outcome) => outcome,
            // What one read has brought is short: rather hold up the runtime than lose it.
            Err(Unfinished::NoThread { work, .. }) => work(),
            Err(Unfinished::Died) => SpillOutcome::lost(),
        };
        lock(&self.capture).wrote(outcome);
    }
}

fn lock(capture: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    capture.lock().unwrap_or_else(PoisonError::into_inner)
}
