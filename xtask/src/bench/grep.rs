//! `bench grep`: the workspace server's Grep against `rg`, on the same queries and trees, turn by turn.
//!
//! Grep is measured in a running server, through its MCP connection, as a session meets it; `rg` as a process from start
//! to end, and once more without what its start alone takes (`rg --version`).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::{figures::Figures, machine, tree};
use crate::prerequisites::install_debian_packages;
use crate::run::{self, command, output, succeeds, target_directory};

/// No more than so many times the time of `rg`.
const TARGET: f64 = 1.3;

/// A search as both are asked for it.
struct Query {
    name: &'static str,
    /// Arguments of the Grep tool.
    grep: String,
    rg: Vec<&'static str>,
}

pub fn run(root: &Path, runs: usize) -> anyhow::Result<()> {
    if !succeeds(&mut command(root, &["rg", "--version"])) {
        install_debian_packages(root, &["ripgrep"])?;
    }
    let build = ["cargo", "build", "--release", "--quiet", "-p", "peri-mcp-servers", "--example", "grep"];
    run::run(&mut command(root, &build))?;
    let version = output(&mut command(root, &["rg", "--version"]))?;
    println!(
        "bench grep: medians of {runs} (min to max), after one warm-up, Grep and rg by turns, files in the page cache"
    );
    println!("machine: {}; {}", machine::describe(), version.lines().next().unwrap_or_default());
    let bare = start_of_rg(root, runs)?;
    println!("{:34} {bare}", "start and end of rg alone");

    let folder = std::env::temp_dir().join(format!("peri-bench-grep-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = tree::write(&folder).context("cannot write the tree").and_then(|()| {
        println!("a generated tree of {} files, 200 MB:", tree::FILES);
        compare(root, &folder, runs, &bare)
    });
    std::fs::remove_dir_all(&folder)?;
    measured?;
    println!("this repository:");
    compare(root, root, runs, &bare)
}

fn queries() -> Vec<Query> {
    let files = |name, pattern: &'static str| Query {
        name,
        grep: format!(r#"{{"pattern": "{}", "head_limit": 0}}"#, pattern.replace('\\', "\\\\")),
        rg: vec!["--files-with-matches", pattern],
    };
    vec![
        files("rare word", tree::RARE_WORD),
        files("no match", "wombatBurrow"),
        files("regular expression", r"let \w+ = \d+;$"),
        files("no literal in it", r"[A-Z][a-z]+Q[a-z]+\d"),
        files("in nearly every file", tree::COMMON_WORD),
        Query {
            name: "count in every file",
            grep: format!(r#"{{"pattern": "{}", "output_mode": "count", "head_limit": 0}}"#, tree::COMMON_WORD),
            rg: vec!["--count", tree::COMMON_WORD],
        },
        Query {
            name: "lines of a rare word",
            grep: format!(r#"{{"pattern": "{}", "output_mode": "content", "head_limit": 0}}"#, tree::RARE_WORD),
            rg: vec!["--line-number", "--no-heading", tree::RARE_WORD],
        },
    ]
}

fn compare(root: &Path, folder: &Path, runs: usize, bare: &Figures) -> anyhow::Result<()> {
    let mut server = Server::start(root, folder)?;
    for query in queries() {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for run in 0..=runs {
            let grep = server.call(&query.grep)?;
            let rg = time_rg(folder, &query.rg)?;
            // The first run warms the page cache.
            if run > 0 {
                ours.push(grep);
                theirs.push(rg);
            }
        }
        let (ours, theirs) = (Figures::millis(&ours)?, Figures::millis(&theirs)?);
        let ratio = ours.median / theirs.median;
        let without_start = ours.median / (theirs.median - bare.median).max(0.1);
        let verdict = if ratio <= TARGET { "met" } else { "missed" };
        println!(
            "{:34} Grep {ours}, rg {theirs}: {ratio:.2}x, {verdict} (without rg's start {without_start:.2}x)",
            query.name
        );
    }
    server.end()
}

fn start_of_rg(root: &Path, runs: usize) -> anyhow::Result<Figures> {
    let times = (0..=runs).map(|_| time_rg(root, &["--version"])).collect::<anyhow::Result<Vec<Duration>>>()?;
    Figures::millis(&times[1..])
}

/// One run of `rg` over what Grep looks at too: hidden files, but not the folder of git.
fn time_rg(folder: &Path, arguments: &[&str]) -> anyhow::Result<Duration> {
    let mut rg = Command::new("rg");
    rg.args(["--no-config", "--hidden", "--glob=!.git"]).args(arguments);
    rg.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    if arguments != ["--version"] {
        // Told, or it would search its standard input.
        rg.arg("./");
    }
    let started = Instant::now();
    let output = rg.output().context("cannot start rg")?;
    let elapsed = started.elapsed();
    // 1: nothing was found.
    match output.status.code() {
        Some(0 | 1) => Ok(elapsed),
        _ => bail!("rg failed: {}", output.status),
    }
}

/// The workspace server, in a process that asks it what it is told to.
struct Server {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start(root: &Path, folder: &Path) -> anyhow::Result<Server> {
        let mut child = Command::new(target_directory(root).join("release/examples/grep"))
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let questions = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Server { child, questions, answers })
    }

    fn call(&mut self, arguments: &str) -> anyhow::Result<Duration> {
        writeln!(self.questions, "{arguments}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let words: Vec<&str> = answer.split_whitespace().collect();
        match words[..] {
            [micros, _lines, "false"] => Ok(Duration::from_micros(micros.parse()?)),
            _ => bail!("Grep failed: {answer}"),
        }
    }

    fn end(mut self) -> anyhow::Result<()> {
        drop(self.questions);
        self.child.wait()?;
        Ok(())
    }
}
