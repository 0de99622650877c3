//! What a server sends, before anyone reads it.
//!
//! Owns: which answers are awaited; what of a list can be used; which texts are for people. Must not: wait, or change what
//! a call gave or what the model is told of a tool.
//! Invariants: an answer comes through once, to a request that was sent; one entry of a list that cannot be understood
//! costs no other; texts for people are free of the secrets that the server was given.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{Prompt, Tool};
use serde::Deserialize;
use serde_json::Value;

use super::health::Health;
use super::redaction::Redaction;

/// Messages of one server, in both directions.
pub(super) struct Screen {
    redaction: Redaction,
    health: Arc<Health>,
    /// The requests that wait for an answer.
    asked: BTreeMap<String, Asked>,
}

/// As far as it matters for the answer.
#[derive(Clone, Copy)]
enum Asked {
    Tools,
    Prompts,
    Call,
    Other,
}

impl Screen {
    pub(super) fn new(redaction: Redaction, health: Arc<Health>) -> Screen {
        Screen { redaction, health, asked: BTreeMap::new() }
    }

    /// Notes a message of the client's.
    pub(super) fn sent(&mut self, message: &Value) {
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                let asked = match method {
                    "tools/list" => Asked::Tools,
                    "prompts/list" => Asked::Prompts,
                    "tools/call" => Asked::Call,
                    _ => Asked::Other,
                };
                self.asked.insert(key_of(id), asked);
            }
            (Some("notifications/cancelled"), None) => {
                if let Some(id) = message.pointer("/params/requestId") {
                    self.asked.remove(&key_of(id));
                }
            }
            _ => {}
        }
    }

    /// A message of the server's as it is to be read; None for an answer to nothing, which is counted as rubbish.
    pub(super) fn received(&mut self, mut message: Value) -> Option<Value> {
        if let Some(method) = message.get("method") {
            if method == "elicitation/create"
                && let Some(params) = message.get_mut("params")
            {
                self.redact_words(params);
            }
            return Some(message);
        }
        // What is no message at all, or a refusal of one that the server could not read, is not for this to judge.
        let asked = match message.get("id").filter(|id| !id.is_null()) {
            Some(id) => match self.asked.remove(&key_of(id)) {
                Some(asked) => asked,
                None => {
                    self.note_rubbish(&message);
                    return None;
                }
            },
            None => Asked::Other,
        };
        if let Some(error) = message.get_mut("error") {
            self.redaction.value(error);
        }
        if let Some(result) = message.get_mut("result") {
            self.read_result(asked, result);
        }
        Some(message)
    }

    fn read_result(&self, asked: Asked, result: &mut Value) {
        match asked {
            Asked::Tools => self.keep_usable::<Tool>(result, "tools", "tool"),
            Asked::Prompts => {
                self.keep_usable::<Prompt>(result, "prompts", "prompt");
                self.redact_words(result);
            }
            Asked::Call if result.get("isError") == Some(&Value::Bool(true)) => self.redaction.value(result),
            Asked::Call | Asked::Other => {}
        }
    }

    /// Takes out of a list what is no entry, and notes it.
    fn keep_usable<T: for<'de> Deserialize<'de>>(&self, result: &mut Value, list: &str, what: &str) {
        let Some(Value::Array(entries)) = result.get_mut(list) else { return };
        let mut place = 0;
        entries.retain(|entry| {
            place += 1;
            let Err(why) = T::deserialize(entry) else { return true };
            let name = match entry.get("name").and_then(Value::as_str) {
                Some(name) => format!("{what} `{name}`"),
                None => format!("{what} number {place}"),
            };
            self.health.note_unusable(&self.redaction.legible(&name), &self.redaction.legible(&why.to_string()));
            false
        });
    }

    /// The texts of a form or a list that only people read.
    fn redact_words(&self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_words(value)),
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(text) if matches!(name.as_str(), "message" | "title" | "description") => {
                            *text = self.redaction.text(text);
                        }
                        other => self.redact_words(other),
                    }
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text that quotes the server.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.redaction.text(text)
    }

    /// Counts what is no message.
    pub(super) fn note_rubbish(&self, message: &Value) {
        let text = match message {
            Value::String(line) => self.redaction.legible(line),
            other => self.redaction.legible(&other.to_string()),
        };
        self.health.note_rubbish(&text);
    }
}

/// Some servers answer a number with the same number in quotes.
fn key_of(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use peri_acp_types::ports::{McpTransport, Secret};
    use serde_json::json;

    fn screen() -> Screen {
        let env = [("A".to_owned(), Secret::new("geheim12"))].into();
        let transport = McpTransport::Stdio { command: "c".to_owned(), args: Vec::new(), env };
        Screen::new(Redaction::of(&transport), Arc::default())
    }

    /// The answer to a request of that method as it comes through.
    #[track_caller]
    fn check(method: &str, answer: Value, expect: Value) {
        let mut screen = screen();
        screen.sent(&json!({"id": 1, "method": method}));
        let (mut answer, mut expect) = (answer, expect);
        (answer["id"], expect["id"]) = (json!(1), json!(1));
        assert_eq!(screen.received(answer), Some(expect));
    }

    #[test]
    fn texts_for_people_hold_no_secret_and_those_for_the_model_stay() {
        let result = |is_error: bool| json!({"result": {"content": [{"type": "text", "text": "geheim12"}], "isError": is_error}});
        check("tools/call", result(false), result(false));
        check(
            "tools/call",
            result(true),
            json!({"result": {"content": [{"type": "text", "text": "[redacted]"}], "isError": true}}),
        );
        for method in ["initialize", "tools/list", "tools/call", "prompts/get"] {
            check(
                method,
                json!({"error": {"code": 1, "message": "no geheim12", "data": ["geheim12"]}}),
                json!({"error": {"code": 1, "message": "no [redacted]", "data": ["[redacted]"]}}),
            );
        }
        check(
            "prompts/list",
            json!({"result": {"prompts": [{"name": "a", "description": "geheim12"}]}}),
            json!({"result": {"prompts": [{"name": "a", "description": "[redacted]"}]}}),
        );
        let form = |words: &str| {
            let field = json!({"type": "string", "title": words, "description": words, "default": "geheim12"});
            json!({"id": 7, "method": "elicitation/create", "params": {
                "message": words, "requestedSchema": {"properties": {"title": field}},
            }})
        };
        assert_eq!(screen().received(form("geheim12?")), Some(form("[redacted]?")));
    }

    #[test]
    fn an_answer_comes_once_and_to_what_was_asked() {
        let mut screen = screen();
        let answer = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": {}});
        for id in [1, 2, 3] {
            screen.sent(&json!({"id": id, "method": "ping"}));
        }
        screen.sent(&json!({"method": "notifications/cancelled", "params": {"requestId": 3}}));
        for (id, is_awaited) in [
            (json!(1), true),
            (json!(1), false),
            (json!("2"), true),
            (json!(2), false),
            (json!(3), false),
            (json!(999), false),
        ] {
            assert_eq!(screen.received(answer(id.clone())).is_some(), is_awaited, "{id}");
        }
        let refusal = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "geheim12?"}});
        assert_eq!(screen.received(refusal).expect("it may be for anything")["error"]["message"], "[redacted]?");
    }
}
