//! The leader of one job: the parent and reaper of a command and of everything that descends from it.
//!
//! Owns: starting the command, its exit status, killing the job, and the word that nothing is left of it. Must not: know of
//! other jobs. Invariant: while the leader lives, the job is exactly what descends from it, and "Gone" is said only after
//! the system has said that the leader has no child, which for a subreaper means no descendant either.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};

use super::command::become_program;
use super::sweep::{self, KILL_LIMIT, PASS_INTERVAL, SLOW_INTERVAL};
use super::system::{Forked, fork};
use super::{ALL_CHILDREN, UNCONFIRMED, child_signals, wait_for_event};
use crate::descriptors;
use crate::wire::{Decoder, Ending, JobReport, JobRequest, Order, encode};

/// Between SIGTERM and SIGKILL for a job that nobody waits for: it was dropped, or peri or the supervisor is gone.
pub(super) const ABANDONED_GRACE: Duration = Duration::from_millis(500);

/// More is as good as never, and would not fit into a time.
const LONGEST_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// What the supervisor hands to a new leader.
pub(super) struct Post {
    /// To peri. Its end means that the job was dropped.
    pub job: UnixStream,
    /// Its end means that the supervisor has died or wants all jobs ended.
    pub lifeline: File,
}

/// The life of a leader, from the order to the end of the job. The forked command comes back from here too if it cannot
/// become its program.
pub(super) fn lead(post: Post) -> ExitCode {
    let mut decoder = Decoder::default();
    let mut descriptors = Vec::new();
    match receive_order(&post.job, &mut decoder, &mut descriptors) {
        Ok(order) => start(post, decoder, order, descriptors),
        // Peri has changed its mind; there is nothing to end.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => ExitCode::SUCCESS,
        Err(error) => refuse(&post.job, format!("the order is not understood: {error}")),
    }
}

fn receive_order(mut job: &UnixStream, decoder: &mut Decoder, received: &mut Vec<OwnedFd>) -> io::Result<Order> {
    let mut buffer = [0; 16 << 10];
    loop {
        match decoder.next().map_err(io::Error::other)? {
            Some(JobRequest::Start(order)) => return Ok(order),
            Some(JobRequest::Kill { .. }) => return Err(io::Error::other("a kill before the start")),
            None => {}
        }
        // The descriptors come with the first bytes; the rest, of any length, is plain.
        let length = if received.is_empty() {
            descriptors::receive(job, &mut buffer, received)?
        } else {
            job.read(&mut buffer)?
        };
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        decoder.push(&buffer[..length]);
    }
}

fn start(post: Post, decoder: Decoder, order: Order, descriptors: Vec<OwnedFd>) -> ExitCode {
    let prepared = set_child_subreaper(Some(getpid()))
        .map_err(io::Error::from)
        .and_then(|()| Ok((child_signals()?, pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?, fork_command()?)));
    let (children, (failure, report), forked) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return refuse(&post.job, format!("no process can be made for it: {error}")),
    };
    match forked {
        Forking::Command { leader } => {
            let reason = become_program(&order, descriptors, leader);
            let _ = File::from(report).write_all(reason.as_bytes());
            ExitCode::from(127)
        }
        Forking::Leader { command } => {
            // Nothing of the command's stays here: a pipe has to end with its last holder in the job.
            drop((report, descriptors, order));
            let _ = post.job.set_nonblocking(true);
            let leader = Leader {
                job: post.job,
                listening: true,
                decoder,
                lifeline: Some(post.lifeline),
                failure: Some(File::from(failure)),
                children,
                command: Some(command),
                phase: Phase::Serving,
                round: 0,
            };
            leader.run()
        }
    }
}

/// The two sides of the fork, each with the id of the other.
enum Forking {
    Leader { command: Pid },
    Command { leader: Pid },
}

fn fork_command() -> io::Result<Forking> {
    let leader = getpid();
    Ok(match fork()? {
        Forked::Parent(command) => Forking::Leader { command },
        Forked::Child => Forking::Command { leader },
    })
}

fn refuse(job: &UnixStream, reason: String) -> ExitCode {
    tell(job, &JobReport::NotStarted(reason));
    tell(job, &JobReport::Gone);
    ExitCode::SUCCESS
}

/// Tells peri. That nobody listens any more is no reason to stop.
pub(super) fn tell(mut job: &UnixStream, report: &JobReport) {
    if let Ok(frame) = encode(report) {
        let _ = job.write_all(&frame);
    }
}

struct Leader {
    job: UnixStream,
    /// Until peri's end of `job` is closed.
    listening: bool,
    decoder: Decoder,
    lifeline: Option<File>,
    /// Ends when the command has become its program; before that it may bring the reason why it could not.
    failure: Option<File>,
    children: SignalFd,
    /// Until it is reaped.
    command: Option<Pid>,
    phase: Phase,
    /// Of the newest kill.
    round: u64,
}

#[derive(Clone, Copy)]
enum Phase {
    /// Nobody wants the job ended.
    Serving,
    Terminating {
        until: Instant,
    },
    Killing {
        next_pass: Instant,
        give_up: GiveUp,
    },
}

#[derive(Clone, Copy)]
enum GiveUp {
    At(Instant),
    /// It has been said what is left; the passes go on, slowly.
    Reported,
}

#[derive(PartialEq, Eq)]
enum Remains {
    Some,
    None,
}

impl Leader {
    fn run(mut self) -> ExitCode {
        loop {
            self.wait_until_due();
            self.note_start();
            if self.reap() == Remains::None {
                tell(&self.job, &JobReport::Gone);
                return ExitCode::SUCCESS;
            }
            self.hear_peri();
            self.check_lifeline();
            if let Some(code) = self.advance() {
                return code;
            }
        }
    }

    fn wait_until_due(&self) {
        let job = self.listening.then(|| self.job.as_fd());
        let lifeline = self.lifeline.as_ref().map(AsFd::as_fd);
        let failure = self.failure.as_ref().map(AsFd::as_fd);
        let due = match self.phase {
            Phase::Serving => None,
            Phase::Terminating { until } => Some(until),
            Phase::Killing { next_pass, .. } => Some(next_pass),
        };
        wait_for_event(&self.children, [job, lifeline, failure], due);
    }

    /// Says that the command has become its program, or why not.
    fn note_start(&mut self) {
        let (Some(failure), Some(command)) = (&mut self.failure, self.command) else { return };
        let mut reason = Vec::new();
        let report = match failure.read_to_end(&mut reason) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && reason.is_empty() => return,
            _ if reason.is_empty() => JobReport::Started { pid: command.as_raw_pid().unsigned_abs() },
            _ => JobReport::NotStarted(String::from_utf8_lossy(&reason).into_owned()),
        };
        tell(&self.job, &report);
        self.failure = None;
    }

    fn reap(&mut self) -> Remains {
        loop {
            match wait(ALL_CHILDREN | WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.command => {
                    // Its end of the pipe is closed now, so what there is to say about its start is said first.
                    self.note_start();
                    self.command = None;
                    tell(&self.job, &JobReport::Exited(ending(status)));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Remains::Some,
                Err(_) => return Remains::None,
            }
        }
    }

    fn hear_peri(&mut self) {
        let mut buffer = [0; 1024];
        while self.listening {
            match self.job.read(&mut buffer) {
                Ok(length @ 1..) => self.decoder.push(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(0) | Err(_) => self.stop_listening(),
            }
        }
        loop {
            match self.decoder.next() {
                Ok(Some(JobRequest::Kill { round, grace_ms })) => {
                    self.round = self.round.max(round);
                    self.begin_kill(Duration::from_millis(grace_ms));
                }
                Ok(None) => return,
                Ok(Some(JobRequest::Start(_))) | Err(_) => return self.stop_listening(),
            }
        }
    }

    fn stop_listening(&mut self) {
        if self.listening {
            self.listening = false;
            self.begin_kill(ABANDONED_GRACE);
        }
    }

    fn check_lifeline(&mut self) {
        let Some(lifeline) = &mut self.lifeline else { return };
        match lifeline.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => {
                self.lifeline = None;
                self.begin_kill(ABANDONED_GRACE);
            }
        }
    }

    /// A kill during another one can only make it end sooner, and gets an answer of its own.
    fn begin_kill(&mut self, grace: Duration) {
        let now = Instant::now();
        let asked = now + grace.min(LONGEST_GRACE);
        self.phase = match self.phase {
            Phase::Serving => {
                if !grace.is_zero() {
                    // What is not asked now is killed later.
                    let _ = sweep::terminate();
                }
                Phase::Terminating { until: asked }
            }
            Phase::Terminating { until } => Phase::Terminating { until: until.min(asked) },
            Phase::Killing { next_pass, .. } => Phase::Killing { next_pass, give_up: GiveUp::At(now + KILL_LIMIT) },
        };
    }

    /// Does what is due. Some where the leader has to give up.
    fn advance(&mut self) -> Option<ExitCode> {
        let now = Instant::now();
        if let Phase::Terminating { until } = self.phase
            && until <= now
        {
            self.phase = Phase::Killing { next_pass: now, give_up: GiveUp::At(now + KILL_LIMIT) };
        }
        let Phase::Killing { next_pass, give_up } = self.phase else { return None };
        if next_pass > now {
            return None;
        }
        let pass = sweep::kill_pass(&HashSet::new());
        let now = Instant::now();
        match give_up {
            GiveUp::At(limit) if limit > now => {
                self.phase = Phase::Killing { next_pass: now + PASS_INTERVAL, give_up };
                None
            }
            GiveUp::Reported | GiveUp::At(_) => {
                self.phase = Phase::Killing { next_pass: now + SLOW_INTERVAL, give_up: GiveUp::Reported };
                if matches!(give_up, GiveUp::At(_)) {
                    tell(&self.job, &JobReport::Left { round: self.round, what: sweep::describe(&pass) });
                }
                // Without peri there is nobody to tell if it succeeds after all. The supervisor takes it from here.
                (!self.listening || self.lifeline.is_none()).then_some(ExitCode::from(UNCONFIRMED))
            }
        }
    }
}

fn ending(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Code(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Unknown,
    }
}
