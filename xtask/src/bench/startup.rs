//! `bench startup`: from the start of the process to what a client waits for.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::bail;

use super::acp_client::AcpClient;
use super::endpoint::{Answer, Endpoint};
use super::figures::Figures;
use super::{Home, machine, release_binary};

struct Run {
    version: Duration,
    initialized: Duration,
    session: Duration,
    resident_kib: u64,
}

pub fn run(root: &Path, runs: usize, binary: Option<&Path>) -> anyhow::Result<()> {
    let binary = release_binary(root, binary)?;
    let home = Home::new("startup")?;
    let endpoint = Endpoint::start(&Answer::hello())?;
    // One run more than is counted: it creates the store and warms the page cache.
    let mut measured = (0..=runs).map(|_| once(&binary, &home, &endpoint)).collect::<anyhow::Result<Vec<Run>>>()?;
    measured.remove(0);
    println!("bench startup: medians of {runs} (min to max), after one warm-up");
    println!("machine: {}", machine::describe());
    let millis = |pick: fn(&Run) -> Duration| Figures::millis(&measured.iter().map(pick).collect::<Vec<Duration>>());
    println!("start to end of peri --version     {}", millis(|run| run.version)?);
    println!("start to initialize answered       {}", millis(|run| run.initialized)?);
    println!("start to session/new answered      {}", millis(|run| run.session)?);
    let resident: Vec<f64> = measured.iter().map(|run| run.resident_kib as f64 / 1024.0).collect();
    println!("memory then                        {}", Figures::new(&resident, "MiB")?);
    Ok(())
}

fn once(binary: &Path, home: &Home, endpoint: &Endpoint) -> anyhow::Result<Run> {
    let started = Instant::now();
    let status = Command::new(binary).arg("--version").stdout(Stdio::null()).status()?;
    let version = started.elapsed();
    if !status.success() {
        bail!("peri --version failed: {status}");
    }
    let started = Instant::now();
    let mut client = AcpClient::start(binary, home.path(), endpoint)?;
    client.initialize()?;
    let initialized = started.elapsed();
    client.new_session(&home.workspace())?;
    let session = started.elapsed();
    let resident_kib = client.resident_kib()?;
    client.end()?;
    Ok(Run { version, initialized, session, resident_kib })
}
