//! A job as peri sees it.
//!
//! Owns: peri's end of a job socket and the standard streams until they are taken. Must not: signal a process itself; the
//! leader does. Invariant: dropping it closes the socket, and that ends the job.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};
use peri_acp_types::ports::{ChildProcess, KillProof, ProcessExit};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::descriptors;
use crate::reports::{Fold, Reports};
use crate::streams::OurEnds;
use crate::supervise::KILL_LIMIT;
use crate::wire::{Ending, JobReport, JobRequest, encode};

/// What a leader may take to answer beyond the time it is given, on a busy machine.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// What leader or supervisor have said about a job.
#[derive(Debug, Default)]
struct JobState {
    /// The reason where the command did not start.
    started: Option<Result<u32, String>>,
    exit: Option<ProcessExit>,
    gone: bool,
    /// The newest kill that was not confirmed, and what it left.
    left: Option<(u64, String)>,
    closed: bool,
}

impl Fold for JobState {
    type Report = JobReport;

    fn apply(&mut self, report: JobReport) {
        match report {
            JobReport::Started { pid } => self.started = Some(Ok(pid)),
            JobReport::NotStarted(reason) => self.started = Some(Err(reason)),
            // The supervisor's "unknown" may follow the leader's own word.
            JobReport::Exited(ending) => _ = self.exit.get_or_insert(exit(ending)),
            JobReport::Gone => self.gone = true,
            JobReport::Left { round, what } => self.left = Some((round, what)),
        }
    }

    fn close(&mut self) {
        self.closed = true;
    }
}

fn exit(ending: Ending) -> ProcessExit {
    match ending {
        Ending::Code(code) => ProcessExit::Code(code),
        Ending::Signal(signal) => ProcessExit::Signal(signal),
        Ending::Unknown => ProcessExit::Unknown,
    }
}

/// Why there is no job.
pub(crate) enum StartError {
    /// The command cannot be started, for this reason.
    Refused(String),
    /// There was no word from a leader.
    NoLeader,
}

/// A job whose command has not started yet.
pub(crate) struct NewJob {
    reports: Reports<JobState>,
}

impl NewJob {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { reports: Reports::new(stream) }
    }

    /// Sends the order and waits for the command to start. Dropping it ends the job.
    pub(crate) async fn start(
        self,
        order: &[u8],
        streams: OurEnds,
        theirs: Vec<OwnedFd>,
    ) -> Result<SupervisedChild, StartError> {
        let stream = self.reports.stream();
        let borrowed: Vec<BorrowedFd<'_>> = theirs.iter().map(AsFd::as_fd).collect();
        let sent = match stream.async_io(Interest::WRITABLE, || descriptors::send(stream, order, &borrowed)).await {
            Ok(length) => self.reports.send(&order[length..]).await,
            Err(error) => Err(error),
        };
        // Ours alone from here on, so that a pipe ends with its last holder in the job.
        drop(theirs);
        // What went wrong in sending, the leader may have said before it left.
        let started = self.reports.answer(|state| match (&state.started, state.closed || state.gone) {
            (Some(started), _) => Some(started.clone().map_err(StartError::Refused)),
            (None, over) => (over || sent.is_err()).then_some(Err(StartError::NoLeader)),
        });
        let pid = started.await?;
        Ok(SupervisedChild { pid, reports: self.reports, streams, rounds: AtomicU64::new(0) })
    }
}

/// A started job.
pub(crate) struct SupervisedChild {
    pid: u32,
    reports: Reports<JobState>,
    streams: OurEnds,
    /// Numbers the kills.
    rounds: AtomicU64,
}

#[async_trait::async_trait]
impl ChildProcess for SupervisedChild {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn take_stdin(&mut self) -> Option<Pin<Box<dyn AsyncWrite + Send>>> {
        Some(Box::pin(self.streams.stdin.take()?.compat_write()))
    }

    fn take_stdout(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        Some(Box::pin(self.streams.stdout.take()?.compat()))
    }

    fn take_stderr(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        Some(Box::pin(self.streams.stderr.take()?.compat()))
    }

    async fn wait(&self) -> ProcessExit {
        self.reports.answer(|state| state.exit.or(state.closed.then_some(ProcessExit::Unknown))).await
    }

    async fn kill(&self, grace: Duration) -> KillProof {
        let round = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        if let Ok(request) = encode(&JobRequest::Kill { round, grace_ms }) {
            // A job that has ended has nobody who listens, but its last word is still there to be read.
            let _ = self.reports.send(&request).await;
        }
        let answer = self.reports.answer(|state| match &state.left {
            _ if state.gone => Some(KillProof::Gone),
            Some((answered, what)) if *answered >= round => {
                Some(KillProof::Unconfirmed(format!("still there: {what}")))
            }
            _ => state
                .closed
                .then(|| KillProof::Unconfirmed("the processes that watch over it were killed themselves".to_owned())),
        });
        let limit = grace.saturating_add(KILL_LIMIT).saturating_add(ANSWER_MARGIN);
        timeout(limit, answer).await.unwrap_or_else(|_| {
            KillProof::Unconfirmed(format!("no answer about process {} within {} s", self.pid, limit.as_secs()))
        })
    }
}
