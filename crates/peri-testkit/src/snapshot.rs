//! What varies from run to run in a snapshot, and what stands in its place: ids, times, ports, temporary paths.
//!
//! The table is for text, [`steady`] for JSON that must stay true to its schema. For insta with its feature `filters`: `insta::with_settings!({filters => peri_testkit::snapshot::filters()}, { ... })`.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

/// Regular expressions and what stands in place of what they match, in the order in which they apply.
const FILTERS: [(&str, &str); 8] = [
    (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "[uuid]"),
    (r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?", "[time]"),
    // Unix time in milliseconds, from 2001 to 2286.
    (r"\b1\d{12}\b", "[ms]"),
    (r#""(elapsedMs|duration_ms|durationMs|duration_api_ms)":\s*\d+"#, r#""$1": "[duration]""#),
    (r"\b\d+(\.\d+)? ?(ms|s)\b", "[duration]"),
    (r"\b(127\.0\.0\.1|localhost):\d{2,5}\b", "$1:[port]"),
    (r"(/private)?(/var/folders/[^/\s]+/[^/\s]+/T|/tmp|/var/tmp)/\.?tmp[A-Za-z0-9]{6,}", "[tmp]"),
    (r"\bperi/\d+\.\d+\.\d+\b", "peri/[version]"),
];

/// The table, as insta takes it.
pub fn filters() -> Vec<(&'static str, &'static str)> {
    FILTERS.to_vec()
}

/// JSON as it is in every run, of the same form still: UUIDs are numbered in the order in which they appear, times are the
/// beginning of 2026, durations 0.
pub fn steady(value: &Value) -> Value {
    Steady::default().value(value)
}

#[derive(Default)]
struct Steady {
    ids: HashMap<Uuid, u128>,
}

impl Steady {
    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn members(&mut self, members: &Map<String, Value>) -> Map<String, Value> {
        let steady = members.iter().map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("updatedAt", Value::String(_)) => Value::from("2026-01-01T00:00:00Z"),
                ("elapsedMs", Value::Number(_)) => Value::from(0),
                ("version", Value::String(_)) => Value::from("0.0.0"),
                _ => self.value(value),
            };
            (key.clone(), value)
        });
        steady.collect()
    }

    /// Ids stand alone, or before a dot: `TURN.1`.
    fn text(&mut self, text: &str) -> String {
        let (head, tail) = text.split_at(text.find('.').unwrap_or(text.len()));
        let Ok(id) = head.parse() else { return text.to_owned() };
        let next = self.ids.len() as u128 + 1;
        let number = *self.ids.entry(id).or_insert(next);
        format!("{}{tail}", Uuid::from_u128(0x7000_8000_0000_0000_0000 | number))
    }
}
