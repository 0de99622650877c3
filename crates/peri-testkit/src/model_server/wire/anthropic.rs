//! An answer as an Anthropic endpoint sends it.

use serde_json::{Value, json};

use super::{in_turns, named_event};
use crate::model_server::answer::{Answer, Ending, Piece};

pub(in crate::model_server) fn events(answer: &Answer) -> Vec<Vec<u8>> {
    let usage = json!({
        "input_tokens": answer.usage.input_tokens,
        "cache_creation_input_tokens": answer.usage.cache_write_tokens,
        "cache_read_input_tokens": answer.usage.cache_read_tokens,
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
    let mut events = Events { events: Vec::new(), next_index: 0 };
    events.add("message_start", &json!({"message": message}));
    for piece in &answer.pieces {
        events.piece(piece);
    }
    if answer.ending != Ending::Nothing {
        let usage = json!({"output_tokens": answer.usage.output_tokens});
        let delta = json!({"stop_reason": answer.reason(), "stop_sequence": null});
        events.add("message_delta", &json!({"delta": delta, "usage": usage}));
    }
    if answer.ending == Ending::Whole {
        events.add("message_stop", &json!({}));
    }
    events.events
}

struct Events {
    events: Vec<Vec<u8>>,
    next_index: usize,
}

impl Events {
    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(deltas) => {
                let deltas = deltas.iter().map(|text| json!({"type": "text_delta", "text": text}));
                self.block(&json!({"type": "text", "text": ""}), deltas.collect());
            }
            Piece::Thought { text, seal } => {
                let deltas = vec![
                    json!({"type": "thinking_delta", "thinking": text}),
                    json!({"type": "signature_delta", "signature": seal}),
                ];
                self.block(&json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
            }
            Piece::Calls(calls) => {
                let first = self.next_index;
                for call in calls {
                    self.start(&json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}));
                }
                for (place, json) in in_turns(calls) {
                    self.delta(first + place, &json!({"type": "input_json_delta", "partial_json": json}));
                }
                for index in first..self.next_index {
                    self.stop(index);
                }
            }
            Piece::Error { kind, message } => self.add("error", &json!({"error": {"type": kind, "message": message}})),
            Piece::Ping => self.add("ping", &json!({})),
            Piece::Event { name, members } => self.add(name, members),
            Piece::Raw(bytes) => self.events.push(bytes.clone()),
        }
    }

    fn block(&mut self, start: &Value, deltas: Vec<Value>) {
        let index = self.start(start);
        for delta in deltas {
            self.delta(index, &delta);
        }
        self.stop(index);
    }

    fn start(&mut self, block: &Value) -> usize {
        let index = self.next_index;
        self.next_index += 1;
        self.add("content_block_start", &json!({"index": index, "content_block": block}));
        index
    }

    fn delta(&mut self, index: usize, delta: &Value) {
        self.add("content_block_delta", &json!({"index": index, "delta": delta}));
    }

    fn stop(&mut self, index: usize) {
        self.add("content_block_stop", &json!({"index": index}));
    }

    fn add(&mut self, name: &str, members: &Value) {
        self.events.push(named_event(name, members));
    }
}
