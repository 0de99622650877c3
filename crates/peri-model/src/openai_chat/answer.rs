//! An answer as this wire sends it: chunks, or one whole completion.
//!
//! Owns the names of chunks' members. Unknown ones are no error, and a member that is of no use is not looked at.
//! Invariant: reasoning is part 0 of an answer, text part 1, calls come after them, in whatever order their pieces arrive.

use std::borrow::Cow;
use std::collections::VecDeque;

use peri_acp_types::{ModelFailureKind, ModelStop, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::{Calls, WireCall, WireFunction};
use super::reasoning::ReasoningSeen;
use crate::failure::ProviderError;
use crate::fold::AnswerFold;
use crate::members::{TextPieces, lenient, parse, unreadable};
use crate::openai::error;
use crate::sse::SseEvent;
use crate::wire::{AnswerReader, ReadError, Reading};
use crate::{ModelAnswer, ModelStreamEvent};

const REASONING: u64 = 0;
const TEXT: u64 = 1;

/// Reads one completion.
pub(crate) struct ChunkReader {
    fold: AnswerFold,
    text: TextPieces,
    calls: Calls,
    reasoning: ReasoningSeen,
    figures: Figures,
    /// A choice has come: an end marker alone is no answer.
    begun: bool,
    refused: bool,
    stop: Option<ModelStop>,
    ended: bool,
}

/// A chunk, or a whole completion.
#[derive(Deserialize)]
struct WireChunk<'a> {
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireChoice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    /// In a chunk.
    #[serde(borrow)]
    delta: Option<WireDelta<'a>>,
    /// In a whole completion.
    #[serde(borrow)]
    message: Option<WireDelta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireDelta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

/// A part of a content that is a list.
#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot.
    cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    /// OpenRouter.
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct GroqMembers<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

impl ChunkReader {
    pub(super) fn new(fold: AnswerFold) -> ChunkReader {
        ChunkReader {
            fold,
            text: TextPieces::default(),
            calls: Calls::default(),
            reasoning: ReasoningSeen::default(),
            figures: Figures::default(),
            begun: false,
            refused: false,
            stop: None,
            ended: false,
        }
    }

    fn chunk(&mut self, chunk: &WireChunk<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        self.usage(chunk.usage);
        self.usage(lenient::<GroqMembers<'_>>(chunk.x_groq).and_then(|members| members.usage));
        let Some(choices) = chunk.choices.filter(|choices| choices.get() != "null") else { return Ok(()) };
        let choices: Vec<WireChoice<'_>> = parse(choices.get(), "choices")?;
        // One answer was asked for.
        for choice in choices.iter().filter(|choice| lenient::<u64>(choice.index).unwrap_or(0) == 0) {
            self.choice(choice, out)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: &WireChoice<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        self.begun = true;
        if let Some(told) = lenient::<Value>(choice.error).filter(|error| !error.is_null()) {
            return Err(ReadError::Provider(error::read(&told)));
        }
        if let Some(delta) = choice.delta.as_ref().or(choice.message.as_ref()) {
            self.delta(delta, out)?;
        }
        self.usage(choice.usage);
        match lenient::<Cow<'_, str>>(choice.finish_reason) {
            Some(reason) if !reason.is_empty() => self.finish_reason(&reason),
            _ => Ok(()),
        }
    }

    fn delta(&mut self, delta: &WireDelta<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        self.reasoning(delta, out)?;
        if let Some(content) = delta.content {
            self.content(content, out)?;
        }
        self.refusal(delta.refusal, out)?;
        if let Some(calls) = delta.tool_calls.filter(|calls| calls.get() != "null") {
            for call in parse::<Vec<WireCall<'_>>>(calls.get(), "tool_calls")? {
                self.calls.piece(&call, &mut self.fold, out)?;
            }
        }
        if let Some(function) = delta.function_call.filter(|function| function.get() != "null") {
            let function: WireFunction<'_> = parse(function.get(), "function_call")?;
            self.calls.legacy_piece(&function, &mut self.fold, out)?;
        }
        Ok(())
    }

    /// The same words may come under several names in one chunk: the first that has any counts.
    fn reasoning(&mut self, delta: &WireDelta<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        let details = lenient(delta.reasoning_details).map(|details| self.reasoning.details(details));
        let is_text = |raw: &&RawValue| raw.get().starts_with('"') && raw.get() != "\"\"";
        let content = delta.reasoning_content.filter(is_text);
        if content.is_some() {
            self.reasoning.content();
        }
        let text = match content.or(delta.reasoning.filter(is_text)) {
            Some(text) => self.text.piece(REASONING, Some(text))?,
            None => details,
        };
        self.thought(text.unwrap_or_default(), out)
    }

    fn thought(&mut self, text: String, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        if !text.is_empty() {
            out.extend(self.fold.thought(REASONING, text)?);
        }
        Ok(())
    }

    fn content(&mut self, content: &RawValue, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        if !content.get().starts_with('[') {
            let text = self.text.piece(TEXT, Some(content))?;
            return self.say(text, out);
        }
        for part in parse::<Vec<ContentPart<'_>>>(content.get(), "content")? {
            match part.kind.as_ref() {
                "" | "text" | "output_text" => {
                    let text = self.text.piece(TEXT, part.text)?;
                    self.say(text, out)?;
                }
                "refusal" => self.refusal(part.refusal, out)?,
                "thinking" => self.thinking(part.thinking, out)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Reasoning as a part of the content, which is a list itself (Mistral) or a text.
    fn thinking(&mut self, thinking: Option<&RawValue>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        let parts = lenient::<Vec<ContentPart<'_>>>(thinking);
        let texts: Vec<Option<&RawValue>> =
            parts.map_or_else(|| vec![thinking], |parts| parts.iter().map(|part| part.text).collect());
        for text in texts {
            let text = self.text.piece(REASONING, text)?;
            self.thought(text.unwrap_or_default(), out)?;
        }
        Ok(())
    }

    fn refusal(&mut self, refusal: Option<&RawValue>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        let Some(words) = self.text.piece(TEXT, refusal)? else { return Ok(()) };
        self.refused |= !words.is_empty();
        self.say(Some(words), out)
    }

    fn say(&mut self, text: Option<String>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.extend(self.fold.text(TEXT, text)?);
        }
        Ok(())
    }

    fn finish_reason(&mut self, reason: &str) -> Result<(), ReadError> {
        self.stop = Some(match reason {
            "stop" | "tool_calls" | "function_call" | "eos" | "end_turn" => ModelStop::EndTurn,
            "length" | "max_tokens" | "model_length" => ModelStop::MaxTokens,
            "content_filter" | "refusal" => ModelStop::Refusal,
            // The server gave up: what came is not what the model would have said.
            "error" | "insufficient_system_resource" | "abort" => {
                let message = format!("the answer was broken off: {reason}");
                let kind = ModelFailureKind::Server;
                return Err(ReadError::Provider(ProviderError { kind, message }));
            }
            _ => ModelStop::Other,
        });
        Ok(())
    }

    /// Figures that cannot be read are figures that were not sent. They are cumulative, and come in several places.
    fn usage(&mut self, usage: Option<&RawValue>) {
        let Some(usage) = lenient::<WireUsage>(usage) else { return };
        let details = usage.prompt_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens.or(usage.prompt_cache_hit_tokens).or(usage.cached_tokens);
        let figures = &mut self.figures;
        figures.prompt = figures.prompt.max(usage.prompt_tokens.unwrap_or(0));
        figures.completion = figures.completion.max(usage.completion_tokens.unwrap_or(0));
        figures.cached = figures.cached.max(cached.unwrap_or(0));
        figures.written = figures.written.max(details.cache_write_tokens.unwrap_or(0));
    }
}

/// The highest figures so far. What was read from a cache, or written to it, is part of the prompt here.
#[derive(Debug, Default)]
struct Figures {
    prompt: u64,
    completion: u64,
    cached: u64,
    written: u64,
}

impl From<Figures> for Usage {
    fn from(figures: Figures) -> Usage {
        Usage {
            input_tokens: figures.prompt.saturating_sub(figures.cached).saturating_sub(figures.written),
            output_tokens: figures.completion,
            cache_read_tokens: figures.cached,
            cache_write_tokens: figures.written,
        }
    }
}

impl AnswerReader for ChunkReader {
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<Reading, ReadError> {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.ended = true;
            return Ok(Reading::Done);
        }
        let chunk: WireChunk<'_> = match serde_json::from_slice(data) {
            Ok(chunk) => chunk,
            Err(_) if data.is_empty() || is_foreign(event.name) => return Ok(Reading::GoesOn),
            Err(error) => return Err(unreadable("a chunk", &error)),
        };
        if let Some(told) = told(&chunk, event) {
            return Err(ReadError::Provider(told));
        }
        self.chunk(&chunk, out)?;
        Ok(Reading::GoesOn)
    }

    fn document(&mut self, body: &[u8], out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        if let Some(told) = error::in_document(body) {
            return Err(ReadError::Provider(told));
        }
        let chunk = serde_json::from_slice(body).map_err(|error| unreadable("a completion", &error))?;
        self.chunk(&chunk, out)?;
        // A completion that comes whole needs no reason to be one.
        self.ended = self.begun;
        Ok(())
    }

    fn finish(mut self) -> Option<ModelAnswer> {
        if !self.begun || (self.stop.is_none() && !self.ended) {
            return None;
        }
        if let Some(seal) = self.reasoning.seal() {
            // Without room for it the thought stays here.
            let _ = self.fold.seal_thought(REASONING, &seal);
        }
        self.fold.usage(self.figures.into());
        // Servers say `stop` beside calls, and `tool_calls` without any: the parts tell.
        let calls = !self.calls.is_empty();
        let stop = match self.stop {
            _ if self.refused => Some(ModelStop::Refusal),
            Some(ModelStop::EndTurn) if calls => Some(ModelStop::ToolUse),
            stop => stop,
        };
        Some(self.fold.finish(stop))
    }
}

/// True for events under a name that is not this protocol's: signs of life that gateways put between ours.
fn is_foreign(name: &[u8]) -> bool {
    !matches!(name, b"" | b"message" | b"error" | b"data")
}

/// The error that the event is, if it is one. A chunk that has choices and no error is not looked at twice.
fn told(chunk: &WireChunk<'_>, event: SseEvent<'_>) -> Option<ProviderError> {
    let named = event.name == b"error";
    if chunk.choices.is_some() && chunk.error.is_none() && !named {
        return None;
    }
    let value: Value = serde_json::from_slice(event.data).ok()?;
    error::in_value(&value).or_else(|| named.then(|| error::read(&value)))
}
