//! The rules of the Responses protocol, with nothing kept at the provider.

use std::collections::HashSet;

use serde_json::Value;

use super::list;

/// The longest id of a call.
const MAX_ID_BYTES: usize = 64;

pub(super) fn check_body(body: &Value) -> Result<(), String> {
    if body["store"] != false || body.get("previous_response_id").is_some() {
        return Err("it leans on what the provider keeps".to_owned());
    }
    let items = list(body, "input");
    if items.is_empty() {
        return Err("there are no items".to_owned());
    }
    let (mut ids, mut open) = (HashSet::new(), HashSet::new());
    for (place, item) in items.iter().enumerate() {
        check_item(item, items.get(place + 1), &mut open, &mut ids)
            .map_err(|fault| format!("item {place}: {fault}"))?;
    }
    if open.is_empty() { Ok(()) } else { Err(format!("calls {open:?} are not answered")) }
}

fn check_item<'a>(
    item: &'a Value,
    next: Option<&Value>,
    open: &mut HashSet<&'a str>,
    ids: &mut HashSet<&'a str>,
) -> Result<(), String> {
    let id = item["call_id"].as_str().unwrap_or_default();
    match item["type"].as_str().unwrap_or_default() {
        "message" if item["role"] == "user" && !open.is_empty() => Err(format!("calls {open:?} are not answered")),
        "message" if item["role"] == "user" || item["role"] == "assistant" => said(&item["content"]),
        "reasoning" if item["encrypted_content"].as_str().is_none_or(str::is_empty) || !item["summary"].is_array() => {
            Err(format!("reasoning of no use: {item}"))
        }
        "reasoning" => match next.map(|next| (&next["type"], &next["role"])) {
            Some((kind, role)) if kind == "reasoning" || kind == "function_call" || role == "assistant" => Ok(()),
            _ => Err("reasoning without what it led to".to_owned()),
        },
        "function_call" => {
            let arguments = item["arguments"].as_str().unwrap_or_default();
            let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|arguments| arguments.is_object());
            if id.is_empty() || id.len() > MAX_ID_BYTES || !is_object {
                return Err(format!("no call: {item}"));
            }
            open.insert(id);
            if ids.insert(id) { Ok(()) } else { Err(format!("call id {id:?} was used before")) }
        }
        "function_call_output" if !open.remove(id) => Err(format!("a result for {id:?}, which is not open")),
        "function_call_output" => said(&item["output"]),
        kind => Err(format!("its type is {kind:?}")),
    }
}

/// A text, or a list of parts, that says something.
fn said(content: &Value) -> Result<(), String> {
    let speaks = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
    let part_speaks = |part: &Value| speaks(&part["text"]) || speaks(&part["image_url"]);
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
        json!({"type": "message", "role": role, "content": content})
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": "{}"})
    }

    fn result(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": "x"})
    }

    #[track_caller]
    fn check(items: &[Value], fault: Option<&str>) {
        let body = json!({"store": false, "input": items});
        crate::wire_invariants::check(peri_model::ModelProtocol::OpenAiResponses, &[body], fault);
    }

    #[test]
    fn what_the_protocol_takes_and_refuses() {
        let user = message("user", "a");
        let reasoning = json!({"type": "reasoning", "summary": [], "encrypted_content": "x"});
        check(&[user.clone(), reasoning.clone(), call("1"), call("2"), result("2"), result("1"), user.clone()], None);
        check(&[user.clone(), reasoning.clone(), message("assistant", "a")], None);
        check(&[], Some("no items"));
        check(&[message("user", " ")], Some("it says nothing"));
        check(&[message("system", "a")], Some("its type is \"message\""));
        check(&[user.clone(), reasoning], Some("without what it led to"));
        check(&[user.clone(), json!({"type": "reasoning", "summary": []})], Some("of no use"));
        check(&[user.clone(), call("1")], Some("not answered"));
        check(&[user.clone(), call("1"), user.clone()], Some("not answered"));
        check(&[user.clone(), result("1")], Some("which is not open"));
        check(&[user.clone(), call("1"), result("1"), call("1"), result("1")], Some("was used before"));
        check(&[user, call("")], Some("no call"));
        let kept = json!({"store": true, "input": []});
        crate::wire_invariants::check(peri_model::ModelProtocol::OpenAiResponses, &[kept], Some("provider keeps"));
    }
}
