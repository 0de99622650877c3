//! `bench stream`: what a streamed delta costs from the endpoint's socket to an ACP client's pipe.
//!
//! Deltas are counted where the endpoint sends them. Neighbours may be merged on the way, which is what they do when they
//! come faster than the client is told; every character must arrive. The last figure is of deltas that come one by one, so
//! that nearly each is a message of its own: what a real provider's pace costs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use super::acp_client::AcpClient;
use super::endpoint::{Answer, Endpoint, Writes};
use super::figures::Figures;
use super::{Home, machine, release_binary};

/// Deltas per second of processor time.
const TARGET: f64 = 100_000.0;

/// Between two deltas that come one by one.
const PACE: Duration = Duration::from_micros(250);
/// Of so many deltas one comes in that way, for they take their time.
const PACED_SHARE: usize = 20;

/// About as long as a token.
const PIECES: [&str; 8] = ["the ", "stream", " of ", "answer", "s, ", "token ", "by ", "token. "];

struct Run {
    cpu: Duration,
    wall: Duration,
    messages: usize,
}

pub fn run(root: &Path, runs: usize, deltas: usize, binary: Option<&Path>) -> anyhow::Result<()> {
    let binary = release_binary(root, binary)?;
    println!("bench stream: medians of {runs} (min to max), text deltas of one turn, after one warm-up");
    println!("machine: {}", machine::describe());
    let paced = deltas / PACED_SHARE;
    for (name, deltas, writes) in [
        ("written together", deltas, Writes::Together),
        ("each by a write of its own", deltas, Writes::EachAlone),
        ("one by one", paced, Writes::Paced(PACE)),
    ] {
        let answer = Answer { deltas: texts(deltas), writes };
        let mut measured = (0..=runs).map(|_| once(&binary, &answer)).collect::<anyhow::Result<Vec<Run>>>()?;
        measured.remove(0);
        report(name, &answer, &measured)?;
    }
    Ok(())
}

fn texts(count: usize) -> Arc<Vec<String>> {
    Arc::new((0..count).map(|number| PIECES[number % PIECES.len()].to_owned()).collect())
}

fn once(binary: &Path, answer: &Answer) -> anyhow::Result<Run> {
    let home = Home::new("stream")?;
    let endpoint = Endpoint::start(answer)?;
    let mut client = AcpClient::start(binary, home.path(), &endpoint)?;
    client.initialize()?;
    let session = client.new_session(&home.workspace())?;
    let (cpu_before, started) = (client.cpu()?, Instant::now());
    let lines = client.prompt(&session)?;
    let wall = started.elapsed();
    let cpu = client.cpu()?.saturating_sub(cpu_before);
    client.end()?;
    let texts = lines.iter().map(|line| text_of(line)).collect::<anyhow::Result<Vec<String>>>()?;
    if texts.concat() != answer.deltas.concat() {
        bail!("the client did not get the text that the endpoint sent");
    }
    Ok(Run { cpu, wall, messages: lines.len() })
}

/// The text that a message adds to the answer.
fn text_of(line: &[u8]) -> anyhow::Result<String> {
    let message: Value = serde_json::from_slice(line).context("a line is no JSON")?;
    let update = &message["params"]["update"];
    let is_text = update["sessionUpdate"] == "agent_message_chunk";
    Ok(if is_text { update["content"]["text"].as_str().unwrap_or_default().to_owned() } else { String::new() })
}

fn report(name: &str, answer: &Answer, runs: &[Run]) -> anyhow::Result<()> {
    let deltas = answer.deltas.len();
    let figures = |pick: &dyn Fn(&Run) -> f64, unit| Figures::new(&runs.iter().map(pick).collect::<Vec<f64>>(), unit);
    let per_ten_thousand = figures(&|run| run.cpu.as_secs_f64() * 1000.0 * 10_000.0 / deltas as f64, "ms")?;
    let per_second = figures(&|run| deltas as f64 / run.cpu.as_secs_f64().max(0.01), "/s")?;
    // The target is about throughput; at a provider's pace there is none to speak of.
    let verdict = match answer.writes {
        Writes::Paced(_) => String::new(),
        _ if per_second.median >= TARGET => format!("   target {TARGET} /s: met"),
        _ => format!("   target {TARGET} /s: missed"),
    };
    println!("{name}, {deltas} deltas:");
    println!("  processor time per 10,000 deltas   {per_ten_thousand}");
    println!("  deltas per second of one core      {per_second}{verdict}");
    println!("  wall time of the turn              {}", figures(&|run| run.wall.as_secs_f64(), "s")?);
    println!("  messages to the client             {}", figures(&|run| run.messages as f64, "")?);
    Ok(())
}
