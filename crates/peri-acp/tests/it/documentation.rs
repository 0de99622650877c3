//! The page on the protocol says what is so: its tables against what the agent answers and sends.

use std::collections::{BTreeMap, BTreeSet};

use agent_client_protocol::v1::schema::{AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES};
use peri_testkit::fake_model::FakeModel;
use serde_json::{Value, json};

use crate::golden::repository;
use crate::world::World;

/// The first two columns of the table under a heading, with one entry for each name in the first.
fn table(heading: &str) -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(repository("docs/protocol/acp.md")).expect("the page");
    let (_, rest) = page.split_once(heading).expect("the heading");
    let rows = rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut methods = BTreeMap::new();
    for row in rows.skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for name in cells[0].split('`').skip(1).step_by(2) {
            methods.insert(name.to_owned(), cells[1].to_owned());
        }
    }
    methods
}

fn names(value: impl serde::Serialize) -> BTreeSet<String> {
    let names = serde_json::to_value(value).expect("JSON");
    names.as_object().expect("names").values().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_table_of_requests_is_what_the_agent_answers() {
    let table = table("### From the client");
    let world = World::new([FakeModel::default()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    for method in names(AGENT_METHOD_NAMES) {
        if method == "session/cancel" {
            // A notification: it has no answer.
            assert_eq!(table.get(&method).map(String::as_str), Some("works"));
            continue;
        }
        let code = client.request(&method, json!({"sessionId": 7})).await.err().map(|error| error.code);
        let expected = if code == Some(-32601) { "no" } else { "works" };
        assert_eq!(table.get(&method).map(String::as_str), Some(expected), "{method} answered {code:?}");
    }
}

#[test]
fn the_table_of_what_is_sent_is_what_the_examples_hold() {
    let table = table("### From the agent");
    let mut sent = BTreeSet::new();
    for entry in std::fs::read_dir(repository("fixtures/acp")).expect("the folder") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a fixture");
        let Ok(Value::Array(told)) = serde_json::from_str(&text) else { continue };
        let of_agent = told.iter().filter(|told| told["from"] == "agent");
        sent.extend(of_agent.filter_map(|told| told["message"]["method"].as_str()).map(str::to_owned));
    }
    for method in names(CLIENT_METHOD_NAMES).union(&sent) {
        let expected = if sent.contains(method) { "works" } else { "never" };
        assert_eq!(table.get(method).map(String::as_str), Some(expected), "{method}");
    }
}
