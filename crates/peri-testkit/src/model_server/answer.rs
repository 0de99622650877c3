//! An answer of the model, as the events that an Anthropic endpoint sends.

use std::collections::BTreeMap;

use peri_acp_types::Usage;
use serde_json::{Value, json};

/// An answer under construction. Each event is one write, unless the reply says otherwise.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Everything between the start of the message and its end.
    events: Vec<Vec<u8>>,
    next_index: u64,
    calls: usize,
    usage: Usage,
    stop_reason: Option<String>,
    ending: Ending,
}

/// How the stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Whole,
    /// A finish reason, but no end marker.
    NoMessageStop,
    /// Neither.
    Nothing,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer::new()
    }
}

impl Answer {
    /// An empty answer that ends in order.
    pub fn new() -> Answer {
        Answer {
            events: Vec::new(),
            next_index: 0,
            calls: 0,
            usage: Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() },
            stop_reason: None,
            ending: Ending::Whole,
        }
    }

    /// A text in one piece.
    #[must_use]
    pub fn text(self, text: &str) -> Answer {
        self.text_deltas([text])
    }

    /// A text in those pieces.
    #[must_use]
    pub fn text_deltas<'a>(self, deltas: impl IntoIterator<Item = &'a str>) -> Answer {
        let deltas = deltas.into_iter().map(|text| json!({"type": "text_delta", "text": text}));
        self.block(&json!({"type": "text", "text": ""}), deltas)
    }

    /// A thought and its seal.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Answer {
        let deltas = [
            json!({"type": "thinking_delta", "thinking": text}),
            json!({"type": "signature_delta", "signature": signature}),
        ];
        self.block(&json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
    }

    /// A tool call whose arguments come in one piece.
    #[must_use]
    pub fn tool_use(self, id: &str, name: &str, input: &Value) -> Answer {
        let json = input.to_string();
        self.tool_use_deltas(id, name, [json.as_str()])
    }

    /// A tool call whose arguments come in those pieces, which need not be JSON.
    #[must_use]
    pub fn tool_use_deltas<'a>(mut self, id: &str, name: &str, deltas: impl IntoIterator<Item = &'a str>) -> Answer {
        self.calls += 1;
        let deltas = deltas.into_iter().map(|json| json!({"type": "input_json_delta", "partial_json": json}));
        self.block(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas)
    }

    /// Tool calls (id, name, pieces of the arguments) whose pieces come in turns.
    #[must_use]
    pub fn interleaved_tool_uses(mut self, calls: &[(&str, &str, &[&str])]) -> Answer {
        let mut pieces: BTreeMap<usize, Vec<(u64, &str)>> = BTreeMap::new();
        let first = self.next_index;
        for (index, (id, name, deltas)) in (first..).zip(calls) {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            self = self.event("content_block_start", json!({"index": index, "content_block": block}));
            for (turn, delta) in deltas.iter().enumerate() {
                pieces.entry(turn).or_default().push((index, delta));
            }
        }
        for (index, json) in pieces.into_values().flatten() {
            let delta = json!({"type": "input_json_delta", "partial_json": json});
            self = self.event("content_block_delta", json!({"index": index, "delta": delta}));
        }
        self.next_index += calls.len() as u64;
        self.calls += calls.len();
        (first..self.next_index).fold(self, |answer, index| answer.event("content_block_stop", json!({"index": index})))
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Answer {
        self.usage = usage;
        self
    }

    /// Instead of `tool_use` where there are calls and `end_turn` where there are none.
    #[must_use]
    pub fn stop_reason(mut self, reason: &str) -> Answer {
        self.stop_reason = Some(reason.to_owned());
        self
    }

    /// Ends with the finish reason; the end marker does not come.
    #[must_use]
    pub fn without_message_stop(mut self) -> Answer {
        self.ending = Ending::NoMessageStop;
        self
    }

    /// Ends without finish reason and end marker.
    #[must_use]
    pub fn without_end(mut self) -> Answer {
        self.ending = Ending::Nothing;
        self
    }

    /// An error event, after which nothing comes.
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> Answer {
        self.event("error", json!({"error": {"type": kind, "message": message}})).without_end()
    }

    #[must_use]
    pub fn ping(self) -> Answer {
        self.event("ping", json!({}))
    }

    #[must_use]
    pub fn comment(self, text: &str) -> Answer {
        self.raw(format!(": {text}\n\n").as_bytes())
    }

    /// Any event.
    #[must_use]
    pub fn event(self, name: &str, members: Value) -> Answer {
        let event = event(name, members);
        self.raw(&event)
    }

    /// Bytes as they are.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Answer {
        self.events.push(bytes.to_vec());
        self
    }

    fn block(mut self, start: &Value, deltas: impl IntoIterator<Item = Value>) -> Answer {
        let index = self.next_index;
        self.next_index += 1;
        self = self.event("content_block_start", json!({"index": index, "content_block": start}));
        for delta in deltas {
            self = self.event("content_block_delta", json!({"index": index, "delta": delta}));
        }
        self.event("content_block_stop", json!({"index": index}))
    }

    /// The events, from the start of the message to its end.
    pub fn into_events(self) -> Vec<Vec<u8>> {
        let usage = json!({
            "input_tokens": self.usage.input_tokens,
            "cache_creation_input_tokens": self.usage.cache_write_tokens,
            "cache_read_input_tokens": self.usage.cache_read_tokens,
            "output_tokens": 1,
        });
        let message = json!({
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        });
        let mut events = vec![event("message_start", json!({"message": message}))];
        events.extend(self.events);
        if self.ending != Ending::Nothing {
            let implied = if self.calls > 0 { "tool_use" } else { "end_turn" };
            let reason = self.stop_reason.as_deref().unwrap_or(implied);
            let usage = json!({"output_tokens": self.usage.output_tokens});
            let delta = json!({"stop_reason": reason, "stop_sequence": null});
            events.push(event("message_delta", json!({"delta": delta, "usage": usage})));
        }
        if self.ending == Ending::Whole {
            events.push(event("message_stop", json!({})));
        }
        events
    }
}

/// An event whose `type` is its name.
fn event(name: &str, members: Value) -> Vec<u8> {
    let mut data = json!({"type": name});
    if let (Some(data), Value::Object(members)) = (data.as_object_mut(), members) {
        data.extend(members);
    }
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}
