//! The rules of the Chat Completions protocol, as its stricter servers hold them.

use std::collections::HashSet;

use serde_json::Value;

use super::{list, sorted};

/// The longest id of a call.
const MAX_ID_BYTES: usize = 40;

pub(super) fn check_body(body: &Value) -> Result<(), String> {
    let messages = list(body, "messages");
    let system = messages.iter().filter(|message| message["role"] == "system").count();
    if system > 1 || (system == 1 && messages[0]["role"] != "system") {
        return Err("a system message that is not the one at the beginning".to_owned());
    }
    if messages.get(system).is_none_or(|first| first["role"] != "user") {
        return Err("the first message is not the user's".to_owned());
    }
    let mut ids = HashSet::new();
    // Calls that wait for their results.
    let mut open: Vec<&str> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        check_message(message, &mut open, &mut ids).map_err(|fault| format!("message {place}: {fault}"))?;
    }
    if open.is_empty() { Ok(()) } else { Err(format!("calls {open:?} are not answered")) }
}

fn check_message<'a>(message: &'a Value, open: &mut Vec<&'a str>, ids: &mut HashSet<&'a str>) -> Result<(), String> {
    let role = message["role"].as_str().unwrap_or_default();
    if role == "tool" {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let place =
            open.iter().position(|open| *open == id).ok_or(format!("a result for {id:?}, which is not open"))?;
        open.remove(place);
        return said(&message["content"]);
    }
    if !open.is_empty() {
        return Err(format!("calls {open:?} are not answered"));
    }
    let calls = list(message, "tool_calls");
    match role {
        "assistant" if !calls.is_empty() => {
            for call in calls {
                *open = check_call(call, ids, std::mem::take(open))?;
            }
            // Beside calls there need be no text.
            if message["content"].is_null() { Ok(()) } else { said(&message["content"]) }
        }
        "system" | "user" | "assistant" if message.get("tool_calls").is_none() => said(&message["content"]),
        _ => Err(format!("its role is {role:?}, with calls {calls:?}")),
    }
}

fn check_call<'a>(call: &'a Value, ids: &mut HashSet<&'a str>, mut open: Vec<&'a str>) -> Result<Vec<&'a str>, String> {
    let id = call["id"].as_str().unwrap_or_default();
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        return Err(format!("call id {id:?}"));
    }
    if !ids.insert(id) {
        return Err(format!("call id {id:?} was used before"));
    }
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|arguments| arguments.is_object());
    if call["type"] != "function" || call["function"]["name"].as_str().is_none_or(str::is_empty) || !is_object {
        return Err(format!("no call: {call}"));
    }
    open.push(id);
    Ok(sorted(&open))
}

/// A text, or a list of parts, that says something.
fn said(content: &Value) -> Result<(), String> {
    let speaks = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
    let part_speaks = |part: &Value| speaks(&part["text"]) || speaks(&part["image_url"]["url"]);
    match content.as_array() {
        Some(parts) if !parts.is_empty() && parts.iter().all(part_speaks) => Ok(()),
        None if speaks(content) => Ok(()),
        _ => Err(format!("it says nothing: {content}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(role: &str, content: &str) -> Value {
        json!({"role": role, "content": content})
    }

    fn calls(ids: &[&str]) -> Value {
        let function = json!({"name": "Read", "arguments": "{}"});
        let calls: Vec<Value> =
            ids.iter().map(|id| json!({"id": id, "type": "function", "function": function})).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "x"})
    }

    #[track_caller]
    fn check(messages: &[Value], fault: Option<&str>) {
        let body = json!({"messages": messages});
        crate::wire_invariants::check(peri_model::ModelProtocol::OpenAiChat, &[body], fault);
    }

    #[test]
    fn what_the_protocol_takes_and_refuses() {
        let (system, user) = (message("system", "s"), message("user", "a"));
        check(&[system.clone(), user.clone(), calls(&["1", "2"]), result("2"), result("1"), user.clone()], None);
        check(&[json!({"role": "user", "content": [{"type": "text", "text": "a"}]})], None);
        check(&[], Some("not the user's"));
        check(&[system.clone(), message("assistant", "a")], Some("not the user's"));
        check(&[user.clone(), system], Some("not the one at the beginning"));
        check(&[message("user", " ")], Some("it says nothing"));
        check(&[json!({"role": "user", "content": []})], Some("it says nothing"));
        check(&[user.clone(), calls(&["1"])], Some("[\"1\"] are not answered"));
        check(&[user.clone(), calls(&["1", "2"]), result("1"), user.clone()], Some("[\"2\"] are not answered"));
        check(&[user.clone(), calls(&["1"]), result("1"), result("1")], Some("which is not open"));
        check(&[user.clone(), calls(&["1"]), result("1"), calls(&["1"]), result("1")], Some("was used before"));
        check(&[user.clone(), calls(&[&"x".repeat(41)])], Some("call id"));
        let mut odd = calls(&["1"]);
        odd["tool_calls"][0]["function"]["arguments"] = json!("{");
        check(&[user.clone(), odd], Some("no call"));
        check(&[user, json!({"role": "assistant", "content": "a", "tool_calls": []})], Some("its role is"));
    }
}
