//! SIGKILL at random moments of a scripted session: what was acknowledged is there, nothing is half there, the session
//! goes on, no process is left.
//!
//! Owns: the course of the campaign. A session is some runs of the binary, each killed at a moment drawn over the time
//! that a run takes, and a last one that is left alone; everything is checked after each.

mod chance;
mod history;
mod printed;
mod scripted;
mod survivors;
mod tally;
mod tests;
mod witness;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Finished, Invocation, Running, Sandbox};
use chance::{Campaign, Dice};
use printed::{Printed, whole_lines};
use scripted::{Endpoint, Progress};
use tally::{KillPoint, Tally};
use witness::Witness;

/// Kill points of a session; then comes the next, in a home of its own.
const SESSION_ROUNDS: usize = 10;
/// So many of them lie about the first request: while store and session are made or opened, which takes little time.
const EARLY_ROUNDS: usize = 3;
const ID: &str = "7e570000-0000-4000-8000-000000000009";

#[test]
fn whenever_it_is_killed_what_was_acknowledged_is_there_and_whole() {
    let campaign = Campaign::from_environment();
    println!("{campaign}");
    let mut dice = Dice::seeded(campaign.seed);
    let mut pace = Pace::measure();
    let mut tally = Tally::default();
    let rounds: Vec<usize> = (0..campaign.rounds).collect();
    for rounds in rounds.chunks(SESSION_ROUNDS) {
        let stage = Stage::new();
        let mut witness = Witness::default();
        for (place, round) in rounds.iter().enumerate() {
            let death = Death::draw(&mut dice, &pace, place);
            // A store that is still being made must be met by the next run as it was left.
            let look = if witness.history().is_some() && dice.coin() { Look::InPlace } else { Look::AtACopy };
            let context = format!("round {round}, SIGKILL {death:?}, {pace:?}; {campaign}");
            tally.kills.push(stage.run(&mut witness, death, look, &context).kill_point);
        }
        let context = format!("the run that is left alone after the rounds {rounds:?}; {campaign}");
        pace.later_run = stage.run(&mut witness, Death::OfItself, Look::InPlace, &context).lifetime;
        tally.add_turns(&witness);
    }
    println!("{tally}");
    assert!(
        campaign.rounds < 2 * SESSION_ROUNDS || tally.interrupted > 0,
        "nothing was interrupted: {tally}; {campaign}"
    );
}

/// How long a run takes here and now.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// From the start of a session's first run to its first request.
    first_request: Duration,
    /// From start to end of a run that goes on in a session.
    later_run: Duration,
}

impl Pace {
    fn measure() -> Pace {
        let stage = Stage::new();
        let mut witness = Witness::default();
        let started = SystemTime::now();
        stage.run(&mut witness, Death::OfItself, Look::InPlace, "the first run that is measured");
        let asked = stage.endpoint.requests().first().expect("it asked").arrived_at;
        let later = stage.run(&mut witness, Death::OfItself, Look::InPlace, "the second run that is measured");
        Pace { first_request: asked.duration_since(started).unwrap_or_default(), later_run: later.lifetime }
    }

    fn early(&self) -> Duration {
        self.first_request.mul_f64(1.5)
    }

    /// A little longer than a run, so that its last moments are hit as well, and what comes after them.
    fn whole(&self) -> Duration {
        self.later_run.mul_f64(1.1)
    }
}

#[derive(Clone, Copy, Debug)]
enum Death {
    OfItself,
    /// By SIGKILL, so long after its start, unless it has ended by then.
    After(Duration),
    /// By SIGKILL, as soon as it has printed so many lines: nothing may still have to happen for what they acknowledge.
    OnLine(usize),
}

impl Death {
    /// For the round at that place of its session.
    fn draw(dice: &mut Dice, pace: &Pace, place: usize) -> Death {
        match dice.below(3) {
            _ if place < EARLY_ROUNDS => Death::After(dice.time_below(pace.early())),
            0 => Death::OnLine(1 + dice.below(scripted::LINES)),
            _ => Death::After(dice.time_below(pace.whole())),
        }
    }
}

/// Which files `peri sessions show` reads.
#[derive(Clone, Copy)]
enum Look {
    /// Those of the session.
    InPlace,
    /// A copy, so that the next run is the first to open what the killed one left.
    AtACopy,
}

/// A run that has ended, and everything held.
struct Lived {
    lifetime: Duration,
    kill_point: KillPoint,
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

    /// One run and the check of everything that must hold after it.
    fn run(&self, witness: &mut Witness, death: Death, look: Look, context: &str) -> Lived {
        let run = witness.printed.len();
        let prompt = scripted::prompt(run);
        let mark = format!("{}-{run}", self.sandbox.work().display());
        let started = Instant::now();
        let running = self.invocation(witness, &prompt).env(survivors::MARK, Some(&mark)).start();
        let (finished, progress, gone) = self.end(running, death, run, &mark);
        let lifetime = started.elapsed();
        if let Err(fault) = gone.and_then(|()| self.judge(witness, &finished, look)) {
            finished.check(false, &format!("{fault}\n({context})"));
        }
        Lived { lifetime, kill_point: KillPoint::of(finished.status, progress) }
    }

    /// Lets it die, and looks for what is left of it.
    fn end<'a>(
        &self,
        running: Running<'a>,
        death: Death,
        run: usize,
        mark: &str,
    ) -> (Finished<'a>, Progress, Result<(), String>) {
        match death {
            Death::OfItself => {
                let finished = running.finish();
                return (finished, self.endpoint.progress(run), survivors::check_none(mark, Instant::now()));
            }
            // Not to wait for anything: the moment is what is tried.
            Death::After(delay) => std::thread::sleep(delay),
            Death::OnLine(count) => running.block_until_lines(count),
        }
        running.signal(Signal::KILL);
        let killed = Instant::now();
        let progress = self.endpoint.progress(run);
        // Before its output is read to the end, which a survivor may hold open.
        let gone = survivors::check_none(mark, killed);
        (running.finish(), progress, gone)
    }

    /// Until the session is stored it is begun anew.
    fn invocation<'a>(&'a self, witness: &Witness, prompt: &'a str) -> Invocation<'a> {
        let session = if witness.history().is_some() { "--resume" } else { "--session-id" };
        let args = ["-p", prompt, "--output-format", "stream-json", "--permission-mode", "bypass", session, ID];
        self.sandbox.peri(args)
    }

    fn judge(&self, witness: &mut Witness, finished: &Finished<'_>, look: Look) -> Result<(), String> {
        let run = witness.printed.len();
        let printed = Printed::read(run, &finished.stdout)?;
        match (finished.status.code(), finished.status.signal()) {
            (Some(0), _) if printed.finished => {}
            (None, Some(signal)) if signal == Signal::KILL.as_raw() => {}
            _ => return Err(format!("it ended by itself, with {}", finished.status)),
        }
        let usual = |line: &&str| line.starts_with("peri: the last turn of this session was interrupted");
        if let Some(line) = whole_lines(&finished.stderr).find(|line| !usual(line)) {
            return Err(format!("it said on standard error: {line}"));
        }
        witness.printed.push(printed);
        witness.check(self.shown(look)?.as_ref(), &self.endpoint.requests())?;
        let turn = witness.history().and_then(|history| history.turn(run));
        scripted::check_files(&self.sandbox.work(), run, turn.map_or(0, |turn| turn.steps.len()))
    }

    /// The session as it is stored; None where it is not.
    fn shown(&self, look: Look) -> Result<Option<Value>, String> {
        let copy = tempfile::tempdir().expect("a folder");
        let file = match look {
            Look::InPlace => self.sandbox.data_dir().join("peri.db"),
            Look::AtACopy => {
                copy_files(&self.sandbox.data_dir(), copy.path());
                copy.path().join("peri.db")
            }
        };
        let file = file.display().to_string();
        let run = self.sandbox.peri(["sessions", "show", ID, "--output-format", "json", "--db-path", &file]).run();
        let names = [copy.path(), &self.sandbox.data_dir()].map(names_in).concat();
        if let Some(name) = names.iter().find(|name| name.contains("damaged")) {
            return Err(format!("the store was found damaged: {name}\n{}", run.stderr));
        }
        match run.status.code() {
            Some(0) if run.stderr.is_empty() => Ok(Some(run.json())),
            Some(1) if run.stderr.contains(&format!("there is no session {ID}")) => Ok(None),
            _ => Err(format!("the session is not shown: {}\n{}", run.status, run.stderr)),
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().display().to_string()).collect()
}

fn copy_files(from: &Path, to: &Path) {
    for name in names_in(from).into_iter().filter(|name| from.join(name).is_file()) {
        std::fs::copy(from.join(&name), to.join(&name)).expect("a copy");
    }
}
