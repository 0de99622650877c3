//! Tool calls in pieces, as servers of this protocol cut and number them.
//!
//! The protocol gives each call an index, and id and name with its first piece. Servers leave out the index, the id or
//! both, number every call 0, repeat the name with each piece, or send the arguments whole, even as an object.
//! Invariant: a piece without a name never begins a call, unless there is none that it could belong to.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ModelStreamEvent;
use crate::fold::{AnswerFold, FoldError};
use crate::members::lenient;

/// Where calls begin among the parts of an answer: after its reasoning and its text.
const FIRST_PART: u64 = 2;

/// A piece of a call.
#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<WireFunction<'a>>,
}

/// Name and arguments of a call; also the form of calls before there were several.
#[derive(Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    begun: Vec<BegunCall>,
}

#[derive(Debug)]
struct BegunCall {
    /// Its part in the answer.
    part: u64,
    id: Option<String>,
    name: String,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Takes a piece of a call.
    pub(super) fn piece(
        &mut self,
        call: &WireCall<'_>,
        fold: &mut AnswerFold,
        out: &mut VecDeque<ModelStreamEvent>,
    ) -> Result<(), FoldError> {
        let index: Option<u64> = lenient(call.index);
        let id = lenient::<String>(call.id).filter(|id| !id.is_empty());
        let none = WireFunction { name: None, arguments: None };
        self.take(index, id, call.function.as_ref().unwrap_or(&none), fold, out)
    }

    /// Takes a piece of the only call that the older form knows.
    pub(super) fn legacy_piece(
        &mut self,
        function: &WireFunction<'_>,
        fold: &mut AnswerFold,
        out: &mut VecDeque<ModelStreamEvent>,
    ) -> Result<(), FoldError> {
        self.take(Some(0), None, function, fold, out)
    }

    fn take(
        &mut self,
        index: Option<u64>,
        id: Option<String>,
        function: &WireFunction<'_>,
        fold: &mut AnswerFold,
        out: &mut VecDeque<ModelStreamEvent>,
    ) -> Result<(), FoldError> {
        let name = lenient::<String>(function.name).unwrap_or_default();
        let arguments = arguments(function.arguments);
        match self.known(index, id.as_deref(), &name, fold) {
            Some(known) => {
                if known.name.is_empty() && !name.is_empty() {
                    out.extend(fold.name_call(known.part, &name));
                    known.name = name;
                }
                fold.arguments(known.part, &arguments)
            }
            None => {
                let part = self.new_part(index);
                // Arguments that come whole with the name count only if no pieces follow: some begin with `{}`.
                let whole = serde_json::from_str::<serde::de::IgnoredAny>(&arguments).is_ok();
                let (given, first) =
                    if whole { (arguments.into_owned(), "".into()) } else { (String::new(), arguments) };
                let begun = fold.begin_call(part, id.as_deref(), name.clone(), given)?;
                if !name.is_empty() {
                    out.push_back(begun);
                }
                fold.arguments(part, &first)?;
                self.begun.push(BegunCall { part, id, name });
                Ok(())
            }
        }
    }

    /// The call that a piece belongs to; None where it begins one.
    fn known(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
        name: &str,
        fold: &mut AnswerFold,
    ) -> Option<&mut BegunCall> {
        let known = match index {
            Some(index) => self.begun.iter_mut().rev().find(|call| call.part == part_of(index)),
            None => {
                let of_id = self.begun.iter().rposition(|call| id.is_some() && call.id.as_deref() == id);
                let last = self.begun.len().checked_sub(1);
                self.begun.get_mut(of_id.or(last)?)
            }
        }?;
        if name.is_empty() || known.name.is_empty() {
            return Some(known);
        }
        let other_name = known.name != name;
        let begins = match (known.id.as_deref(), id) {
            (Some(known_id), Some(id)) => known_id != id,
            // Without ids, a name that is said again is another call only where the arguments were whole.
            _ => other_name || fold.is_whole_call(known.part),
        };
        (!begins).then_some(known)
    }

    fn new_part(&self, index: Option<u64>) -> u64 {
        let after_last = || self.begun.iter().map(|call| call.part.saturating_add(1)).max().unwrap_or(FIRST_PART);
        index.map_or_else(after_last, part_of)
    }
}

fn part_of(index: u64) -> u64 {
    index.saturating_add(FIRST_PART)
}

/// A piece of the arguments: a JSON text in a string, as the protocol wants, or the JSON itself.
fn arguments(raw: Option<&RawValue>) -> Cow<'_, str> {
    match raw.map(RawValue::get) {
        None | Some("null") => "".into(),
        Some(json) if json.starts_with('"') => serde_json::from_str::<String>(json).unwrap_or_default().into(),
        Some(json) => json.into(),
    }
}
