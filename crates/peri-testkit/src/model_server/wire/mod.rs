//! The words of each protocol for an [`Answer`](super::Answer) and for an error.

pub(super) mod anthropic;
pub(super) mod openai_chat;
pub(super) mod openai_responses;

use peri_model::ModelProtocol;
use serde_json::{Value, json};

use super::answer::Call;

/// Where each protocol is asked.
pub(super) fn protocol_of(path: &str) -> Option<ModelProtocol> {
    match path {
        "/v1/messages" => Some(ModelProtocol::AnthropicMessages),
        "/v1/chat/completions" => Some(ModelProtocol::OpenAiChat),
        "/v1/responses" => Some(ModelProtocol::OpenAiResponses),
        _ => None,
    }
}

/// The protocol's error document.
pub(super) fn error_document(protocol: ModelProtocol, kind: &str, message: &str) -> Value {
    match protocol {
        ModelProtocol::AnthropicMessages => json!({"type": "error", "error": {"type": kind, "message": message}}),
        ModelProtocol::OpenAiChat | ModelProtocol::OpenAiResponses => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
    }
}

/// The deltas of several calls in turns: the first of each, then the second of each. With the place of their call.
fn in_turns(calls: &[Call]) -> Vec<(usize, &str)> {
    let most = calls.iter().map(|call| call.deltas.len()).max().unwrap_or(0);
    let turn = |turn: usize| {
        calls.iter().enumerate().filter_map(move |(place, call)| Some((place, call.deltas.get(turn)?.as_str())))
    };
    (0..most).flat_map(turn).collect()
}

/// An event whose `type` is its name.
fn named_event(name: &str, members: &Value) -> Vec<u8> {
    let mut data = json!({"type": name});
    if let (Some(data), Value::Object(members)) = (data.as_object_mut(), members) {
        data.extend(members.clone());
    }
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}
