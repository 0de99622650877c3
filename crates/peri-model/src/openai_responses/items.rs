//! The items of a response under way: what has come of each, in deltas or whole.
//!
//! Every text and every argument comes up to three times: in deltas, in the event that ends it, and in the whole item.
//! Servers leave out any of these. Invariant: of each item, the first form that says anything is taken, the others are not.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::reasoning::ReasoningItem;
use crate::ModelStreamEvent;
use crate::fold::AnswerFold;
use crate::members::{TextPieces, lenient, member, parse};
use crate::wire::ReadError;

type Events = VecDeque<ModelStreamEvent>;

/// An item, whole or as it stands when it begins.
#[derive(Deserialize)]
struct WireItem<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
}

/// The items so far.
#[derive(Debug, Default)]
pub(super) struct Items {
    text: TextPieces,
    /// By the index of the item in the response.
    known: HashMap<u64, Item>,
    /// For events that name an item by its id alone.
    ids: HashMap<String, u64>,
    last_index: u64,
    refused: bool,
}

#[derive(Debug)]
struct Item {
    kind: Kind,
    /// Some text, or some arguments, have come.
    said: bool,
    /// The part of a reasoning that text came for last.
    section: u64,
    done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Message,
    Reasoning,
    Call,
    /// What runs at the provider, and what is newer than we are.
    Unknown,
}

impl Items {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Text that the provider itself calls a refusal has come.
    pub(super) fn refused(&self) -> bool {
        self.refused
    }

    /// The index of the item that an event is about.
    pub(super) fn index(&self, output_index: Option<&RawValue>, item_id: Option<&RawValue>) -> u64 {
        let by_id = || lenient::<Cow<'_, str>>(item_id).and_then(|id| self.ids.get(id.as_ref()).copied());
        lenient(output_index).or_else(by_id).unwrap_or(self.last_index)
    }

    /// An item begins.
    pub(super) fn begin(
        &mut self,
        output_index: Option<&RawValue>,
        item: &RawValue,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let wire: WireItem<'_> = parse(item.get(), "item")?;
        let next = if self.known.is_empty() { 0 } else { self.last_index.saturating_add(1) };
        let index = lenient(output_index).unwrap_or(next);
        self.begin_at(index, &wire, fold, out)
    }

    fn begin_at(
        &mut self,
        index: u64,
        wire: &WireItem<'_>,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let kind = match wire.kind.as_ref() {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => Kind::Unknown,
        };
        match kind {
            Kind::Message => fold.begin_text(index)?,
            Kind::Reasoning => fold.begin_thought(index, Default::default())?,
            Kind::Unknown => fold.begin_ignored(index)?,
            Kind::Call => {
                let id: Option<String> = member(wire.call_id.or(wire.id), "call_id")?;
                let name: String = member(wire.name, "name")?.unwrap_or_default();
                out.push_back(fold.begin_call(index, id.as_deref(), name, String::new())?);
            }
        }
        if let Some(id) = lenient::<String>(wire.id) {
            self.ids.insert(id, index);
        }
        self.last_index = index;
        self.text.restart(index);
        self.known.insert(index, Item { kind, said: false, section: 0, done: false });
        Ok(())
    }

    /// A piece of a message's text.
    pub(super) fn text(
        &mut self,
        index: u64,
        delta: Option<&RawValue>,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let Some(text) = self.text.piece(index, delta)? else { return Ok(()) };
        self.item(index, Kind::Message).said |= !text.is_empty();
        out.extend(fold.text(index, text)?);
        Ok(())
    }

    pub(super) fn refusal(
        &mut self,
        index: u64,
        delta: Option<&RawValue>,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        self.refused = true;
        self.text(index, delta, fold, out)
    }

    /// A piece of a reasoning's text. Sections are set apart by an empty line.
    pub(super) fn thought(
        &mut self,
        index: u64,
        section: u64,
        delta: Option<&RawValue>,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let Some(text) = self.text.piece(index, delta)?.filter(|text| !text.is_empty()) else { return Ok(()) };
        let item = self.item(index, Kind::Reasoning);
        let begins_section = item.said && item.section != section;
        (item.said, item.section) = (true, section);
        let text = if begins_section { format!("\n\n{text}") } else { text };
        out.extend(fold.thought(index, text)?);
        Ok(())
    }

    /// A piece of a call's arguments.
    pub(super) fn arguments(
        &mut self,
        index: u64,
        delta: Option<&RawValue>,
        fold: &mut AnswerFold,
    ) -> Result<(), ReadError> {
        let Some(json) = arguments(delta).filter(|json| !json.is_empty()) else { return Ok(()) };
        // A call whose beginning was left out has no name yet: it comes whole with its end.
        let Some(call) = self.known.get_mut(&index) else { return Ok(()) };
        call.said = true;
        Ok(fold.arguments(index, &json)?)
    }

    /// The arguments of a call, whole.
    pub(super) fn whole_arguments(
        &mut self,
        index: u64,
        whole: Option<&RawValue>,
        fold: &mut AnswerFold,
    ) -> Result<(), ReadError> {
        if self.known.get(&index).is_some_and(|call| call.said) { Ok(()) } else { self.arguments(index, whole, fold) }
    }

    /// An item, whole: what has not come yet is in it.
    pub(super) fn whole(
        &mut self,
        index: u64,
        item: &RawValue,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let wire: WireItem<'_> = parse(item.get(), "item")?;
        if !self.known.contains_key(&index) {
            self.begin_at(index, &wire, fold, out)?;
        }
        let known = self.item(index, Kind::Unknown);
        let (kind, said) = (known.kind, known.said);
        if std::mem::replace(&mut known.done, true) {
            return Ok(());
        }
        match kind {
            Kind::Message if !said => self.content(index, wire.content, fold, out),
            Kind::Call => self.whole_arguments(index, wire.arguments, fold),
            Kind::Reasoning => self.reasoning(index, item, &wire, fold, out),
            Kind::Message | Kind::Unknown => Ok(()),
        }
    }

    fn reasoning(
        &mut self,
        index: u64,
        item: &RawValue,
        wire: &WireItem<'_>,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let reasoning: ReasoningItem = lenient(Some(item)).unwrap_or_default();
        if !self.item(index, Kind::Reasoning).said {
            let summary = reasoning.summary_text();
            match summary.is_empty() {
                true => self.content(index, wire.content, fold, out)?,
                false => out.extend(fold.thought(index, summary)?),
            }
        }
        match reasoning.seal() {
            Some(seal) => Ok(fold.seal_thought(index, &seal)?),
            None => Ok(()),
        }
    }

    /// The texts of an item's content: a list of parts, or one text.
    fn content(
        &mut self,
        index: u64,
        content: Option<&RawValue>,
        fold: &mut AnswerFold,
        out: &mut Events,
    ) -> Result<(), ReadError> {
        let Some(parts) = lenient::<Vec<ContentPart<'_>>>(content) else {
            let text = content.filter(|content| content.get().starts_with('"'));
            return self.text(index, text, fold, out);
        };
        for (section, part) in (0..).zip(parts) {
            match part.kind.as_ref() {
                "refusal" => self.refusal(index, part.refusal, fold, out)?,
                "reasoning_text" => self.thought(index, section, part.text, fold, out)?,
                _ => self.text(index, part.text, fold, out)?,
            }
        }
        Ok(())
    }

    /// The item at that index; one that never began begins here, since servers leave out its beginning.
    fn item(&mut self, index: u64, kind: Kind) -> &mut Item {
        self.last_index = index;
        self.known.entry(index).or_insert(Item { kind, said: false, section: 0, done: false })
    }
}

/// Arguments as a JSON text in a string, or as the JSON itself.
fn arguments(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    match raw?.get() {
        "null" => None,
        json if json.starts_with('"') => Some(serde_json::from_str::<String>(json).unwrap_or_default().into()),
        json => Some(json.into()),
    }
}
