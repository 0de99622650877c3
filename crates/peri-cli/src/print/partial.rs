//! Pieces of an answer as the events of Anthropic's stream, for `--include-partial-messages`.
//!
//! Owns: block numbers, and which block is open. Invariants: every block that starts also stops; a message that fails is
//! never stopped: the next `message_start` replaces it. A tool's input is not streamed: it stands in the `assistant` line.

use serde_json::{Value, json};

use super::happening::Happening;
use super::stream_json::usage;

/// An answer under way.
#[derive(Default)]
pub struct PartialMessages {
    model: String,
    next_index: u32,
    open: Option<OpenBlock>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thought,
}

struct OpenBlock {
    kind: BlockKind,
    index: u32,
}

impl PartialMessages {
    pub fn set_model(&mut self, model: &str) {
        self.model = model.to_owned();
    }

    /// The events of something that happened; none for what is no piece of an answer.
    pub fn events(&mut self, happening: &Happening) -> Vec<Value> {
        match happening {
            Happening::AttemptStarted => self.start_message(),
            Happening::Text(text) => self.delta(BlockKind::Text, json!({"type": "text_delta", "text": text})),
            Happening::Thought(text) => {
                self.delta(BlockKind::Thought, json!({"type": "thinking_delta", "thinking": text}))
            }
            Happening::ToolAnnounced { id, name } => self.tool_block(id, name),
            Happening::Answered { usage: figures } => {
                let mut events = self.stop_open();
                let delta = json!({"stop_reason": null, "stop_sequence": null});
                events.push(json!({"type": "message_delta", "delta": delta, "usage": usage(figures)}));
                events.push(json!({"type": "message_stop"}));
                events
            }
            _ => Vec::new(),
        }
    }

    fn start_message(&mut self) -> Vec<Value> {
        self.next_index = 0;
        self.open = None;
        let message = json!({"type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null});
        vec![json!({"type": "message_start", "message": message})]
    }

    fn delta(&mut self, kind: BlockKind, delta: Value) -> Vec<Value> {
        let mut events = Vec::new();
        let index = match &self.open {
            Some(open) if open.kind == kind => open.index,
            _ => {
                events.extend(self.stop_open());
                let empty = match kind {
                    BlockKind::Text => json!({"type": "text", "text": ""}),
                    BlockKind::Thought => json!({"type": "thinking", "thinking": "", "signature": ""}),
                };
                let index = self.take_index();
                self.open = Some(OpenBlock { kind, index });
                events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
                index
            }
        };
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events
    }

    fn tool_block(&mut self, id: &str, name: &str) -> Vec<Value> {
        let mut events = self.stop_open();
        let index = self.take_index();
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_stop", "index": index}));
        events
    }

    fn stop_open(&mut self) -> Vec<Value> {
        let open = self.open.take();
        open.map(|open| json!({"type": "content_block_stop", "index": open.index})).into_iter().collect()
    }

    fn take_index(&mut self) -> u32 {
        let index = self.next_index;
        self.next_index += 1;
        index
    }
}

#[cfg(test)]
mod tests {
    use peri_acp::extension::Usage;

    use super::*;

    #[test]
    fn blocks_start_and_stop_in_their_order() {
        let mut partial = PartialMessages::default();
        let happened = [
            Happening::AttemptStarted,
            Happening::Thought("hm".into()),
            Happening::Text("a".into()),
            Happening::Text("b".into()),
            Happening::ToolAnnounced { id: "t1".into(), name: "Read".into() },
            Happening::Answered { usage: Usage::default() },
        ];
        let events: Vec<String> = happened
            .iter()
            .flat_map(|happening| partial.events(happening))
            .map(|event| match event.get("index") {
                Some(index) => format!("{} {index}", event["type"].as_str().unwrap_or_default()),
                None => event["type"].as_str().unwrap_or_default().to_owned(),
            })
            .collect();
        assert_eq!(
            events,
            [
                "message_start",
                "content_block_start 0",
                "content_block_delta 0",
                "content_block_stop 0",
                "content_block_start 1",
                "content_block_delta 1",
                "content_block_delta 1",
                "content_block_stop 1",
                "content_block_start 2",
                "content_block_stop 2",
                "message_delta",
                "message_stop",
            ]
        );
    }
}
