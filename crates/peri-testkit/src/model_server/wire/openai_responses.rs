//! An answer as an endpoint of the Responses protocol sends it. A thought is a summary; its seal the encrypted content.

use serde_json::{Value, json};

use super::{in_turns, named_event};
use crate::model_server::answer::{Answer, Call, Ending, Piece};

pub(in crate::model_server) fn events(answer: &Answer) -> Vec<Vec<u8>> {
    let mut events = Events { events: Vec::new(), output: Vec::new(), sequence: 0 };
    let response = json!({"id": "resp_scripted", "object": "response", "status": "in_progress", "output": []});
    events.add("response.created", &json!({"response": response}));
    for piece in &answer.pieces {
        events.piece(piece);
    }
    if answer.ending != Ending::Nothing {
        events.end(answer);
    }
    events.events
}

struct Events {
    events: Vec<Vec<u8>>,
    /// The items so far, whole.
    output: Vec<Value>,
    sequence: u64,
}

impl Events {
    fn piece(&mut self, piece: &Piece) {
        let index = self.output.len();
        match piece {
            Piece::Text(deltas) => self.text(index, deltas),
            Piece::Thought { text, seal } => self.thought(index, text, seal),
            Piece::Calls(calls) => self.calls(index, calls),
            Piece::Error { kind, message } => {
                self.add("error", &json!({"code": kind, "message": message, "param": null}));
            }
            Piece::Ping => self.events.push(b": ping\n\n".to_vec()),
            Piece::Event { name, members } => self.add(name, members),
            Piece::Raw(bytes) => self.events.push(bytes.clone()),
        }
    }

    fn text(&mut self, index: usize, deltas: &[String]) {
        let id = format!("msg_{index}");
        let item = |status: &str, content: Value| json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content});
        let place = json!({"output_index": index, "item_id": id, "content_index": 0});
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        self.begin(index, &item("in_progress", json!([])));
        self.add("response.content_part.added", &with(&place, json!({"part": part("")})));
        for delta in deltas {
            self.add("response.output_text.delta", &with(&place, json!({"delta": delta})));
        }
        let text = deltas.concat();
        self.add("response.output_text.done", &with(&place, json!({"text": text})));
        self.add("response.content_part.done", &with(&place, json!({"part": part(&text)})));
        self.done(index, item("completed", json!([part(&text)])));
    }

    fn thought(&mut self, index: usize, text: &str, seal: &str) {
        let id = format!("rs_{index}");
        let part = json!({"type": "summary_text", "text": text});
        let place = json!({"output_index": index, "item_id": id, "summary_index": 0});
        self.begin(index, &json!({"id": id, "type": "reasoning", "summary": []}));
        let empty = json!({"type": "summary_text", "text": ""});
        self.add("response.reasoning_summary_part.added", &with(&place, json!({"part": empty})));
        self.add("response.reasoning_summary_text.delta", &with(&place, json!({"delta": text})));
        self.add("response.reasoning_summary_text.done", &with(&place, json!({"text": text})));
        let item = json!({"id": id, "type": "reasoning", "summary": [part], "encrypted_content": seal});
        self.done(index, item);
    }

    fn calls(&mut self, first: usize, calls: &[Call]) {
        let item = |index: usize, call: &Call, arguments: &str| {
            let id = format!("fc_{index}");
            json!({"id": id, "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
        };
        for (index, call) in (first..).zip(calls) {
            self.begin(index, &item(index, call, ""));
        }
        let place = |index: usize| json!({"output_index": index, "item_id": format!("fc_{index}")});
        for (call, json) in in_turns(calls) {
            let members = with(&place(first + call), json!({"delta": json}));
            self.add("response.function_call_arguments.delta", &members);
        }
        for (index, call) in (first..).zip(calls) {
            let arguments = call.deltas.concat();
            let members = with(&place(index), json!({"arguments": arguments}));
            self.add("response.function_call_arguments.done", &members);
            self.done(index, item(index, call, &arguments));
        }
    }

    fn end(&mut self, answer: &Answer) {
        let reason = match answer.reason() {
            "max_tokens" => Some("max_output_tokens"),
            "refusal" => Some("content_filter"),
            _ => None,
        };
        let input = answer.usage.input_tokens + answer.usage.cache_read_tokens + answer.usage.cache_write_tokens;
        let response = json!({
            "id": "resp_scripted",
            "object": "response",
            "status": if reason.is_some() { "incomplete" } else { "completed" },
            "incomplete_details": reason.map(|reason| json!({"reason": reason})),
            "error": null,
            "output": self.output,
            "usage": {
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": answer.usage.cache_read_tokens},
                "output_tokens": answer.usage.output_tokens,
                "total_tokens": input + answer.usage.output_tokens,
            },
        });
        let name = if reason.is_some() { "response.incomplete" } else { "response.completed" };
        self.add(name, &json!({"response": response}));
    }

    fn begin(&mut self, index: usize, item: &Value) {
        self.add("response.output_item.added", &json!({"output_index": index, "item": item}));
    }

    fn done(&mut self, index: usize, item: Value) {
        self.add("response.output_item.done", &json!({"output_index": index, "item": item}));
        self.output.push(item);
    }

    fn add(&mut self, name: &str, members: &Value) {
        let numbered = with(members, json!({"sequence_number": self.sequence}));
        self.sequence += 1;
        self.events.push(named_event(name, &numbered));
    }
}

/// The members of both.
fn with(members: &Value, more: Value) -> Value {
    let mut all = members.clone();
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
    all
}
