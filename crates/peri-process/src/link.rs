//! Peri's end of one supervisor.
//!
//! Owns: starting the supervisor process, the control socket, and the end: collecting the process, and ending what it has
//! left where it was killed. Must not: know of jobs beyond handing over their sockets. Invariant: the end is attended to
//! whether or not anybody waits for it, as long as the runtime is there.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use peri_acp_types::ports::KillProof;
use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::SupervisorCommand;
use crate::descriptors;
use crate::kin::{self, SupervisorProcess};
use crate::reports::{Fold, Reports};
use crate::wire::{LAUNCH, PROTOCOL, SupervisorReport};

/// A supervisor starts in a few milliseconds. One that takes so long is some other program.
const START_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Link {
    control: Reports<SupervisorState>,
    /// Never held over an await. A lock only because collecting an exit needs it mutable.
    process: Mutex<SupervisorProcess>,
    /// What is known of the jobs when all is over, or has taken too long.
    end: watch::Sender<Option<KillProof>>,
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
    pub(crate) fn start(command: &SupervisorCommand) -> io::Result<Arc<Self>> {
        let (ours, theirs) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = Reports::new(UnixStream::from_std(ours)?);
        let mut program = Command::new(&command.program);
        program.args(&command.args).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Mutex::new(SupervisorProcess::start(&mut program)?);
        let link = Arc::new(Self { control, process, end: watch::Sender::new(None) });
        tokio::spawn(attend(Arc::clone(&link)));
        Ok(link)
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

    /// Makes the supervisor end all jobs and itself, without waiting for it.
    pub(crate) fn close(&self) {
        self.wake();
        let _ = rustix::net::shutdown(self.control.stream(), Shutdown::Write);
    }

    /// The same, and waits for it. If `deadline` passes first it goes on.
    pub(crate) async fn finish(&self, deadline: Duration) -> KillProof {
        self.close();
        let late = || KillProof::Unconfirmed(format!("the supervisor is not done after {} ms", deadline.as_millis()));
        timeout(deadline, self.ended()).await.unwrap_or_else(|_| late())
    }

    /// Waits until the supervisor has ended, and what it has left has too: `Gone` if so, or in bounded time what is left.
    /// Dropping it has no effect.
    pub(crate) async fn ended(&self) -> KillProof {
        let mut end = self.end.subscribe();
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.unwrap_or_else(|| KillProof::Unconfirmed("nobody attends to its supervisor".to_owned()))
    }

    /// Gives up a supervisor that is gone or of no use. What it leaves is ended; [`Link::ended`] tells when.
    pub(crate) fn give_up(&self) {
        self.process().collect();
        self.control.close();
    }

    /// Lets a supervisor go on that a command has stopped.
    pub(crate) fn wake(&self) {
        self.process().wake();
    }

    fn process(&self) -> MutexGuard<'_, SupervisorProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees to the end of a supervisor, whenever and however it comes.
async fn attend(link: Arc<Link>) {
    let word = link.control.answer(|state| state.closed.then(|| state.end.clone())).await;
    // It is about to exit, but the socket may also have been closed by a program that is none.
    link.process().collect();
    kin::end_orphans(|left| _ = link.end.send_replace(Some(left))).await;
    // A supervisor that was killed could not say anything, but all that descended from it has fallen to peri. What one has
    // named as left may be hidden from peri.
    link.end.send_replace(Some(word.unwrap_or(KillProof::Gone)));
}

/// Whether an error on the control socket means that nobody is at the other end.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected)
}
