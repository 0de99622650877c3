//! The recorded streams of `fixtures/sse`, each in several framings and deliveries.

use std::path::{Path, PathBuf};

use peri_acp_types::{AssistantPart, ModelFailureKind, ModelStop, ToolArguments, Usage};
use peri_model::{ModelAnswer, ModelProtocol, ModelStreamEvent};
use serde_json::{Value, json};

use crate::endpoint::events_of;
use crate::transport::Answer;

#[tokio::test]
async fn every_anthropic_stream_gives_its_events_however_it_arrives() {
    check_folder(ModelProtocol::AnthropicMessages, "anthropic").await;
}

#[tokio::test]
async fn every_chat_stream_gives_its_events_however_it_arrives() {
    check_folder(ModelProtocol::OpenAiChat, "openai-chat").await;
}

#[tokio::test]
async fn every_responses_stream_gives_its_events_however_it_arrives() {
    check_folder(ModelProtocol::OpenAiResponses, "openai-responses").await;
}

async fn check_folder(protocol: ModelProtocol, folder: &str) {
    let streams = fixture_streams(folder);
    assert!(streams.len() > 20, "the fixtures are there");
    for path in streams {
        let stream = std::fs::read_to_string(&path).expect("a fixture");
        let expect = std::fs::read(path.with_extension("json")).expect("its expectation");
        let expect: Value = serde_json::from_slice(&expect).expect("JSON");
        for (framing, stream) in [
            ("LF", stream.clone()),
            ("CRLF", stream.replace('\n', "\r\n")),
            ("CR", stream.replace('\n', "\r")),
            ("BOM", format!("\u{feff}{stream}")),
        ] {
            for chunk in [1, 7, usize::MAX] {
                let seen = in_words(&events_of(protocol, Answer::events(&stream, chunk)).await);
                let name = path.file_stem().unwrap_or_default().display();
                assert_eq!(seen, expect, "{name}, {framing}, chunks of {chunk}:\n{seen:#}");
            }
        }
    }
}

fn fixture_streams(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sse").join(folder);
    let entries = std::fs::read_dir(folder).expect("the fixtures' folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sse"));
    paths.sort();
    paths
}

/// The form of the fixtures' expectations.
fn in_words(events: &[ModelStreamEvent]) -> Value {
    let mut deltas = Vec::new();
    let mut words = json!({});
    for event in events {
        match event {
            ModelStreamEvent::TextDelta(text) => deltas.push(json!({"text": text})),
            ModelStreamEvent::ThoughtDelta(text) => deltas.push(json!({"thought": text})),
            ModelStreamEvent::ToolCallStarted { id, name } => deltas.push(json!({"call": id.0, "name": name})),
            ModelStreamEvent::Finished(answer) => words["answer"] = answer_in_words(answer),
            ModelStreamEvent::Failed(failure) => {
                words["failure"] = json!({"kind": kind_in_words(failure.kind), "message": failure.message});
            }
        }
    }
    words["deltas"] = Value::Array(deltas);
    words
}

fn answer_in_words(answer: &ModelAnswer) -> Value {
    let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = answer.usage;
    let stop = match answer.stop {
        ModelStop::EndTurn => "end_turn",
        ModelStop::ToolUse => "tool_use",
        ModelStop::MaxTokens => "max_tokens",
        ModelStop::Refusal => "refusal",
        ModelStop::Other => "other",
    };
    json!({
        "parts": answer.parts.iter().map(part_in_words).collect::<Vec<_>>(),
        "stop": stop,
        "usage": {
            "input": input_tokens,
            "output": output_tokens,
            "cache_read": cache_read_tokens,
            "cache_write": cache_write_tokens,
        },
    })
}

fn part_in_words(part: &AssistantPart) -> Value {
    match part {
        AssistantPart::Text(text) => json!({"text": text}),
        AssistantPart::Thought(thought) => {
            let mut words = json!({"thought": thought.text, "signature": thought.signature});
            if thought.redacted {
                words["redacted"] = json!(true);
            }
            words
        }
        AssistantPart::ToolCall(call) => {
            let mut words = json!({"call": call.id.0, "name": call.name});
            match &call.arguments {
                ToolArguments::Object(map) => words["arguments"] = json!(map),
                ToolArguments::Invalid { raw, .. } => words["invalid"] = json!(raw),
            }
            words
        }
    }
}

fn kind_in_words(kind: ModelFailureKind) -> &'static str {
    match kind {
        ModelFailureKind::Overloaded => "overloaded",
        ModelFailureKind::Server => "server",
        ModelFailureKind::Cut => "cut",
        ModelFailureKind::ContextTooLong => "context_too_long",
        ModelFailureKind::Protocol => "protocol",
        ModelFailureKind::RateLimited => "rate_limited",
        ModelFailureKind::BadRequest => "bad_request",
        _ => "another",
    }
}
