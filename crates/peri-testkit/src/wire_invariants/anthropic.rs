//! The rules of the Messages protocol.

use std::collections::HashSet;

use serde_json::Value;

use super::{MARKER, list, sorted};

/// The most cache markers that the protocol takes.
const MAX_MARKERS: usize = 4;

pub(super) fn check_body(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages = messages.ok_or("there are no messages")?;
    let markers = count_markers(body);
    if markers > MAX_MARKERS {
        return Err(format!("{markers} cache markers, where {MAX_MARKERS} are taken"));
    }
    if messages[0]["role"] != "user" {
        return Err("the first message is not the user's".to_owned());
    }
    let mut ids = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        let next = messages.get(place + 1);
        check_message(message, place.checked_sub(1).map(|before| &messages[before]), next, &mut ids)
            .map_err(|fault| format!("message {place}: {fault}"))?;
    }
    Ok(())
}

fn check_message(
    message: &Value,
    before: Option<&Value>,
    next: Option<&Value>,
    ids: &mut HashSet<String>,
) -> Result<(), String> {
    let role = message["role"].as_str().unwrap_or_default();
    if role != "user" && role != "assistant" {
        return Err(format!("its role is {role:?}"));
    }
    if blocks(message).is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
        return Err("it is empty".to_owned());
    }
    check_texts(message)?;
    let calls = block_ids(message, "tool_use", "id");
    let results = block_ids(message, "tool_result", "tool_use_id");
    if role == "assistant" {
        if !results.is_empty() {
            return Err(format!("results {results:?} in an answer"));
        }
        if let Some(twice) = calls.iter().find(|id| !ids.insert((**id).to_owned())) {
            return Err(format!("call id {twice:?} was used before"));
        }
        let answered = next.map(|next| block_ids(next, "tool_result", "tool_use_id")).unwrap_or_default();
        return if sorted(&calls) == sorted(&answered) {
            Ok(())
        } else {
            Err(format!("calls {calls:?} are answered by {answered:?}"))
        };
    }
    if !calls.is_empty() {
        return Err(format!("calls {calls:?} of a user"));
    }
    if !results.is_empty() && before.is_none_or(|before| before["role"] != "assistant") {
        return Err(format!("results {results:?} that follow no answer"));
    }
    let first_other = blocks(message).iter().position(|block| block["type"] != "tool_result");
    if first_other.is_some_and(|place| place < results.len()) {
        return Err("results come after something else".to_owned());
    }
    Ok(())
}

fn check_texts(message: &Value) -> Result<(), String> {
    let nested = blocks(message).iter().flat_map(blocks);
    let empty =
        |block: &Value| block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty());
    if blocks(message).iter().chain(nested).any(empty) {
        return Err("a text of nothing but white space".to_owned());
    }
    Ok(())
}

fn blocks(message: &Value) -> &[Value] {
    list(message, "content")
}

fn block_ids<'a>(message: &'a Value, kind: &str, id: &str) -> Vec<&'a str> {
    blocks(message)
        .iter()
        .filter(|block| block["type"] == kind)
        .map(|block| block[id].as_str().unwrap_or_default())
        .collect()
}

fn count_markers(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| usize::from(name == MARKER) + count_markers(value)).sum()
        }
        Value::Array(items) => items.iter().map(count_markers).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}]})
    }

    fn calls(ids: &[&str]) -> Value {
        let blocks: Vec<Value> =
            ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})).collect();
        json!({"role": "assistant", "content": blocks})
    }

    fn results(ids: &[&str]) -> Value {
        let content = json!([{"type": "text", "text": "x"}]);
        let blocks: Vec<Value> =
            ids.iter().map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": content})).collect();
        json!({"role": "user", "content": blocks})
    }

    fn body(messages: &[Value]) -> Value {
        json!({"system": [{"type": "text", "text": "s"}], "tools": [], "messages": messages})
    }

    #[track_caller]
    fn check(bodies: &[Value], fault: Option<&str>) {
        crate::wire_invariants::check(peri_model::ModelProtocol::AnthropicMessages, bodies, fault);
    }

    #[test]
    fn a_conversation_in_order_passes_with_its_markers() {
        let mut marked = user("a");
        marked["content"][0][MARKER] = json!({"type": "ephemeral"});
        let longer = body(&[user("a"), calls(&["1", "2"]), results(&["2", "1"]), user("b")]);
        check(&[body(&[marked.clone()]), body(&[marked]), longer], None);
        check(&[body(&[json!({"role": "user", "content": "a"})])], None);
    }

    #[test]
    fn calls_and_results_that_do_not_match_are_found() {
        check(&[body(&[user("a"), calls(&["1"])])], Some("calls [\"1\"] are answered by []"));
        check(&[body(&[user("a"), calls(&["1"]), user("b")])], Some("answered by []"));
        check(&[body(&[user("a"), calls(&["1", "2"]), results(&["1"])])], Some("answered by [\"1\"]"));
        check(&[body(&[user("a"), calls(&["1"]), results(&["1", "1"])])], Some("answered by [\"1\", \"1\"]"));
        check(&[body(&[user("a"), results(&["1"])])], Some("that follow no answer"));
        let again = [user("a"), calls(&["1"]), results(&["1"]), calls(&["1"]), results(&["1"])];
        check(&[body(&again)], Some("call id \"1\" was used before"));
        let mut late = results(&["1"]);
        late["content"].as_array_mut().expect("blocks").insert(0, json!({"type": "text", "text": "first"}));
        check(&[body(&[user("a"), calls(&["1"]), late])], Some("results come after something else"));
    }

    #[test]
    fn messages_that_the_protocol_refuses_are_found() {
        check(&[json!({})], Some("there are no messages"));
        check(&[body(&[json!({"role": "assistant", "content": "a"})])], Some("not the user's"));
        check(&[body(&[json!({"role": "user", "content": []})])], Some("it is empty"));
        check(&[body(&[user(" ")])], Some("nothing but white space"));
        check(&[body(&[user("a"), json!({"role": "system", "content": "a"})])], Some("its role is \"system\""));
        let marked: Vec<Value> = (0..5)
            .map(|_| json!({"role": "user", "content": [{"type": "text", "text": "a", MARKER: {"type": "ephemeral"}}]}))
            .collect();
        check(&[body(&marked)], Some("5 cache markers"));
    }

    #[test]
    fn a_prefix_that_moves_is_found_and_shown() {
        let first = body(&[user("a"), user("b")]);
        check(&[first.clone(), body(&[user("a"), user("c"), user("d")])], Some("message 1 changed"));
        check(&[first.clone(), body(&[user("a"), user("c")])], Some("+      \"text\": \"c\""));
        check(&[first.clone(), body(&[user("a")])], Some("1 messages, where there were 2"));
        let mut other_system = first.clone();
        other_system["system"][0]["text"] = json!("t");
        check(&[first.clone(), other_system], Some("`system` changed"));
        let mut other_tools = first.clone();
        other_tools["tools"] = json!([{"name": "Read"}]);
        check(&[first.clone(), other_tools], Some("`tools` changed"));
        let reordered = json!({"content": [{"text": "a", "type": "text"}], "role": "user"});
        check(&[body(&[user("a")]), body(&[reordered])], Some("message 0 changed"));
    }
}
