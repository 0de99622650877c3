//! The supervisor: a process of its own that outlives peri just long enough to end everything peri has started.
//!
//! Owns: the control socket's other end, one leader per job (a fork of itself), and what is left of a job whose leader was
//! killed. Must not: look into a job, make a thread, or start anything heavy. Invariant: each of its children is a leader,
//! or a stray that is being killed.

mod command;
mod leader;
mod proc_table;
mod sweep;
mod system;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{SigSet, Signal as SignalName};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, setsid, wait};

use crate::descriptors;
use crate::wire::{Ending, JobReport, LAUNCH, PROTOCOL, SupervisorReport, encode};
use leader::{ABANDONED_GRACE, Post, tell};
use proc_table::Process;
pub(crate) use sweep::KILL_LIMIT;
use sweep::{PASS_INTERVAL, SLOW_INTERVAL};
use system::{Forked, fork};

/// The exit code of a leader or supervisor that could not end everything.
const UNCONFIRMED: u8 = 3;

/// Also those that were cloned without a signal to their parent.
const ALL_CHILDREN: WaitOptions = WaitOptions::from_bits_retain(libc::__WALL.unsigned_abs());

/// After so long the leaders are not waited for any more, but killed, and their jobs with them.
const LEADERS_LIMIT: Duration = ABANDONED_GRACE.saturating_add(KILL_LIMIT).saturating_add(Duration::from_secs(1));

/// The life of the supervisor, and of every process that it forks.
///
/// To be called first thing in `main`, before a second thread or an open file exists, with the command line that
/// [`SupervisorCommand`](crate::SupervisorCommand) gave. Its standard input is the socket to peri. The result is the exit
/// code of the process; no more than returning it may follow.
#[must_use]
pub fn supervise_main() -> ExitCode {
    // `peri __supervise` typed into a terminal.
    if rustix::net::sockopt::socket_type(io::stdin()).is_err() {
        let _ = writeln!(io::stderr(), "this command is not for use: peri starts it to look after its child processes");
        return ExitCode::from(2);
    }
    let Ok(control) = detach() else { return ExitCode::FAILURE };
    match Supervisor::new(control) {
        Ok(supervisor) => match supervisor.run() {
            Next::Exit(code) => code,
            Next::Lead(post) => leader::lead(post),
        },
        Err(code) => code,
    }
}

/// Leaves everything behind that came from peri but the control socket, which becomes an ordinary descriptor.
fn detach() -> io::Result<UnixStream> {
    // Blocked, not ignored: an ignored signal would stay ignored in every command.
    SigSet::all().thread_set_mask()?;
    system::reset_dispositions();
    system::close_inherited()?;
    let control = rustix::io::fcntl_dupfd_cloexec(io::stdin(), libc::STDERR_FILENO + 1)?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(UnixStream::from(control))
}

/// How a process leaves the supervisor's loop: it was the supervisor, or it is a leader now.
enum Next {
    Exit(ExitCode),
    Lead(Post),
}

struct Supervisor {
    control: UnixStream,
    children: SignalFd,
    leaders: HashMap<Pid, Held>,
    strays: Option<Strays>,
    /// From the end of the control socket on: when to kill the leaders.
    closing: Option<Instant>,
}

/// What the supervisor holds for a leader.
struct Held {
    /// To speak to peri in its place.
    job: UnixStream,
    /// Closed to make it end its job.
    lifeline: Option<File>,
}

/// What is left of jobs whose leaders are dead.
struct Strays {
    jobs: Vec<UnixStream>,
    next_pass: Instant,
    give_up: Instant,
}

impl Strays {
    /// To be killed from now on.
    fn of(jobs: Vec<UnixStream>) -> Self {
        let now = Instant::now();
        Self { jobs, next_pass: now, give_up: now + KILL_LIMIT }
    }
}

impl Supervisor {
    fn new(control: UnixStream) -> Result<Self, ExitCode> {
        match settle(&control) {
            Ok(children) => {
                report(&control, &SupervisorReport::Ready { protocol: PROTOCOL });
                Ok(Self { control, children, leaders: HashMap::new(), strays: None, closing: None })
            }
            Err(error) => {
                report(&control, &SupervisorReport::Unable(error.to_string()));
                Err(ExitCode::FAILURE)
            }
        }
    }

    fn run(mut self) -> Next {
        loop {
            self.wait_until_due();
            if self.reap() == Children::None && self.closing.is_some() {
                report(&self.control, &SupervisorReport::Gone);
                return Next::Exit(ExitCode::SUCCESS);
            }
            if let Some(post) = self.hear_peri() {
                return Next::Lead(post);
            }
            self.press_leaders();
            if let Some(code) = self.sweep_strays() {
                return Next::Exit(code);
            }
        }
    }

    fn wait_until_due(&self) {
        let control = self.closing.is_none().then(|| self.control.as_fd());
        let pressing = self.closing.filter(|_| !self.leaders.is_empty());
        let sweeping = self.strays.as_ref().map(|strays| strays.next_pass);
        wait_for_event(&self.children, [control], pressing.into_iter().chain(sweeping).min());
    }

    fn reap(&mut self) -> Children {
        loop {
            match wait(ALL_CHILDREN | WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if status.stopped() => self.wake(pid),
                Ok(Some((pid, status))) => self.note_end(pid, status),
                Ok(None) => return Children::Some,
                Err(_) => return Children::None,
            }
        }
    }

    /// Nobody who means well stops a leader. Strays are stopped by ourselves.
    fn wake(&self, pid: Pid) {
        if self.leaders.contains_key(&pid) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// A leader that did not say itself that its job is gone leaves its job to us.
    fn note_end(&mut self, pid: Pid, status: WaitStatus) {
        let Some(held) = self.leaders.remove(&pid) else { return };
        if status.exit_status() == Some(0) {
            return;
        }
        let earlier = self.strays.take().map(|strays| strays.jobs);
        self.strays = Some(Strays::of(earlier.into_iter().flatten().chain([held.job]).collect()));
    }

    /// Some in the process that becomes a leader.
    fn hear_peri(&mut self) -> Option<Post> {
        while self.closing.is_none() {
            let mut request = [0];
            let mut received = Vec::new();
            match descriptors::receive(&self.control, &mut request, &mut received) {
                Ok(1) if request == [LAUNCH] => {
                    // Where the descriptor did not arrive, peri sees the end of the job socket.
                    if let Some(job) = received.pop()
                        && let Some(post) = self.launch(job.into())
                    {
                        return Some(post);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                _ => self.close(),
            }
        }
        None
    }

    /// Forks a leader. Some in the child.
    fn launch(&mut self, job: UnixStream) -> Option<Post> {
        let made = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(io::Error::from);
        match made.and_then(|pipe| Ok((pipe, fork()?))) {
            Ok(((_, held), Forked::Parent(leader))) => {
                self.leaders.insert(leader, Held { job, lifeline: Some(held.into()) });
                None
            }
            Ok(((lifeline, _), Forked::Child)) => {
                let _ = rustix::thread::set_name(c"peri-job");
                Some(Post { job, lifeline: lifeline.into() })
            }
            Err(error) => {
                tell(&job, &JobReport::NotStarted(format!("no process can be made for it: {error}")));
                tell(&job, &JobReport::Gone);
                None
            }
        }
    }

    /// Peri is gone or wants us to go.
    fn close(&mut self) {
        self.closing = Some(Instant::now() + LEADERS_LIMIT);
        for held in self.leaders.values_mut() {
            held.lifeline = None;
        }
        self.strays = self.strays.take().map(|strays| Strays::of(strays.jobs));
    }

    /// Sees to it that closing comes to an end.
    fn press_leaders(&mut self) {
        let Some(limit) = self.closing else { return };
        let now = Instant::now();
        if self.leaders.is_empty() {
            // A child that is left now is a stray, be it one that /proc does not show.
            self.strays.get_or_insert_with(|| Strays::of(Vec::new()));
        } else if limit <= now {
            for leader in self.leaders.keys() {
                let _ = kill_process(*leader, Signal::KILL);
            }
            self.closing = Some(now + SLOW_INTERVAL);
        }
    }

    /// Kills what belongs to no leader. Some where that fails for too long and nothing else is left to do.
    fn sweep_strays(&mut self) -> Option<ExitCode> {
        let strays = self.strays.as_mut().filter(|strays| strays.next_pass <= Instant::now())?;
        let leaders: HashSet<Pid> = self.leaders.keys().copied().collect();
        let pass = sweep::kill_pass(&leaders);
        // At the very end only the system's word counts, that there is no child.
        let last = self.closing.is_some() && leaders.is_empty();
        if !last && pass.as_ref().is_ok_and(sweep::Pass::is_clean) {
            for job in &strays.jobs {
                tell(job, &JobReport::Exited(Ending::Unknown));
                tell(job, &JobReport::Gone);
            }
            self.strays = None;
            return None;
        }
        let now = Instant::now();
        if strays.give_up > now {
            strays.next_pass = now + PASS_INTERVAL;
            return None;
        }
        strays.next_pass = now + SLOW_INTERVAL;
        let what = sweep::describe(&pass);
        for job in strays.jobs.drain(..) {
            tell(&job, &JobReport::Exited(Ending::Unknown));
            tell(&job, &JobReport::Left { round: u64::MAX, what: what.clone() });
        }
        last.then(|| {
            report(&self.control, &SupervisorReport::Left(what));
            ExitCode::from(UNCONFIRMED)
        })
    }
}

#[derive(PartialEq, Eq)]
enum Children {
    Some,
    None,
}

/// Makes this process fit to be the supervisor.
fn settle(control: &UnixStream) -> io::Result<SignalFd> {
    let own = Process::read(getpid()).ok_or_else(|| io::Error::other("/proc is not there to be read"))?;
    if own.threads != 1 {
        return Err(io::Error::other(format!("it has {} threads, but may have only one", own.threads)));
    }
    // Fails for the leader of a group, which peri does not make it.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let _ = rustix::thread::set_name(c"peri-supervise");
    // So as not to hold a mounted file system; every command names its own directory.
    std::env::set_current_dir("/")?;
    control.set_nonblocking(true)?;
    child_signals()
}

/// Readable when a child has ended. SIGCHLD is blocked, as every signal is.
fn child_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(SignalName::SIGCHLD);
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// Waits until a child has ended, one of `others` can be read, or `due` has come. May come back for no reason.
fn wait_for_event<const N: usize>(children: &SignalFd, others: [Option<BorrowedFd<'_>>; N], due: Option<Instant>) {
    let watched = others.into_iter().flatten().chain([children.as_fd()]);
    let mut watched: Vec<PollFd<'_>> = watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = due.map(|due| due.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let _ = poll(&mut watched, timeout.as_ref());
    while matches!(children.read_signal(), Ok(Some(_))) {}
}

/// Tells peri. That nobody listens any more is no reason to stop.
fn report(mut control: &UnixStream, report: &SupervisorReport) {
    if let Ok(frame) = encode(report) {
        let _ = control.write_all(&frame);
    }
}
