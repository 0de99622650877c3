//! The stream-json format: the lines that programs around Claude Code read.
//!
//! Owns: the vocabulary, as JSON values. Must not: write, or look at ACP. Invariant: `assistant` and `user` lines are what
//! the transcript holds; pieces that may become void are only in `stream_event` lines.

use std::sync::Arc;

use peri_acp::extension::{SessionMeta, StepContent, StepMessage, StepPart, StepResult, StepStop, Usage};
use peri_acp_types::ports::IdSource;
use serde_json::{Map, Value, json};

use super::happening::Happening;
use super::partial::PartialMessages;

/// Makes the lines of a run.
pub struct StreamJson {
    ids: Arc<dyn IdSource>,
    session_id: String,
    partial: Option<PartialMessages>,
}

/// Whether pieces of an answer are lines too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pieces {
    LeftOut,
    Included,
}

impl StreamJson {
    pub fn new(ids: Arc<dyn IdSource>, pieces: Pieces) -> StreamJson {
        let partial = match pieces {
            Pieces::LeftOut => None,
            Pieces::Included => Some(PartialMessages::default()),
        };
        StreamJson { ids, session_id: String::new(), partial }
    }

    /// The first line.
    pub fn begin(&mut self, session: &SessionMeta) -> Value {
        self.session_id = session.session_id.clone();
        if let Some(partial) = &mut self.partial {
            partial.set_model(&session.model);
        }
        self.line(
            "system",
            json!({
                "subtype": "init",
                "cwd": session.cwd,
                "tools": session.tools,
                "mcp_servers": mcp_servers(&session.tools),
                "model": session.model,
                "permissionMode": permission_mode(&session.permission_mode),
                "slash_commands": [],
                "peri_version": env!("CARGO_PKG_VERSION"),
            }),
        )
    }

    /// The lines of something that happened, in their order.
    pub fn happened(&mut self, happening: &Happening) -> Vec<Value> {
        let mut lines: Vec<Value> = Vec::new();
        if let Some(partial) = &mut self.partial {
            let events = partial.events(happening);
            lines.extend(events.into_iter().map(|event| json!({"event": event})));
            lines = lines.into_iter().map(|body| self.child_line("stream_event", body)).collect();
        }
        match happening {
            Happening::StepCommitted { message_id, message, results } => {
                lines.push(self.child_line("assistant", json!({"message": assistant(message_id, message)})));
                if !results.is_empty() {
                    let content: Vec<Value> = results.iter().map(tool_result).collect();
                    lines.push(self.child_line("user", json!({"message": {"role": "user", "content": content}})));
                }
            }
            Happening::AttemptFailed { failure, retry_in_ms: Some(delay) } => lines.push(self.line(
                "system",
                json!({
                    "subtype": "api_retry",
                    "retry_delay_ms": delay,
                    "error_status": failure.status,
                    "error": failure.message,
                }),
            )),
            Happening::Notice { kind, text } => {
                lines.push(self.line("system", json!({"subtype": "notice", "kind": kind, "text": text})));
            }
            _ => {}
        }
        lines
    }

    /// A line of the session itself.
    fn line(&self, kind: &str, body: Value) -> Value {
        let mut line = Map::from_iter([("type".to_owned(), json!(kind))]);
        if let Value::Object(members) = body {
            line.extend(members);
        }
        line.insert("session_id".to_owned(), json!(self.session_id));
        line.insert("uuid".to_owned(), json!(self.ids.uuid().to_string()));
        Value::Object(line)
    }

    /// A line that could also come from a subagent, and says that it does not.
    fn child_line(&self, kind: &str, body: Value) -> Value {
        let mut line = self.line(kind, body);
        line["parent_tool_use_id"] = Value::Null;
        line
    }
}

/// The answer to a control request.
pub fn control_response(request_id: &str, outcome: Result<(), String>) -> Value {
    let response = match outcome {
        Ok(()) => json!({"subtype": "success", "request_id": request_id, "response": {}}),
        Err(reason) => json!({"subtype": "error", "request_id": request_id, "error": reason}),
    };
    json!({"type": "control_response", "response": response})
}

/// The servers whose tools the session has, in their order. One that did not start has none, and is told of by a notice.
fn mcp_servers(tools: &[String]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for tool in tools {
        let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        match server {
            Some((server, _)) if !names.contains(&server) => names.push(server),
            Some(_) | None => {}
        }
    }
    names.into_iter().map(|name| json!({"name": name, "status": "connected"})).collect()
}

/// The word that these programs know.
fn permission_mode(word: &str) -> &str {
    match word {
        "accept-edits" => "acceptEdits",
        "bypass" => "bypassPermissions",
        other => other,
    }
}

fn assistant(message_id: &str, message: &StepMessage) -> Value {
    let content: Vec<Value> = message.parts.iter().map(part).collect();
    json!({
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": content,
        "stop_reason": stop_reason(message.stop),
        "stop_sequence": null,
        "usage": usage(&message.usage),
    })
}

fn part(part: &StepPart) -> Value {
    match part {
        StepPart::Text { text } => json!({"type": "text", "text": text}),
        StepPart::Thought { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or_default()})
        }
        StepPart::ToolCall { id, name, arguments } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": arguments})
        }
    }
}

fn tool_result(result: &StepResult) -> Value {
    let content = match result.content.as_slice() {
        [StepContent::Text { text }] => json!(text),
        blocks => blocks.iter().map(block).collect(),
    };
    json!({"type": "tool_result", "tool_use_id": result.call_id, "content": content, "is_error": result.is_error})
}

fn block(content: &StepContent) -> Value {
    match content {
        StepContent::Text { text } => json!({"type": "text", "text": text}),
        StepContent::Image { mime_type, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}})
        }
        StepContent::Resource { uri, text, .. } => {
            json!({"type": "text", "text": text.as_deref().unwrap_or(uri)})
        }
    }
}

/// Null where the reason is none of Anthropic's words.
pub fn stop_reason(stop: StepStop) -> Option<&'static str> {
    match stop {
        StepStop::EndTurn => Some("end_turn"),
        StepStop::ToolUse => Some("tool_use"),
        StepStop::MaxTokens => Some("max_tokens"),
        StepStop::Refusal => Some("refusal"),
        StepStop::Other => None,
    }
}

/// Figures under Anthropic's names.
pub fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    })
}
