//! SIGKILL at random moments of a scripted session: what was acknowledged is there, nothing is half there, the session
//! goes on, no process is left.
//!
//! Owns: the course of the campaign. A session is some runs of the binary, each killed at a moment drawn over the time
//! that a run takes, and a last one that is left alone; everything is checked after each.

mod chance;
mod history;
mod scripted;
mod survivors;

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Finished, Sandbox};
use chance::{Campaign, Dice};
use history::{Printed, Witness};
use scripted::{Endpoint, Progress, STEPS};

/// Kill points of a session; then comes the next, in a home of its own.
const SESSION_ROUNDS: usize = 10;
const ID: &str = "7e570000-0000-4000-8000-000000000009";

#[test]
fn whenever_it_is_killed_what_was_acknowledged_is_there_and_whole() {
    let campaign = Campaign::from_environment();
    println!("{}", campaign.command());
    let mut dice = Dice::seeded(campaign.seed);
    let pace = Pace::measure();
    println!("{pace:?}");
    let mut tally = Tally::default();
    let rounds: Vec<usize> = (0..campaign.rounds).collect();
    for rounds in rounds.chunks(SESSION_ROUNDS) {
        let stage = Stage::new();
        let mut witness = Witness::default();
        for round in rounds {
            let limit = if witness.is_stored() { pace.later_run } else { pace.first_request };
            let delay = dice.time_below(limit);
            // A store that is still being made must be met by the next run as it was left.
            let look = if witness.is_stored() && dice.coin() { Look::InPlace } else { Look::AtACopy };
            let context = format!("round {round}, killed after {delay:?} ({})", campaign.command());
            tally.add(stage.run(&mut witness, Death::After(delay), look, &context));
        }
        let context = format!("left alone after round {:?} ({})", rounds.last(), campaign.command());
        stage.run(&mut witness, Death::OfItself, Look::InPlace, &context);
        tally.add_session(&witness);
    }
    println!("{tally}");
}

/// How long a run takes here and now.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// From the start of a session's first run to its first request.
    first_request: Duration,
    /// From start to end of a run that goes on.
    later_run: Duration,
}

impl Pace {
    fn measure() -> Pace {
        let stage = Stage::new();
        let mut witness = Witness::default();
        let started = SystemTime::now();
        stage.run(&mut witness, Death::OfItself, Look::InPlace, "the first run that is measured");
        let asked = stage.endpoint.requests().first().expect("it asked").arrived_at;
        let started_again = Instant::now();
        stage.invocation(&witness, 1).start().finish().code(0);
        Pace {
            first_request: asked.duration_since(started).unwrap_or_default(),
            later_run: started_again.elapsed(),
        }
    }
}

#[derive(Clone, Copy)]
enum Death {
    OfItself,
    /// By SIGKILL, so long after its start, unless it has ended by then.
    After(Duration),
}

/// Which files `peri sessions show` reads.
#[derive(Clone, Copy)]
enum Look {
    /// Those of the session: they are put in order by that.
    InPlace,
    /// A copy, so that the next run finds what the killed one left.
    AtACopy,
}

/// Where a run was when it was killed, seen from the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KillPoint {
    BeforeFirstRequest,
    /// An answer was awaited or under way.
    Streaming,
    /// An answer with calls had been sent: they ran, or were being committed.
    Acting,
    /// The last answer had been sent.
    Ending,
    /// It had ended before.
    Over,
}

impl KillPoint {
    fn of(status: std::process::ExitStatus, progress: Progress) -> KillPoint {
        match progress {
            _ if status.code().is_some() => KillPoint::Over,
            Progress { requests: 0, .. } => KillPoint::BeforeFirstRequest,
            Progress { requests, answers_sent } if answers_sent < requests => KillPoint::Streaming,
            Progress { requests, .. } if requests < STEPS => KillPoint::Acting,
            Progress { .. } => KillPoint::Ending,
        }
    }
}

/// A home, a workspace and an endpoint for one session.
struct Stage {
    sandbox: Sandbox,
    endpoint: Endpoint,
}

impl Stage {
    fn new() -> Stage {
        let endpoint = Endpoint::start();
        Stage { sandbox: Sandbox::with_model(&endpoint.base_url()), endpoint }
    }

    fn invocation(&self, witness: &Witness, run: usize) -> crate::sandbox::Invocation<'_> {
        let prompt = scripted::prompt(run);
        let session = if witness.is_stored() { "--resume" } else { "--session-id" };
        let args = ["-p", &prompt, "--output-format", "stream-json", "--permission-mode", "bypass", session, ID];
        self.sandbox.peri(args)
    }

    /// One run and everything that must hold after it.
    fn run(&self, witness: &mut Witness, death: Death, look: Look, context: &str) -> KillPoint {
        let run = witness.printed.len();
        let mark = format!("{}-{run}", self.sandbox.work().display());
        let running = self.invocation(witness, run).env(survivors::MARK, Some(&mark)).start();
        if let Death::After(delay) = death {
            // Not to wait for anything: the moment is what is tried.
            std::thread::sleep(delay);
            running.signal(Signal::KILL);
        }
        let progress = self.endpoint.progress(run);
        let finished = running.finish();
        let ended = Instant::now();
        let judged = survivors::check_none(&mark, ended).and_then(|()| self.judge(witness, &finished, look));
        if let Err(fault) = judged {
            finished.check(false, &format!("{context}: {fault}"));
        }
        KillPoint::of(finished.status, progress)
    }

    fn judge(&self, witness: &mut Witness, finished: &Finished<'_>, look: Look) -> Result<(), String> {
        let run = witness.printed.len();
        let printed = Printed::read(run, &finished.stdout)?;
        match (finished.status.code(), finished.status.signal()) {
            (Some(0), _) if printed.finished => {}
            (None, Some(signal)) if signal == Signal::KILL.as_raw() => {}
            _ => return Err(format!("it ended by itself, with {}", finished.status)),
        }
        let usual = |line: &str| line.starts_with("peri: the last turn of this session was interrupted");
        if let Some(line) = finished.stderr.split_inclusive('\n').find(|line| line.ends_with('\n') && !usual(line)) {
            return Err(format!("it said {line:?}"));
        }
        witness.printed.push(printed);
        let shown = self.shown(look)?;
        witness.check(shown.as_ref(), &self.endpoint.requests())?;
        let committed = witness.history().and_then(|history| history.committed_steps(run)).unwrap_or_default();
        scripted::check_files(&self.sandbox.work(), run, committed)
    }

    /// The session as it is stored; None where it is not.
    fn shown(&self, look: Look) -> Result<Option<Value>, String> {
        let copy = tempfile::tempdir().expect("a folder");
        let data = self.sandbox.data_dir();
        let mut args = vec!["sessions", "show", ID, "--output-format", "json"];
        let copied = copy.path().join("peri.db").display().to_string();
        if let Look::AtACopy = look {
            copy_files(&data, copy.path());
            args.extend(["--db-path", &copied]);
        }
        let run = self.sandbox.peri(args).run();
        let damaged = [copy.path(), &data].map(|folder| names_in(folder)).concat();
        if let Some(name) = damaged.iter().find(|name| name.contains("damaged")) {
            return Err(format!("the store was found damaged: {name}\n{}", run.stderr));
        }
        match run.status.code() {
            Some(0) if run.stderr.is_empty() => Ok(Some(run.json())),
            Some(2) if run.stderr.contains(&format!("there is no session {ID}")) => Ok(None),
            _ => Err(format!("the session is not shown: {}\n{}", run.status, run.stderr)),
        }
    }
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().display().to_string()).collect()
}

fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    for name in names_in(from) {
        if from.join(&name).is_file() {
            std::fs::copy(from.join(&name), to.join(&name)).expect("a copy");
        }
    }
}

/// What the kills hit, and what became of the turns.
#[derive(Default)]
struct Tally {
    kills: Vec<KillPoint>,
    runs: usize,
    completed: usize,
    interrupted: usize,
}

impl Tally {
    fn add(&mut self, kill: KillPoint) {
        self.kills.push(kill);
    }

    fn add_session(&mut self, witness: &Witness) {
        let (completed, interrupted) = witness.history().map(|history| history.ended()).unwrap_or_default();
        self.runs += witness.printed.len();
        self.completed += completed;
        self.interrupted += interrupted;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |point| self.kills.iter().filter(|kill| **kill == point).count();
        write!(
            f,
            "{} kills: {} before the first request, {} during a stream, {} during tools and their commit, {} at the end of \
             the turn, {} after the end; of {} turns {} are complete, {} marked as interrupted, {} left no trace",
            self.kills.len(),
            count(KillPoint::BeforeFirstRequest),
            count(KillPoint::Streaming),
            count(KillPoint::Acting),
            count(KillPoint::Ending),
            count(KillPoint::Over),
            self.runs,
            self.completed,
            self.interrupted,
            self.runs - self.completed - self.interrupted,
        )
    }
}
