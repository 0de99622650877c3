//! What an untrusted workspace may say: `permissions.deny` and `permissions.ask`, nothing else.
//!
//! Invariant: what remains of a document can refuse calls or have them asked about, and cannot make anything pass, go
//! anywhere or start; every key that was taken out is named once, those of one document together. This works on the raw
//! object, before any key is read, so that a key that is added to the settings one day is covered from its first day.

use serde_json::{Map, Value};

use crate::path::Path;
use crate::reader::Sink;
use crate::{Diagnostic, Severity, WorkspaceTrust};

/// How to lift the restriction.
pub(crate) const TRUST_HINT: &str = "run `peri trust` or pass --trust-workspace";

/// The longest list of ignored keys, in bytes. A document of ours stays far below it.
const MAX_LIST_BYTES: usize = 1200;

/// Takes out all that could loosen, and names it in one finding.
pub(crate) fn tighten(map: &mut Map<String, Value>, trust: &WorkspaceTrust, sink: &Sink) {
    let mut ignored = Vec::new();
    let mut take_out = |path: &Path<'_>, key: &str, value: &Value| ignored.extend(Ignored::of(path, key, value));
    map.retain(|key, value| match key.as_str() {
        "$schema" => true,
        "permissions" => {
            if let Value::Object(permissions) = value {
                permissions.retain(|key, value| {
                    let tightens = matches!(key.as_str(), "deny" | "ask");
                    if !tightens {
                        take_out(&Path::ROOT.key("permissions").key(key), key, value);
                    }
                    tightens
                });
            }
            true
        }
        _ => {
            take_out(&Path::ROOT.key(key), key, value);
            false
        }
    });
    let finding = |message: String| {
        let message = format!("{message}ignored: {}", trust.refusal());
        Diagnostic::whole(Severity::Warning, sink.origin(), message).with_hint(TRUST_HINT)
    };
    match ignored.as_slice() {
        [] => {}
        [Ignored { key, content }] => sink.push(finding(content.clone()).with_key(key.clone())),
        several => sink.push(finding(format!("keys {} ", listed(several)))),
    }
}

/// A key that was taken out.
struct Ignored {
    /// Its path.
    key: String,
    /// `(3 rules) `, where there is something to count.
    content: String,
}

impl Ignored {
    /// None for an empty list or object, which sets nothing.
    fn of(path: &Path<'_>, key: &str, value: &Value) -> Option<Ignored> {
        let count = match value {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 1,
        };
        let content = match noun(key) {
            _ if count == 0 => return None,
            Some((one, _)) if count == 1 => format!("(1 {one}) "),
            Some((_, many)) => format!("({count} {many}) "),
            None => String::new(),
        };
        Some(Ignored { key: path.shown().unwrap_or_default(), content })
    }
}

/// `` `model`, `env` (2 variables) ``, cut where it is longer than any list of keys that we know.
fn listed(several: &[Ignored]) -> String {
    let mut list = String::new();
    for (index, Ignored { key, content }) in several.iter().enumerate() {
        let item = format!("`{key}` {content}");
        if list.len() + item.len() > MAX_LIST_BYTES {
            return format!("{list} and {} more", several.len() - index);
        }
        list.push_str(if index == 0 { "" } else { ", " });
        list.push_str(item.trim_end());
    }
    list
}

fn noun(key: &str) -> Option<(&'static str, &'static str)> {
    match key {
        "providers" => Some(("provider", "providers")),
        "allow" => Some(("rule", "rules")),
        "additionalDirectories" => Some(("directory", "directories")),
        "hooks" => Some(("event", "events")),
        "mcpServers" => Some(("server", "servers")),
        "env" => Some(("variable", "variables")),
        _ => None,
    }
}
