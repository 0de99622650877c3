//! `bench print`: what a text turn of `peri -p` costs, beyond the model's own time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::endpoint::{Answer, Endpoint};
use super::once::MARK;
use super::{Home, machine, median, release_binary};

struct Run {
    first_request: Duration,
    turn: Duration,
    peak_kib: u64,
}

pub fn run(root: &Path, runs: usize, binary: Option<&Path>) -> anyhow::Result<()> {
    let binary = release_binary(root, binary)?;
    let home = Home::new("print")?;
    let endpoint = Endpoint::start(&Answer::hello())?;
    // One run more than is counted: it creates the store and warms the page cache.
    let mut measured = (0..=runs).map(|_| once(&binary, &home, &endpoint)).collect::<anyhow::Result<Vec<Run>>>()?;
    measured.remove(0);
    report(&binary, &measured)
}

fn once(binary: &Path, home: &Home, endpoint: &Endpoint) -> anyhow::Result<Run> {
    let started = Instant::now();
    let output = Command::new(std::env::current_exe()?)
        .args(["bench", "once", "--"])
        .arg(binary)
        .args(["-p", "Say hello.", "--model", "anthropic/scripted", "--cwd"])
        .arg(home.workspace())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PERI_HOME", home.path())
        .env("ANTHROPIC_API_KEY", "scripted")
        .env("ANTHROPIC_BASE_URL", &endpoint.base_url)
        .stdin(Stdio::null())
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let figures = errors.lines().rev().find_map(|line| line.strip_prefix(MARK));
    let Some((micros, peak)) = figures.and_then(|figures| figures.trim().split_once(' ')) else {
        bail!("the run failed ({}):\n{errors}", output.status);
    };
    let arrival = endpoint.arrivals.try_recv().context("no request reached the endpoint")?;
    Ok(Run {
        // Includes the start of the measuring process, about a millisecond: the figure errs on the high side.
        first_request: arrival.duration_since(started),
        turn: Duration::from_micros(micros.parse()?),
        peak_kib: peak.parse()?,
    })
}

fn report(binary: &Path, runs: &[Run]) -> anyhow::Result<()> {
    let millis =
        |pick: fn(&Run) -> Duration| runs.iter().map(|run| pick(run).as_secs_f64() * 1000.0).collect::<Vec<_>>();
    let peaks: Vec<f64> = runs.iter().map(|run| run.peak_kib as f64 / 1024.0).collect();
    println!("bench print: median of {} (min to max), after one warm-up", runs.len());
    println!("machine: {}", machine::describe());
    row("start to first model request", &millis(|run| run.first_request), "ms", 25.0)?;
    row("whole text turn", &millis(|run| run.turn), "ms", 50.0)?;
    row("peak memory", &peaks, "MiB", 30.0)?;
    let size = std::fs::metadata(binary)?.len() as f64 / (1024.0 * 1024.0);
    row("stripped binary", &[size], "MiB", 20.0)
}

fn row(name: &str, values: &[f64], unit: &str, target: f64) -> anyhow::Result<()> {
    let middle = median(values).context("no runs")?;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let verdict = if middle <= target { "met" } else { "missed" };
    println!("{name:30} {middle:8.1} {unit:3} ({low:.1} to {high:.1})   target {target} {unit}: {verdict}");
    Ok(())
}
