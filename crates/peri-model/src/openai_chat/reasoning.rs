//! Reasoning on this wire, which the protocol does not know and servers have each added in their own way.
//!
//! It comes as `reasoning_content` (DeepSeek, llama.cpp, SGLang, Kimi, GLM), as `reasoning` (vLLM, Ollama, Groq, LM Studio),
//! or as `reasoning_details` beside it (OpenRouter). The first and the last go back as they came: their servers want them
//! beside the calls that they led to. `reasoning` does not: some of its servers refuse it, none needs it.

use peri_acp_types::Thought;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::seal;

/// The protocol's name in a seal.
const PROTOCOL: &str = "openai-chat";

/// What goes back beside an answer's text.
#[derive(Serialize, Default)]
pub(super) struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
}

impl Reasoning {
    /// Takes a thought of the answer, if it is one that goes back.
    pub(super) fn take_back(&mut self, thought: &Thought) {
        match thought.signature.as_deref().and_then(|signature| seal::open(PROTOCOL, signature)) {
            Some(Value::String(field)) if field == "reasoning_content" => {
                self.reasoning_content.get_or_insert_default().push_str(&thought.text);
            }
            Some(Value::Array(details)) => self.reasoning_details.extend(details),
            _ => {}
        }
    }
}

/// What of an answer's reasoning has to be kept, as it comes.
#[derive(Debug, Default)]
pub(super) struct ReasoningSeen {
    as_content: bool,
    details: Vec<Map<String, Value>>,
}

impl ReasoningSeen {
    /// Some came as `reasoning_content`.
    pub(super) fn content(&mut self) {
        self.as_content = true;
    }

    /// Takes details, which come in pieces: those of one index and type belong together. Gives their readable text.
    pub(super) fn details(&mut self, pieces: Vec<Value>) -> String {
        let mut text = String::new();
        for piece in pieces {
            let Value::Object(piece) = piece else { continue };
            let readable = piece.get("text").or_else(|| piece.get("summary")).and_then(Value::as_str);
            text.push_str(readable.unwrap_or_default());
            match self.details.last_mut().filter(|last| continues(last, &piece)) {
                Some(last) => append(last, piece),
                None => self.details.push(piece),
            }
        }
        text
    }

    /// The seal for the answer's thought; None where it does not go back.
    pub(super) fn seal(self) -> Option<String> {
        if !self.details.is_empty() {
            let details = self.details.into_iter().map(Value::Object).collect();
            return Some(seal::seal(PROTOCOL, Value::Array(details)));
        }
        self.as_content.then(|| seal::seal(PROTOCOL, json!("reasoning_content")))
    }
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == piece.get(name);
    let other_id =
        matches!((last.get("id"), piece.get("id")), (Some(Value::String(a)), Some(Value::String(b))) if a != b);
    same("type") && same("index") && !other_id
}

/// Texts grow, all else is as it came last.
fn append(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (name.as_str(), last.get_mut(&name), value) {
            (_, _, Value::Null) => {}
            ("text" | "summary" | "data", Some(Value::String(known)), Value::String(more)) => known.push_str(&more),
            (_, _, value) => {
                last.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_details_are_put_together_and_go_back_whole() {
        let mut seen = ReasoningSeen::default();
        let first = json!({"type": "reasoning.text", "text": "a", "index": 0, "signature": null});
        let second = json!({"type": "reasoning.text", "text": "b", "index": 0, "signature": "s"});
        let hidden = json!({"type": "reasoning.encrypted", "data": "x", "index": 1});
        assert_eq!(seen.details(vec![first, json!(7)]), "a");
        assert_eq!(seen.details(vec![second, hidden.clone()]), "b");
        let signature = seen.seal();
        let mut back = Reasoning::default();
        back.take_back(&Thought { text: "ab".into(), signature, redacted: false });
        let whole = json!({"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"});
        assert_eq!(json!(back), json!({"reasoning_details": [whole, hidden]}));
    }

    #[test]
    fn foreign_thoughts_do_not_go_back() {
        let mut back = Reasoning::default();
        for signature in [None, Some("c2ln".to_owned()), Some(seal::seal("openai-responses", json!([])))] {
            back.take_back(&Thought { text: "t".into(), signature, redacted: false });
        }
        assert_eq!(json!(back), json!({}));
    }
}
