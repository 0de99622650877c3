//! What an untrusted workspace may say: `permissions.deny` and `permissions.ask`, nothing else.
//!
//! Invariant: what remains of a document can refuse calls or have them asked about, and cannot make anything pass, go
//! anywhere or start; every key that was taken out is named once. This works on the raw object, before any key is read,
//! so that a key that is added to the settings one day is covered from its first day.

use serde_json::{Map, Value};

use crate::path::Path;
use crate::reader::Sink;
use crate::{Diagnostic, Severity, WorkspaceTrust};

/// How to lift the restriction.
pub(crate) const TRUST_HINT: &str = "run `peri trust` or pass --trust-workspace";

/// Takes out all that could loosen.
pub(crate) fn tighten(map: &mut Map<String, Value>, trust: &WorkspaceTrust, sink: &Sink) {
    map.retain(|key, value| match key.as_str() {
        "$schema" => true,
        "permissions" => {
            if let Value::Object(permissions) = value {
                permissions.retain(|key, value| {
                    let tightens = matches!(key.as_str(), "deny" | "ask");
                    if !tightens {
                        name_ignored(&Path::ROOT.key("permissions").key(key), key, value, trust, sink);
                    }
                    tightens
                });
            }
            true
        }
        _ => {
            name_ignored(&Path::ROOT.key(key), key, value, trust, sink);
            false
        }
    });
}

fn name_ignored(path: &Path<'_>, key: &str, value: &Value, trust: &WorkspaceTrust, sink: &Sink) {
    let count = match value {
        Value::Array(items) => items.len(),
        Value::Object(entries) => entries.len(),
        _ => 1,
    };
    if count == 0 {
        return; // An empty list or object sets nothing.
    }
    let content = match noun(key) {
        Some((one, _)) if count == 1 => format!("(1 {one}) "),
        Some((_, many)) => format!("({count} {many}) "),
        None => String::new(),
    };
    let message = format!("{content}ignored: {}", trust.refusal());
    let finding = Diagnostic::whole(Severity::Warning, sink.origin(), message).with_hint(TRUST_HINT);
    sink.push(finding.with_key(path.shown().unwrap_or_default()));
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
