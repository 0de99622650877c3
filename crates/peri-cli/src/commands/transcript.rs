//! A stored thread as text and as JSON.
//!
//! Must not: leave anything of the thread out of the JSON form; the text form shortens results and says so.

use peri_acp_types::{
    AssistantPart, Content, Message, MessageBody, StopReason, StoredTurnEnd, Thread, ToolArguments, ToolResult, TurnId,
    Usage,
};
use serde_json::{Value, json};

/// Lines of a result that the text form shows.
const SHOWN_LINES: usize = 6;

/// The thread for people, under a heading.
pub fn text(thread: &Thread, heading: &str) -> String {
    let mut text = heading.to_owned();
    let mut turn: Option<TurnId> = None;
    for message in &thread.messages {
        if turn.is_some_and(|turn| turn != message.turn_id) {
            text.push_str(&turn_end(thread, turn));
        }
        turn = Some(message.turn_id);
        text.push_str(&message_text(&message.body));
    }
    text.push_str(&turn_end(thread, turn));
    text
}

/// What is worth saying of a turn's end; an answer speaks for itself.
fn turn_end(thread: &Thread, turn: Option<TurnId>) -> String {
    let Some(turn) = turn else { return String::new() };
    match thread.turns.iter().find(|ended| ended.turn_id == turn).map(|ended| &ended.end) {
        Some(StoredTurnEnd::Completed(_)) => String::new(),
        Some(StoredTurnEnd::Interrupted(reason)) => format!("\n(interrupted: {reason})\n"),
        None => "\n(this turn has no end: it is running, or Peri was killed; its effects are unknown)\n".to_owned(),
    }
}

fn message_text(body: &MessageBody) -> String {
    match body {
        MessageBody::User(content) => format!("\n> {}\n", contents(content).replace('\n', "\n> ")),
        MessageBody::Assistant(message) => message.parts.iter().map(part_text).collect(),
        MessageBody::ToolResults(results) => results.iter().map(result_text).collect(),
        MessageBody::Notice(text) => format!("\n({text})\n"),
        MessageBody::Summary(summary) => format!("\n(from here on the model sees this summary)\n{}\n", summary.text),
    }
}

fn part_text(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(text) => format!("\n{}\n", text.trim_end()),
        AssistantPart::Thought(_) => String::new(),
        AssistantPart::ToolCall(call) => format!("\n→ {} {}\n", call.name, arguments(&call.arguments)),
    }
}

fn result_text(result: &ToolResult) -> String {
    let output = result.output.joined_text();
    let mut lines = output.lines();
    let mut text = String::new();
    if result.output.is_error {
        text.push_str("  (failed)\n");
    }
    for line in lines.by_ref().take(SHOWN_LINES) {
        text.push_str(&format!("  {line}\n"));
    }
    match lines.count() {
        0 => {}
        more => text.push_str(&format!("  … {more} lines more\n")),
    }
    text
}

fn contents(content: &[Content]) -> String {
    let shown: Vec<&str> = content
        .iter()
        .map(|content| match content {
            Content::Text(text) => text.as_str(),
            Content::Image(_) => "[image]",
            Content::Resource { uri, .. } => uri.as_str(),
        })
        .collect();
    shown.join("\n")
}

/// The messages, in the forms that stream-json uses where it has one.
pub fn json(thread: &Thread) -> Value {
    thread.messages.iter().map(message_json).collect()
}

/// How each turn ended, in order. The last one is open while it runs, and where Peri was killed.
pub fn turns_json(thread: &Thread) -> Value {
    let ended = thread.turns.iter().map(|turn| match &turn.end {
        StoredTurnEnd::Completed(reason) => {
            json!({"turn_id": turn.turn_id.to_string(), "end": "completed", "stop_reason": stop_word(*reason)})
        }
        StoredTurnEnd::Interrupted(reason) => {
            json!({"turn_id": turn.turn_id.to_string(), "end": "interrupted", "reason": reason})
        }
    });
    let open = thread.open_turn.map(|turn_id| json!({"turn_id": turn_id.to_string(), "end": null}));
    ended.chain(open).collect()
}

fn stop_word(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndTurn => "end_turn",
        StopReason::MaxTokens => "max_tokens",
        StopReason::MaxTurnRequests => "max_turns",
        StopReason::Refusal => "refusal",
    }
}

fn message_json(message: &Message) -> Value {
    let mut shown = match &message.body {
        MessageBody::User(content) => {
            json!({"role": "user", "content": content.iter().map(content_json).collect::<Vec<_>>()})
        }
        MessageBody::Assistant(assistant) => json!({
            "role": "assistant",
            "model": assistant.model,
            "content": assistant.parts.iter().map(part_json).collect::<Vec<_>>(),
            "usage": usage_json(&assistant.usage),
        }),
        MessageBody::ToolResults(results) => {
            json!({"role": "user", "content": results.iter().map(result_json).collect::<Vec<_>>()})
        }
        MessageBody::Summary(summary) => {
            json!({"role": "summary", "content": [{"type": "text", "text": summary.text}]})
        }
        MessageBody::Notice(text) => json!({"role": "notice", "content": [{"type": "text", "text": text}]}),
    };
    shown["id"] = json!(message.id.to_string());
    shown["turn_id"] = json!(message.turn_id.to_string());
    shown
}

fn part_json(part: &AssistantPart) -> Value {
    match part {
        AssistantPart::Text(text) => json!({"type": "text", "text": text}),
        AssistantPart::Thought(thought) => json!({"type": "thinking", "thinking": thought.text}),
        AssistantPart::ToolCall(call) => {
            json!({"type": "tool_use", "id": call.id.to_string(), "name": call.name, "input": arguments(&call.arguments)})
        }
    }
}

fn result_json(result: &ToolResult) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": result.call_id.to_string(),
        "content": result.output.content.iter().map(content_json).collect::<Vec<_>>(),
        "is_error": result.output.is_error,
    })
}

fn content_json(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image(image) => json!({"type": "image", "source": {
            "type": "base64", "media_type": image.mime_type, "data": image.base64,
        }}),
        Content::Resource { uri, mime_type, text } => {
            json!({"type": "resource", "uri": uri, "mime_type": mime_type, "text": text})
        }
    }
}

/// As an object, or as the text that was none.
pub fn arguments(arguments: &ToolArguments) -> Value {
    match arguments {
        ToolArguments::Object(map) => Value::Object(map.clone()),
        ToolArguments::Invalid { raw, .. } => Value::String(raw.clone()),
    }
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    })
}
