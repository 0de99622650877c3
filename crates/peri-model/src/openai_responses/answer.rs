//! An answer as this wire sends it: a stream of events, or one whole response.
//!
//! Owns the names of events. Unknown ones are no error: the protocol grows, and much of it runs at the provider.
//! Invariant: an answer is whole only with the event that ends the response; items that ended are no end.

use std::borrow::Cow;
use std::collections::VecDeque;

use peri_acp_types::{ModelFailureKind, ModelStop, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::items::Items;
use crate::failure::ProviderError;
use crate::fold::AnswerFold;
use crate::members::{lenient, parse, unreadable};
use crate::openai::error;
use crate::sse::SseEvent;
use crate::wire::{AnswerReader, ReadError, Reading};
use crate::{ModelAnswer, ModelStreamEvent};

/// Reads one response.
pub(crate) struct ResponseReader {
    fold: AnswerFold,
    items: Items,
    end: Option<End>,
}

/// How the response ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Completed,
    /// Cut short, for that reason.
    Incomplete(ModelStop),
}

/// Any event, its members unparsed.
#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    output_index: Option<&'a RawValue>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    summary_index: Option<&'a RawValue>,
    #[serde(borrow)]
    content_index: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A response, whole or as it stands.
#[derive(Deserialize)]
struct WireResponse<'a> {
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

impl ResponseReader {
    pub(super) fn new(fold: AnswerFold) -> ResponseReader {
        ResponseReader { fold, items: Items::default(), end: None }
    }

    fn item_event(&mut self, event: &WireEvent<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        let index = || self.items.index(event.output_index, event.item_id);
        let section = |index: Option<&RawValue>| lenient(index).unwrap_or(0);
        match event.kind.as_ref() {
            "response.output_item.added" => match event.item {
                Some(item) => self.items.begin(event.output_index, item, &mut self.fold, out),
                None => Ok(()),
            },
            "response.output_item.done" => match event.item {
                Some(item) => {
                    let index = self.index_of_whole(event, item);
                    self.items.whole(index, item, &mut self.fold, out)
                }
                None => Ok(()),
            },
            "response.output_text.delta" => self.items.text(index(), event.delta, &mut self.fold, out),
            "response.refusal.delta" => self.items.refusal(index(), event.delta, &mut self.fold, out),
            "response.reasoning_summary_text.delta" => {
                self.items.thought(index(), section(event.summary_index), event.delta, &mut self.fold, out)
            }
            "response.reasoning_text.delta" => {
                self.items.thought(index(), section(event.content_index), event.delta, &mut self.fold, out)
            }
            "response.function_call_arguments.delta" => self.items.arguments(index(), event.delta, &mut self.fold),
            "response.function_call_arguments.done" => {
                self.items.whole_arguments(index(), event.arguments, &mut self.fold)
            }
            // Beginnings and ends that tell nothing new, and what is newer than we are.
            _ => Ok(()),
        }
    }

    /// A whole item without an index is the one of its id, or the next.
    fn index_of_whole(&self, event: &WireEvent<'_>, item: &RawValue) -> u64 {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
        }
        let id = lenient::<Named<'_>>(Some(item)).and_then(|named| named.id);
        self.items.index(event.output_index, event.item_id.or(id))
    }

    /// The response as it ended: items that no event told of, figures, and why it ended.
    fn ended(&mut self, response: &WireResponse<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        self.usage(response.usage);
        if let Some(told) = lenient::<Value>(response.error).filter(|error| !error.is_null()) {
            return Err(ReadError::Provider(error::read(&told)));
        }
        // Where events told of items, the list has the same ones, perhaps under other indices.
        if self.items.is_empty() {
            for (index, item) in (0..).zip(response.output.iter().flatten()) {
                self.items.whole(index, item, &mut self.fold, out)?;
            }
        }
        match lenient::<Cow<'_, str>>(response.status).as_deref() {
            Some("failed" | "cancelled") => Err(ReadError::Provider(failed_without_words())),
            Some("incomplete") => {
                let details = lenient::<IncompleteDetails>(response.incomplete_details);
                let reason = details.and_then(|details| details.reason).unwrap_or_default();
                self.end = Some(End::Incomplete(match reason.as_str() {
                    "max_output_tokens" | "max_tokens" => ModelStop::MaxTokens,
                    "content_filter" => ModelStop::Refusal,
                    _ => ModelStop::Other,
                }));
                Ok(())
            }
            _ => {
                self.end = Some(End::Completed);
                Ok(())
            }
        }
    }

    /// Figures that cannot be read are figures that were not sent.
    fn usage(&mut self, usage: Option<&RawValue>) {
        let Some(usage) = lenient::<WireUsage>(usage) else { return };
        let cached = usage.input_tokens_details.unwrap_or_default().cached_tokens.unwrap_or(0);
        self.fold.usage(Usage {
            input_tokens: usage.input_tokens.unwrap_or(0).saturating_sub(cached),
            output_tokens: usage.output_tokens.unwrap_or(0),
            cache_read_tokens: cached,
            cache_write_tokens: 0,
        });
    }
}

impl AnswerReader for ResponseReader {
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<Reading, ReadError> {
        let data = event.data.trim_ascii();
        let mut wire: WireEvent<'_> = match serde_json::from_slice(data) {
            Ok(wire) => wire,
            Err(_) if is_foreign(event.name, data) => return Ok(Reading::GoesOn),
            Err(error) => return Err(unreadable("an event", &error)),
        };
        if wire.kind.is_empty() {
            wire.kind = String::from_utf8_lossy(event.name);
        }
        match wire.kind.as_ref() {
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let response = wire.response.map(RawValue::get).unwrap_or("{}");
                let response: WireResponse<'_> = parse(response, "response")?;
                self.ended(&response, out)?;
                match wire.kind.as_ref() {
                    "response.failed" => return Err(ReadError::Provider(failed_without_words())),
                    "response.incomplete" if self.end == Some(End::Completed) => {
                        self.end = Some(End::Incomplete(ModelStop::Other));
                    }
                    _ => {}
                }
                return Ok(Reading::Done);
            }
            kind if kind == "error" || (kind.is_empty() && wire.error.is_some()) => {
                let told: Value = serde_json::from_slice(data).unwrap_or_default();
                return Err(ReadError::Provider(error::in_value(&told).unwrap_or_else(|| error::read(&told))));
            }
            _ => self.item_event(&wire, out)?,
        }
        Ok(Reading::GoesOn)
    }

    fn document(&mut self, body: &[u8], out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError> {
        if let Some(told) = error::in_document(body) {
            return Err(ReadError::Provider(told));
        }
        let response: WireResponse<'_> =
            serde_json::from_slice(body).map_err(|error| unreadable("a response", &error))?;
        if response.output.is_none() {
            return Err(ReadError::Unreadable("`output` is missing".to_owned()));
        }
        self.ended(&response, out)
    }

    fn finish(self) -> Option<ModelAnswer> {
        let stop = match self.end? {
            _ if self.items.refused() => Some(ModelStop::Refusal),
            End::Completed => None,
            End::Incomplete(stop) => Some(stop),
        };
        Some(self.fold.finish(stop))
    }
}

fn failed_without_words() -> ProviderError {
    let message = "the provider says that the response failed, and not why".to_owned();
    ProviderError { kind: ModelFailureKind::Server, message }
}

/// True for what gateways put between our events: signs of life in a form of their own, another protocol's end marker.
fn is_foreign(name: &[u8], data: &[u8]) -> bool {
    let ours = name.starts_with(b"response.") || matches!(name, b"error" | b"message" | b"");
    !ours || matches!(data, b"" | b"[DONE]")
}
