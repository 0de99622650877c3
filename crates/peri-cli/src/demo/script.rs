//! What the scripted model says.
//!
//! Owns: the answers, and their wire form (Anthropic's Messages stream). Must not: look at anything but the number of
//! tool results so far: that alone says how far the work is.

use serde_json::{Value, json};

use super::project::{BUG, MEND, PROGRAM, TEST_COMMAND};

/// The model's name, as it is configured and as it signs.
pub const MODEL: &str = "scripted";
/// The prompt that the script is written for.
pub const PROMPT: &str = "The tests fail. Find out why, mend it, and check that they pass.";

/// One answer of the model: some text, then a call or the end.
struct Answer {
    text: &'static str,
    call: Option<(&'static str, Value)>,
}

/// The answer after so many tool results, for a project at that root.
fn answer(tool_results: usize, root: &str) -> Answer {
    let program = format!("{root}/{PROGRAM}");
    match tool_results {
        0 => Answer {
            text: "I will run the tests first.",
            call: Some(("Bash", json!({"command": TEST_COMMAND, "description": "Run the tests"}))),
        },
        1 => Answer {
            text: "1900 is wrong: it is divisible by 4 and still no leap year. Where is that decided?",
            call: Some(("Grep", json!({"pattern": "year %", "path": root, "output_mode": "content"}))),
        },
        2 => Answer {
            text: "In one place. I will read the whole file.",
            call: Some(("Read", json!({"file_path": program}))),
        },
        3 => Answer {
            text: "Centuries are missing from the condition.",
            call: Some(("Edit", json!({"file_path": program, "old_string": BUG, "new_string": MEND}))),
        },
        4 => Answer {
            text: "Now the tests again.",
            call: Some(("Bash", json!({"command": TEST_COMMAND, "description": "Run the tests"}))),
        },
        _ => Answer {
            text: "The tests pass now. `leap.sh` took every year divisible by 4 for a leap year; centuries are leap years \
                   only when 400 divides them, and the condition now says so.",
            call: None,
        },
    }
}

/// The number of tool results in a Messages request.
pub fn count_tool_results(request: &Value) -> usize {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    messages
        .iter()
        .filter_map(|message| message.get("content").and_then(Value::as_array))
        .flatten()
        .filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_result"))
        .count()
}

/// The events of the answer after so many tool results, in the form of a server-sent event stream.
pub fn event_stream(tool_results: usize, root: &str) -> String {
    let answer = answer(tool_results, root);
    let mut stream = String::new();
    let mut push = |event: Value| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        stream.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    };
    push(json!({"type": "message_start", "message": {
        "id": format!("msg_{tool_results}"), "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 900 + 120 * tool_results, "output_tokens": 1},
    }}));
    push(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
    for piece in answer.text.split_inclusive(' ') {
        push(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}));
    }
    push(json!({"type": "content_block_stop", "index": 0}));
    let stop_reason = if answer.call.is_some() { "tool_use" } else { "end_turn" };
    if let Some((name, input)) = answer.call {
        let id = format!("toolu_{tool_results}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        push(json!({"type": "content_block_start", "index": 1, "content_block": block}));
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        push(json!({"type": "content_block_delta", "index": 1, "delta": delta}));
        push(json!({"type": "content_block_stop", "index": 1}));
    }
    push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
        "usage": {"output_tokens": 40}}));
    push(json!({"type": "message_stop"}));
    stream
}
