//! The official conformance suite, with this program as the client that it tests.
//!
//! Invariant: every scenario of the suite is written down, here as passing or in `interop/mcp/conformance.yml` as failing,
//! and any difference fails.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use peri_acp_types::ports::McpTransport;
use serde_json::{Map, Value, json};

use crate::session::{Session, installed, node_program, spec};

/// Set by the suite for its client.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
/// The whole name of the test that is the client.
const CLIENT: &str = "conformance::client_of_the_suite";
/// Scenarios that pass.
const PASSING: [&str; 4] = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"];
/// It passes with a client that gives up at once, as this one does where OAuth is asked for.
const PASSING_BY_REFUSAL: &str = "auth/resource-mismatch";
/// Suites of scenarios that need OAuth.
const OAUTH_SUITES: [&str; 4] = ["auth", "backcompat", "draft", "extensions"];
/// One scenario measures when a stream is taken up again, to a fifth of a second: a busy machine may be late for it.
const ATTEMPTS: usize = 4;

fn failing() -> PathBuf {
    installed().join("conformance.yml")
}

/// Runs the suite by these words.
fn suite(words: &[&str]) -> Output {
    let program = installed().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    Command::new(node_program("node")).arg(program).args(words).output().expect("the suite runs")
}

/// Runs scenarios with this program as client. What was seen, where they are not as they are written down.
fn run(words: &[&str]) -> Result<(), String> {
    let results = tempfile::tempdir().expect("a folder");
    let this = std::env::current_exe().expect("this program");
    let client = format!("{} --exact {CLIENT} --nocapture", this.display());
    let (failing, results) = (failing().display().to_string(), results.path().display().to_string());
    let usual = ["--timeout", "60000", "--command", &client, "--expected-failures", &failing, "-o", &results];
    let output = suite(&[&["client"], words, &usual].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{words:?}\n{}\n{}", text(&output.stdout), text(&output.stderr))),
    }
}

#[test]
fn scenarios_without_oauth_pass() {
    for scenario in PASSING {
        let mut outcome = Ok(());
        for _attempt in 0..ATTEMPTS {
            outcome = run(&["--scenario", scenario]);
            if outcome.is_ok() {
                break;
            }
        }
        outcome.unwrap_or_else(|seen| panic!("{seen}"));
    }
}

#[test]
fn scenarios_with_oauth_are_as_they_are_written_down() {
    for name in OAUTH_SUITES {
        run(&["--suite", name]).unwrap_or_else(|seen| panic!("{seen}"));
    }
}

#[test]
fn every_scenario_is_written_down() {
    let listed = String::from_utf8(suite(&["list", "--client"]).stdout).expect("UTF-8");
    let entry =
        |line: &str| line.trim().strip_prefix("- ").map(|rest| rest.split(' ').next().unwrap_or(rest).to_owned());
    let listed: BTreeSet<String> = listed.lines().filter_map(entry).collect();
    let failing = std::fs::read_to_string(failing()).expect("the list of failing scenarios");
    let mut known: BTreeSet<String> = failing.lines().filter_map(entry).collect();
    known.extend(PASSING.into_iter().chain([PASSING_BY_REFUSAL]).map(str::to_owned));
    assert_eq!(listed, known);
}

/// A test by its form only: the suite runs this program with the address of its server as last argument.
#[tokio::test]
async fn client_of_the_suite() {
    if std::env::var_os(SCENARIO).is_none() {
        return;
    }
    let url = std::env::args().next_back().expect("the address");
    let transport = McpTransport::Http { url, headers: Vec::new() };
    let session = Session::open(vec![spec("suite", std::path::Path::new("/"), transport)]).await;
    assert_eq!(session.notices(), [""; 0]);
    for tool in &session.offered.tools {
        let output = session.call(&tool.name, made_up(&tool.input_schema)).await;
        assert!(!output.is_error, "{}: {output:?}", tool.name);
    }
    session.close().await;
}

/// Arguments that a schema takes.
fn made_up(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |property: &Value| match property["type"].as_str() {
        Some("number" | "integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("seven"),
    };
    Value::Object(properties.map(|(name, property)| (name.clone(), value(property))).collect::<Map<_, _>>())
}
