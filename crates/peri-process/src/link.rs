//! Peri's end of one supervisor.
//!
//! Owns: starting the supervisor process, the control socket, and reaping the process. Must not: know of jobs beyond handing
//! over their sockets. Invariant: the process handle is given up only after its exit was collected or peri itself ends.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use peri_acp_types::ports::KillProof;
use rustix::net::Shutdown;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::SupervisorCommand;
use crate::descriptors;
use crate::reports::{Fold, Reports};
use crate::wire::{LAUNCH, PROTOCOL, SupervisorReport};

/// A supervisor starts in a few milliseconds. One that takes so long is some other program.
const START_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Link {
    control: Reports<SupervisorState>,
    /// Never held over an await. A lock only because collecting an exit needs it mutable.
    process: Mutex<Child>,
}

/// What the supervisor has said.
#[derive(Debug, Default)]
struct SupervisorState {
    /// The reason where it cannot work.
    ready: Option<Result<(), String>>,
    end: Option<KillProof>,
    closed: bool,
}

impl Fold for SupervisorState {
    type Report = SupervisorReport;

    fn apply(&mut self, report: SupervisorReport) {
        match report {
            SupervisorReport::Ready { protocol: PROTOCOL } => self.ready = Some(Ok(())),
            SupervisorReport::Ready { protocol } => {
                let reason = format!("it speaks version {protocol} of the protocol, not {PROTOCOL}");
                self.ready = Some(Err(reason));
            }
            SupervisorReport::Unable(reason) => self.ready = Some(Err(reason)),
            SupervisorReport::Gone => self.end = Some(KillProof::Gone),
            SupervisorReport::Left(what) => self.end = Some(KillProof::Unconfirmed(format!("still there: {what}"))),
        }
    }

    fn close(&mut self) {
        self.closed = true;
    }
}

impl Link {
    /// Starts a supervisor. Blocks for as long as the system takes to start a program.
    ///
    /// # Errors
    /// Where the program cannot be started, or there is no tokio runtime with I/O.
    pub(crate) fn start(command: &SupervisorCommand) -> io::Result<Self> {
        let (ours, theirs) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = Reports::new(UnixStream::from_std(ours)?);
        let process = Command::new(&command.program)
            .args(&command.args)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { control, process: Mutex::new(process) })
    }

    /// Waits until it can take jobs.
    ///
    /// # Errors
    /// The reason why it never will.
    pub(crate) async fn ready(&self) -> Result<(), String> {
        let ready = self.control.answer(|state| match (&state.ready, state.closed) {
            (Some(Ok(())), true) => Some(Err("it has ended".to_owned())),
            (Some(ready), _) => Some(ready.clone()),
            (None, true) => Some(Err("it ended without a word".to_owned())),
            (None, false) => None,
        });
        let late = format!("it did not answer within {} s", START_LIMIT.as_secs());
        timeout(START_LIMIT, ready).await.unwrap_or(Err(late))
    }

    /// Hands over the leader's end of a job socket. When this returns the request is sent as a whole.
    ///
    /// # Errors
    /// Where the supervisor is gone; then no leader was started.
    pub(crate) async fn launch(&self, job: OwnedFd) -> io::Result<()> {
        self.wake();
        let stream = self.control.stream();
        stream.async_io(Interest::WRITABLE, || descriptors::send(stream, &[LAUNCH], &[job.as_fd()])).await.map(drop)
    }

    /// Makes the supervisor end all jobs and itself. If `deadline` passes first it goes on doing so.
    pub(crate) async fn finish(&self, deadline: Duration) -> KillProof {
        self.wake();
        let _ = rustix::net::shutdown(self.control.stream(), Shutdown::Write);
        let end = self.control.answer(|state| {
            state.closed.then(|| {
                let unheard = || KillProof::Unconfirmed("the supervisor ended before it could confirm".to_owned());
                state.end.clone().unwrap_or_else(unheard)
            })
        });
        match timeout(deadline, end).await {
            Ok(proof) => {
                self.collect();
                proof
            }
            Err(_) => KillProof::Unconfirmed(format!("the supervisor is not done after {} ms", deadline.as_millis())),
        }
    }

    /// A command may have stopped it, as with a `pkill -STOP` of peri by name.
    fn wake(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // Not yet collected, so the id is still its own.
        if matches!(process.try_wait(), Ok(None)) {
            let pid = Pid::from_raw(process.id().cast_signed());
            let _ = pid.map(|pid| kill_process(pid, Signal::CONT));
        }
    }

    /// Collects the exit of a supervisor whose socket is closed, or which is of no use. It is about to exit then, but the
    /// socket may also have been closed by a program that is none: hence the kill.
    pub(crate) fn collect(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(process.try_wait(), Ok(Some(_))) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Link {
    /// Its socket closes with it; the supervisor ends by itself and is collected by the system when peri ends.
    fn drop(&mut self) {
        let _ = self.process.get_mut().unwrap_or_else(PoisonError::into_inner).try_wait();
    }
}

/// Whether an error on the control socket means that nobody is at the other end.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected)
}
