//! What a server was given in confidence, taken out of what it says.
//!
//! Owns: how a secret is found in a text. Must not: know which texts of a server's are shown.
//! Invariant: no secret of eight bytes or more is in a text that went through here, nor the rest of one where the text was
//! cut before.

use peri_acp_types::ports::{McpTransport, Secret};
use peri_config::McpServer;
use serde_json::Value;

/// The shortest rest of a secret that is taken out, in bytes.
const LEAST_REST_BYTES: usize = 4;
const REDACTED: &str = "[redacted]";

/// The secrets of one server.
#[derive(Clone, Default)]
pub(super) struct Redaction {
    /// The longest first: one may be a part of another.
    secrets: Vec<Secret>,
}

impl Redaction {
    pub(super) fn of(transport: &McpTransport) -> Redaction {
        let mut secrets = McpServer::secrets_of(transport);
        // As a text in JSON has them.
        secrets.extend(secrets.iter().filter_map(escaped).collect::<Vec<_>>());
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
        Redaction { secrets }
    }

    /// The text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    /// The beginning of a text that was cut somewhere, legible.
    pub(super) fn beginning(&self, text: &str) -> String {
        let text = self.legible(text);
        // A character may have been cut, too.
        let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        match self.longest_rest(|secret, length| secret.get(..length).is_some_and(|rest| whole.ends_with(rest))) {
            0 => text,
            rest => format!("{}{REDACTED}", whole.get(..whole.len() - rest).unwrap_or_default()),
        }
    }

    /// The end of a text that was cut somewhere, legible.
    pub(super) fn end(&self, text: &str) -> String {
        let text = self.legible(text);
        let whole = text.trim_start_matches(char::REPLACEMENT_CHARACTER);
        let is_rest =
            |secret: &str, length| secret.get(secret.len() - length..).is_some_and(|rest| whole.starts_with(rest));
        match self.longest_rest(is_rest) {
            0 => text,
            rest => format!("{REDACTED}{}", whole.get(rest..).unwrap_or_default()),
        }
    }

    /// In bytes; 0 where none is one.
    fn longest_rest(&self, is_rest: impl Fn(&str, usize) -> bool) -> usize {
        let rest_of = |secret: &Secret| {
            let secret = secret.reveal();
            (LEAST_REST_BYTES..secret.len()).rev().find(|length| is_rest(secret, *length))
        };
        self.secrets.iter().filter_map(rest_of).max().unwrap_or_default()
    }

    /// The text as it may be shown: no control character could have hidden a secret, or do something to a terminal. Lines
    /// stay.
    pub(super) fn legible(&self, text: &str) -> String {
        let is_shown = |c: &char| !c.is_control() || *c == '\n';
        // A secret may have control characters itself.
        let shown: String = self.text(text).chars().filter(is_shown).collect();
        self.text(&shown)
    }

    /// Every text in a value, but for names of members.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// None where it would be the same.
fn escaped(secret: &Secret) -> Option<Secret> {
    let quoted = Value::from(secret.reveal()).to_string();
    let escaped = quoted.strip_prefix('"')?.strip_suffix('"')?;
    (escaped != secret.reveal()).then(|| Secret::new(escaped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redaction(secrets: &[(&str, &str)]) -> Redaction {
        let secret = |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new(*value));
        let env = secrets.iter().map(secret).collect();
        Redaction::of(&McpTransport::Stdio { command: "c".to_owned(), args: Vec::new(), env })
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let redaction =
            redaction(&[("A", "geheim12"), ("B", "geheim12-geheim"), ("C", "a \"quoted\" one"), ("D", "de")]);
        assert_eq!(redaction.legible(text), expect);
    }

    #[test]
    fn secrets_are_found_however_they_are_written() {
        check("decide", "decide");
        check("geheim12 and geheim12-geheim", "[redacted] and [redacted]");
        check(r#"{"x":"a \"quoted\" one"} a "quoted" one"#, r#"{"x":"[redacted]"} [redacted]"#);
        check("ge\u{1b}heim\u{7}12\n!", "[redacted]\n!");
    }

    #[test]
    fn all_texts_of_a_value_are_looked_at() {
        let mut value = json!({"a": ["geheim12", 1, {"b": "no geheim12"}], "c": null});
        redaction(&[("A", "geheim12")]).value(&mut value);
        assert_eq!(value, json!({"a": ["[redacted]", 1, {"b": "no [redacted]"}], "c": null}));
    }

    #[test]
    fn rests_of_secrets_are_taken_out_where_a_text_was_cut() {
        let redaction = redaction(&[("A", "geheim12"), ("B", "täglich anders")]);
        for (text, beginning, end) in [
            ("", "", ""),
            ("geheim12", "[redacted]", "[redacted]"),
            ("x geheim1", "x [redacted]", "x geheim1"),
            ("eim12 x", "eim12 x", "[redacted] x"),
            ("m12 x geh", "m12 x geh", "m12 x geh"),
            ("geheim12geheim1", "[redacted][redacted]", "[redacted]geheim1"),
            ("x t\u{e4}gl\u{fffd}", "x [redacted]", "x t\u{e4}gl\u{fffd}"),
            ("\u{fffd}glich anders x", "\u{fffd}glich anders x", "[redacted] x"),
        ] {
            assert_eq!((&*redaction.beginning(text), &*redaction.end(text)), (beginning, end), "{text}");
        }
    }
}
