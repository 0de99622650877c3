//! The process host: one lazily started supervisor, and its replacement if it is killed.
//!
//! Owns: which supervisor is the current one. Must not: hold a lock over an await. Invariant: after a shutdown nothing is
//! started any more.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use peri_acp_types::ports::{
    ChildProcess, KillProof, ProcessError, ProcessHost, ProcessOutput, ProcessSpec, ProcessStdin,
};
use tokio::net::UnixStream;

use crate::SupervisorCommand;
use crate::child::{NewJob, StartError, SupervisedChild};
use crate::link::{Link, is_gone};
use crate::streams;
use crate::wire::{Input, JobRequest, Order, Output, Streams, encode};

/// Starts processes through a supervisor, so that none outlives peri.
///
/// Needs a tokio runtime with I/O and time, and stays with the one in which it was first used. Dropping it ends
/// everything that it has started, without waiting; [`shutdown`](Self::shutdown) waits and says what is known.
pub struct SupervisedHost {
    command: SupervisorCommand,
    /// Never held over an await.
    state: Mutex<State>,
}

enum State {
    Idle,
    Running(Arc<Link>),
    Ended(KillProof),
}

impl SupervisedHost {
    /// Starts nothing yet: the supervisor comes with the first spawn.
    #[must_use]
    pub fn new(command: SupervisorCommand) -> Self {
        Self { command, state: Mutex::new(State::Idle) }
    }

    /// Ends all jobs (SIGTERM, half a second later SIGKILL), then the supervisor, and refuses every later spawn.
    ///
    /// After `deadline` the answer is [`KillProof::Unconfirmed`], while the supervisor goes on; it does so too where the
    /// future is dropped. A later call gives the same answer as the first.
    pub async fn shutdown(&self, deadline: Duration) -> KillProof {
        let unfinished = State::Ended(KillProof::Unconfirmed("a shutdown was begun and not waited for".to_owned()));
        let current = std::mem::replace(&mut *self.state(), unfinished);
        let proof = match current {
            State::Idle => KillProof::Gone,
            State::Running(link) => link.finish(deadline).await,
            State::Ended(proof) => proof,
        };
        *self.state() = State::Ended(proof.clone());
        proof
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current supervisor, started if there is none.
    fn link(&self) -> Result<Arc<Link>, ProcessError> {
        let mut state = self.state();
        match &*state {
            State::Running(link) => Ok(Arc::clone(link)),
            State::Ended(_) => Err(ProcessError::NoSupervisor("it was shut down".to_owned())),
            State::Idle => {
                let start = Link::start(&self.command).map_err(|error| {
                    ProcessError::NoSupervisor(format!("{} does not start: {error}", self.command.program.display()))
                })?;
                let link = Arc::new(start);
                *state = State::Running(Arc::clone(&link));
                Ok(link)
            }
        }
    }

    /// Puts a supervisor away that is gone or of no use.
    fn discard(&self, link: &Arc<Link>) {
        let mut state = self.state();
        let is_current = matches!(&*state, State::Running(current) if Arc::ptr_eq(current, link));
        if is_current {
            *state = State::Idle;
        }
        drop(state);
        // One that is not current is collected by whoever replaced it, or is busy with its shutdown.
        if is_current {
            link.collect();
        }
    }

    /// Has a leader made for the other end of `job`. A supervisor that was killed is replaced once.
    async fn launch(&self, job: OwnedFd) -> Result<(), ProcessError> {
        let mut replaced = false;
        loop {
            let link = self.link()?;
            let failure = match link.ready().await {
                Ok(()) => match link.launch(job.try_clone().map_err(no_descriptor)?).await {
                    Ok(()) => return Ok(()),
                    Err(error) if is_gone(&error) => error.to_string(),
                    Err(error) => return Err(ProcessError::NoSupervisor(error.to_string())),
                },
                Err(reason) => reason,
            };
            self.discard(&link);
            if replaced {
                return Err(ProcessError::NoSupervisor(failure));
            }
            replaced = true;
        }
    }
}

#[async_trait::async_trait]
impl ProcessHost for SupervisedHost {
    async fn spawn(&self, spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        let refused = |reason| ProcessError::NotStarted { program: spec.program.clone(), reason };
        if !spec.cwd.starts_with('/') {
            return Err(refused(format!("the working directory {:?} is not absolute", spec.cwd)));
        }
        let order = encode(&JobRequest::Start(order(&spec))).map_err(|error| refused(error.to_string()))?;
        match self.start(&spec, &order).await {
            Ok(child) => Ok(Box::new(child)),
            Err(Failure::Refused(reason)) => Err(refused(reason)),
            Err(Failure::Host(error)) => Err(error),
        }
    }
}

enum Failure {
    Refused(String),
    Host(ProcessError),
}

impl SupervisedHost {
    async fn start(&self, spec: &ProcessSpec, order: &[u8]) -> Result<SupervisedChild, Failure> {
        let no_room = |error: io::Error| Failure::Refused(format!("no pipe can be made for it: {error}"));
        let (streams, theirs) = streams::open(spec).map_err(no_room)?;
        let (ours, leaders) = BlockingStream::pair().map_err(no_room)?;
        ours.set_nonblocking(true).map_err(no_room)?;
        let job = NewJob::new(UnixStream::from_std(ours).map_err(no_room)?);
        self.launch(leaders.into()).await.map_err(Failure::Host)?;
        job.start(order, streams, theirs).await.map_err(|error| match error {
            StartError::Refused(reason) => Failure::Refused(reason),
            StartError::NoLeader => {
                Failure::Host(ProcessError::NoSupervisor("it ended while the command was being started".to_owned()))
            }
        })
    }
}

fn no_descriptor(error: io::Error) -> ProcessError {
    ProcessError::NoSupervisor(format!("no descriptor is free: {error}"))
}

fn order(spec: &ProcessSpec) -> Order {
    Order {
        program: spec.program.clone(),
        args: spec.args.clone(),
        cwd: spec.cwd.clone(),
        env: spec.env.clone(),
        streams: Streams {
            stdin: match spec.stdin {
                ProcessStdin::Null => Input::Null,
                ProcessStdin::Piped => Input::Pipe,
            },
            output: match spec.output {
                ProcessOutput::Merged => Output::Merged,
                ProcessOutput::Separate => Output::Separate,
            },
        },
    }
}
