//! An answer as this wire sends it: a stream of events, or one whole message.
//!
//! Owns the names of events, blocks and deltas. Unknown ones are no error: the protocol grows.
//! Invariant: a member is parsed only once its event is known to be one of ours, so that a newer event cannot break us.

use std::borrow::Cow;
use std::collections::VecDeque;

use peri_acp_types::{ModelStop, Thought, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error;
use crate::fold::AnswerFold;
use crate::members::{TextPieces, member, parse, unreadable};
use crate::sse::SseEvent;
use crate::wire::{AnswerReader, ReadError, Reading};
use crate::{ModelAnswer, ModelStreamEvent};

/// Reads one message.
pub(crate) struct MessageReader {
    fold: AnswerFold,
    text: TextPieces,
    stop: Option<ModelStop>,
    ended: bool,
}

/// Any event, its members unparsed.
#[derive(Deserialize)]
struct WireEvent<'a> {
    /// Empty where there is none.
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A message, whole or as it stands at the start of a stream.
#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    stop_reason: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl MessageReader {
    pub(super) fn new(fold: AnswerFold) -> MessageReader {
        MessageReader { fold, text: TextPieces::default(), stop: None, ended: false }
    }

    fn message_start(&mut self, event: &WireEvent<'_>) -> Result<(), ReadError> {
        let Some(message) = event.message else { return Ok(()) };
        let message: WireMessage<'_> = parse(message.get(), "message_start")?;
        self.usage(message.usage);
        Ok(())
    }

    fn block_start(
        &mut self,
        index: u64,
        block: &RawValue,
        out: &mut VecDeque<ModelStreamEvent>,
    ) -> Result<(), ReadError> {
        let block: WireBlock<'_> = parse(block.get(), "content_block")?;
        self.text.restart(index);
        match block.kind.as_ref() {
            "text" => {
                self.fold.begin_text(index)?;
                out.extend(self.text_delta(index, block.text)?);
            }
            "thinking" => {
                self.fold.begin_thought(index, Thought::default())?;
                out.extend(self.thinking_delta(index, block.thinking)?);
                self.signature_delta(index, block.signature)?;
            }
            "redacted_thinking" => {
                let data: Option<String> = member(block.data, "data")?;
                let thought = Thought { signature: data, redacted: true, ..Thought::default() };
                self.fold.begin_thought(index, thought)?;
            }
            "tool_use" => {
                let id: Option<String> = member(block.id, "id")?;
                let name: String = member(block.name, "name")?.unwrap_or_default();
                // Unparsed: arguments that do not parse are bad arguments, not a bad event.
                let input = block.input.map_or("", RawValue::get).to_owned();
                out.push_back(self.fold.begin_call(index, id.as_deref(), name, input)?);
            }
            _ => self.fold.begin_ignored(index)?,
        }
        Ok(())
    }

    fn block_delta(
        &mut self,
        index: u64,
        delta: &RawValue,
        out: &mut VecDeque<ModelStreamEvent>,
    ) -> Result<(), ReadError> {
        let delta: WireDelta<'_> = parse(delta.get(), "delta")?;
        match delta.kind.as_ref() {
            "text_delta" => out.extend(self.text_delta(index, delta.text)?),
            "thinking_delta" => out.extend(self.thinking_delta(index, delta.thinking)?),
            "signature_delta" => self.signature_delta(index, delta.signature)?,
            "input_json_delta" => {
                let json: Option<String> = member(delta.partial_json, "partial_json")?;
                self.fold.arguments(index, &json.unwrap_or_default())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn text_delta(&mut self, index: u64, text: Option<&RawValue>) -> Result<Option<ModelStreamEvent>, ReadError> {
        let Some(text) = self.text.piece(index, text)? else { return Ok(None) };
        Ok(self.fold.text(index, text)?)
    }

    fn thinking_delta(&mut self, index: u64, text: Option<&RawValue>) -> Result<Option<ModelStreamEvent>, ReadError> {
        let Some(text) = self.text.piece(index, text)? else { return Ok(None) };
        Ok(self.fold.thought(index, text)?)
    }

    fn signature_delta(&mut self, index: u64, signature: Option<&RawValue>) -> Result<(), ReadError> {
        if let Some(signature) = member::<String>(signature, "signature")?.filter(|signature| !signature.is_empty()) {
            self.fold.signature(index, &signature);
        }
        Ok(())
    }

    fn message_delta(&mut self, event: &WireEvent<'_>) -> Result<(), ReadError> {
        if let Some(delta) = event.delta {
            let delta: MessageDelta = parse(delta.get(), "message_delta")?;
            self.stop(delta.stop_reason.as_deref());
        }
        self.usage(event.usage);
        Ok(())
    }

    fn stop(&mut self, reason: Option<&str>) {
        let Some(reason) = reason else { return };
        self.stop = Some(match reason {
            "end_turn" => ModelStop::EndTurn,
            "tool_use" => ModelStop::ToolUse,
            "max_tokens" | "model_context_window_exceeded" => ModelStop::MaxTokens,
            "refusal" => ModelStop::Refusal,
            _ => ModelStop::Other,
        });
    }

    /// Figures that cannot be read are figures that were not sent.
    fn usage(&mut self, usage: Option<&RawValue>) {
        let usage: WireUsage = usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default();
        self.fold.usage(Usage {
            input_tokens: usage.input_tokens.unwrap_or_default(),
            output_tokens: usage.output_tokens.unwrap_or_default(),
            cache_read_tokens: usage.cache_read_input_tokens.unwrap_or_default(),
            cache_write_tokens: usage.cache_creation_input_tokens.unwrap_or_default(),
        });
    }
}

impl AnswerReader for MessageReader {
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<Reading, ReadError> {
        let name = String::from_utf8_lossy(event.name);
        let wire: WireEvent<'_> = match serde_json::from_slice(event.data) {
            Ok(wire) => wire,
            Err(_) if is_foreign(&name, event.data) => return Ok(Reading::GoesOn),
            Err(error) => return Err(unreadable("an event", &error)),
        };
        let kind = if wire.kind.is_empty() { name.as_ref() } else { wire.kind.as_ref() };
        match kind {
            "message_start" => self.message_start(&wire)?,
            "content_block_start" => {
                self.block_start(index(&wire)?, required(wire.content_block, "content_block")?, out)?;
            }
            "content_block_delta" => self.block_delta(index(&wire)?, required(wire.delta, "delta")?, out)?,
            "message_delta" => self.message_delta(&wire)?,
            "message_stop" => {
                self.ended = true;
                return Ok(Reading::Done);
            }
            "error" => {
                let told: Option<Value> = member(wire.error, "error")?;
                return Err(ReadError::Provider(error::in_value(&told.unwrap_or_default())));
            }
            // `content_block_stop` and `ping` tell us nothing; others are newer than we are.
            _ => {}
        }
        Ok(Reading::GoesOn)
    }

    fn document(&mut self, body: &[u8], out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        if let Some(told) = error::in_document(body) {
            return Err(ReadError::Provider(told));
        }
        let message: WireMessage<'_> = serde_json::from_slice(body).map_err(|error| unreadable("a message", &error))?;
        for (index, block) in (0..).zip(message.content.unwrap_or_default()) {
            self.block_start(index, block, out)?;
        }
        self.stop(message.stop_reason.as_deref());
        self.usage(message.usage);
        Ok(())
    }

    fn finish(self) -> Option<ModelAnswer> {
        (self.stop.is_some() || self.ended).then(|| self.fold.finish(self.stop))
    }
}

/// True for what gateways put between our events: signs of life in a form of their own, another protocol's end marker.
fn is_foreign(name: &str, data: &[u8]) -> bool {
    let ours = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    ];
    let named_otherwise = !name.is_empty() && !ours.contains(&name);
    named_otherwise || matches!(data.trim_ascii(), b"" | b"[DONE]")
}

fn index(event: &WireEvent<'_>) -> Result<u64, ReadError> {
    Ok(member(event.index, "index")?.unwrap_or_default())
}

fn required<'a>(member: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, ReadError> {
    member.ok_or_else(|| ReadError::Unreadable(format!("an event lacks its `{name}`")))
}
