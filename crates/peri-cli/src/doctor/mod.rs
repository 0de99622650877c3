//! `peri doctor`: is everything there that a session needs?
//!
//! Owns: the checks, their order and how they are shown. Must not: start an agent or an MCP server, change a setting, or show
//! a secret. Invariants: each check is bounded in time; each warning and each fault comes with its mend.

mod endpoint;
mod folders;
mod machine;
mod servers;
mod settings;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::args::ReportFormat;
use crate::composition::Places;
use crate::composition::offered::ModelAccess;
use crate::exit::Exit;
use peri_config::CommandLineOverlay;

/// How long a check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is about, in one word.
    pub area: &'static str,
    pub level: Level,
    pub what: String,
    /// What to do; there is one unless all is well.
    pub mend: Option<String>,
}

/// How grave it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Ok,
    /// Something is missing or not known; sessions run.
    Warning,
    /// Something that was asked for cannot work.
    Fault,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }
}

impl Finding {
    fn ok(area: &'static str, what: impl Into<String>) -> Finding {
        Finding { area, level: Level::Ok, what: what.into(), mend: None }
    }

    fn warning(area: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { area, level: Level::Warning, what: what.into(), mend: Some(mend.into()) }
    }

    fn fault(area: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { level: Level::Fault, ..Finding::warning(area, what, mend) }
    }

    /// A fault whose words hold the mend already.
    fn told(area: &'static str, level: Level, words: &str) -> Finding {
        let (what, mend) = words.rsplit_once("; ").unwrap_or((words, "peri config check says more"));
        Finding { area, level, what: what.to_owned(), mend: Some(mend.to_owned()) }
    }
}

/// What is examined.
pub struct Patient<'a> {
    pub places: &'a Places,
    pub overlay: &'a CommandLineOverlay,
    /// How the endpoint is reached.
    pub access: &'a ModelAccess,
}

/// Makes every check. Tells what was found, in the order in which people should read it.
pub async fn examine(patient: Patient<'_>) -> Vec<Finding> {
    let Patient { places, overlay, access } = patient;
    let mut findings = vec![machine::version()];
    let (resolution, about_settings) = settings::read(places, overlay).await;
    findings.extend(about_settings);
    if let Some(resolution) = &resolution {
        findings.extend(endpoint::check(&resolution.settings, access).await);
    }
    findings.extend(bounded("sessions", folders::sessions(places)).await);
    findings.extend(folders::writable(places));
    findings.extend(bounded("processes", machine::processes(places)).await);
    findings.extend(machine::programs(places));
    if let Some(resolution) = &resolution {
        findings.extend(servers::check(&resolution.settings, places));
    }
    findings.extend(machine::terminal(places.environment()));
    findings
}

/// A check that may hang is given up in time.
async fn bounded(area: &'static str, check: impl Future<Output = Vec<Finding>>) -> Vec<Finding> {
    match timeout(CHECK_LIMIT, check).await {
        Ok(findings) => findings,
        Err(_) => {
            let what = format!("no answer within {} s", CHECK_LIMIT.as_secs());
            vec![Finding::fault(area, what, "is the disk or the machine overloaded? try again")]
        }
    }
}

/// The findings for people or programs, and the exit code that they come to.
pub fn report(findings: &[Finding], format: ReportFormat) -> (String, Exit) {
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
    let exit = if faults == 0 { Exit::Success } else { Exit::Failure };
    let text = match format {
        ReportFormat::Json => {
            let checks: Vec<Value> = findings.iter().map(finding_json).collect();
            let report = json!({
                "peri_version": env!("CARGO_PKG_VERSION"), "checks": checks, "faults": faults, "warnings": warnings,
            });
            serde_json::to_string_pretty(&report).unwrap_or_default()
        }
        ReportFormat::Text => {
            let lines: String = findings.iter().map(finding_text).collect();
            format!("{lines}\n{}, {}\n", counted(faults, "fault"), counted(warnings, "warning"))
        }
    };
    (text, exit)
}

fn finding_json(finding: &Finding) -> Value {
    json!({"area": finding.area, "level": finding.level.word(), "what": finding.what, "mend": finding.mend})
}

fn finding_text(finding: &Finding) -> String {
    let mend = match &finding.mend {
        Some(mend) => format!("{:22}mend: {}\n", "", mend.replace('\n', "\n                            ")),
        None => String::new(),
    };
    let what = finding.what.replace('\n', "\n                      ");
    format!("{:<9}{:<13}{what}\n{mend}", finding.level.word(), finding.area)
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}"),
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
