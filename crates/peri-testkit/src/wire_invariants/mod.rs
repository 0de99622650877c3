//! What must hold for every request on the wire, checked on captured bodies: the rules of its protocol, and that each
//! request of a session begins with the bytes of the one before it.
//!
//! The twin of [`crate::invariants`], for tests that only see the wire. Cache markers are no part of a prefix.

mod anthropic;
mod openai_chat;
mod openai_responses;

use peri_model::ModelProtocol;
use serde_json::{Map, Value};

use crate::diff::differences;

/// How Anthropic's protocol marks what its cache should keep.
const MARKER: &str = "cache_control";

/// Checks the bodies of one session's requests in Anthropic's protocol, in the order in which they were sent.
///
/// # Panics
/// Where the protocol's rules or the stable prefix are broken, with the place.
#[track_caller]
pub fn check_bodies(bodies: &[Value]) {
    check_bodies_of(ModelProtocol::AnthropicMessages, bodies);
}

/// As [`check_bodies`], in that protocol.
///
/// # Panics
/// Where the protocol's rules or the stable prefix are broken, with the place.
#[track_caller]
pub fn check_bodies_of(protocol: ModelProtocol, bodies: &[Value]) {
    if let Err(fault) = find_fault_of(protocol, bodies) {
        panic!("{fault}");
    }
}

/// The first broken rule of Anthropic's protocol, in words.
///
/// # Errors
/// The words.
pub fn find_fault(bodies: &[Value]) -> Result<(), String> {
    find_fault_of(ModelProtocol::AnthropicMessages, bodies)
}

/// As [`find_fault`], in that protocol.
///
/// # Errors
/// The words.
pub fn find_fault_of(protocol: ModelProtocol, bodies: &[Value]) -> Result<(), String> {
    let check = match protocol {
        ModelProtocol::AnthropicMessages => anthropic::check_body,
        ModelProtocol::OpenAiChat => openai_chat::check_body,
        ModelProtocol::OpenAiResponses => openai_responses::check_body,
    };
    for (number, body) in bodies.iter().enumerate() {
        check(body).map_err(|fault| format!("request {number}: {fault}\n{body:#}"))?;
    }
    for (number, pair) in (1..).zip(bodies.windows(2)) {
        if let [earlier, later] = pair {
            let (earlier, later) = (unmarked(earlier), unmarked(later));
            check_prefix(protocol, &earlier, &later).map_err(|fault| format!("request {number}: {fault}"))?;
        }
    }
    Ok(())
}

fn check_prefix(protocol: ModelProtocol, earlier: &Value, later: &Value) -> Result<(), String> {
    let (parts, conversation) = match protocol {
        ModelProtocol::AnthropicMessages => (["system", "tools"], "messages"),
        ModelProtocol::OpenAiChat => (["model", "tools"], "messages"),
        ModelProtocol::OpenAiResponses => (["instructions", "tools"], "input"),
    };
    for part in parts {
        if bytes(&earlier[part]) != bytes(&later[part]) {
            return Err(format!("`{part}` changed:\n{}", differences(&earlier[part], &later[part])));
        }
    }
    let (before, after) = (list(earlier, conversation), list(later, conversation));
    if after.len() < before.len() {
        return Err(format!("{} messages, where there were {}", after.len(), before.len()));
    }
    match before.iter().zip(after).position(|(before, after)| bytes(before) != bytes(after)) {
        Some(place) => Err(format!("message {place} changed:\n{}", differences(&before[place], &after[place]))),
        None => Ok(()),
    }
}

/// What a cache of the provider compares: in bytes, the order of members counts.
fn bytes(value: &Value) -> String {
    value.to_string()
}

/// A member that is a list; empty where it is none.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn sorted<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != MARKER);
            Value::Object(kept.map(|(name, value)| (name.clone(), unmarked(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(unmarked).collect()),
        other => other.clone(),
    }
}

/// For the tests of each protocol: the fault that is expected, or none.
#[cfg(test)]
#[track_caller]
fn check(protocol: ModelProtocol, bodies: &[Value], fault: Option<&str>) {
    match (find_fault_of(protocol, bodies), fault) {
        (Ok(()), None) => {}
        (Err(found), Some(fault)) if found.contains(fault) => {}
        (found, fault) => panic!("expected {fault:?}, found {found:?}"),
    }
}
