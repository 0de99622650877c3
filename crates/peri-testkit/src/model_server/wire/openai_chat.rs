//! An answer as an endpoint of the Chat Completions protocol sends it. A thought is `reasoning_content`; its seal is lost.

use serde_json::{Value, json};

use super::{error_document, in_turns, named_event};
use crate::model_server::answer::{Answer, Ending, Piece};
use peri_model::ModelProtocol;

pub(in crate::model_server) fn events(answer: &Answer) -> Vec<Vec<u8>> {
    let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
    let mut next_index = 0;
    for piece in &answer.pieces {
        match piece {
            Piece::Text(deltas) => events.extend(deltas.iter().map(|text| delta(&json!({"content": text})))),
            Piece::Thought { text, .. } => events.push(delta(&json!({"reasoning_content": text}))),
            Piece::Calls(calls) => {
                for (index, call) in (next_index..).zip(calls) {
                    let function = json!({"name": call.name, "arguments": ""});
                    events.push(call_delta(
                        &json!({"index": index, "id": call.id, "type": "function", "function": function}),
                    ));
                }
                let pieces = in_turns(calls).into_iter();
                events.extend(pieces.map(|(place, json)| {
                    call_delta(&json!({"index": next_index + place, "function": {"arguments": json}}))
                }));
                next_index += calls.len();
            }
            Piece::Error { kind, message } => {
                events.push(data(&error_document(ModelProtocol::OpenAiChat, kind, message)));
            }
            Piece::Ping => events.push(b": ping\n\n".to_vec()),
            Piece::Event { name, members } => events.push(named_event(name, members)),
            Piece::Raw(bytes) => events.push(bytes.clone()),
        }
    }
    if answer.ending != Ending::Nothing {
        let choice =
            json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason(answer.reason())});
        events.push(chunk(&json!([choice]), &Value::Null));
        events.push(chunk(&json!([]), &usage(answer)));
    }
    if answer.ending == Ending::Whole {
        events.push(b"data: [DONE]\n\n".to_vec());
    }
    events
}

fn finish_reason(reason: &str) -> &str {
    match reason {
        "end_turn" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = &answer.usage;
    let prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
    })
}

fn call_delta(call: &Value) -> Vec<u8> {
    delta(&json!({"tool_calls": [call]}))
}

fn delta(delta: &Value) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
    chunk(&json!([choice]), &Value::Null)
}

fn chunk(choices: &Value, usage: &Value) -> Vec<u8> {
    data(&json!({
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": choices,
        "usage": usage,
    }))
}

fn data(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}
