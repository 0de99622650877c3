//! Folding: the pieces of an answer, told by any adapter in the same few words, become events and one whole answer.
//!
//! Owns the rules that hold for every protocol: the order of parts, what empty arguments mean, ids of tool calls, bounds.
//! Must not know a wire's names. Invariant: every tool call of an answer has an id that no other call of the answer, and no
//! call of the request, has.

use std::collections::HashSet;

use peri_acp_types::{AssistantPart, ModelStop, Thought, ToolArguments, ToolCall, ToolCallId, Usage};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{ModelAnswer, ModelMessage, ModelRequest, ModelStreamEvent};

/// The most parts that an answer may have. Real ones have a few dozen.
const MAX_PARTS: usize = 2048;
/// The longest id that is taken over from a provider, in bytes.
const MAX_ID_BYTES: usize = 256;
/// The longest arguments that are looked at while more may come: each look costs their length.
const MAX_PROBED_BYTES: usize = 64 * 1024;
/// No figure of a provider is believed above this: sums over a session must not overflow.
const MAX_TOKENS: u64 = 1 << 40;

/// An answer under construction.
#[derive(Debug)]
pub(crate) struct AnswerFold {
    /// In the order of their beginning. A wire index may begin more than once: some endpoints number every block 0.
    parts: Vec<PartDraft>,
    ids: CallIds,
    usage: Usage,
}

#[derive(Debug)]
struct PartDraft {
    index: u64,
    body: PartBody,
}

#[derive(Debug)]
enum PartBody {
    Text(String),
    Thought(Thought),
    Call {
        id: ToolCallId,
        name: String,
        /// Arguments that came with the beginning of the call; empty if there were none.
        given: String,
        /// Arguments that came in pieces; they count if there are any.
        raw: String,
    },
    /// A kind of part that we do not know; what comes for it is dropped.
    Ignored,
}

/// A piece that does not fit what came before; the text says how.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct FoldError(String);

impl AnswerFold {
    pub(crate) fn new(ids: CallIds) -> AnswerFold {
        AnswerFold { parts: Vec::new(), ids, usage: Usage::default() }
    }

    pub(crate) fn begin_text(&mut self, index: u64) -> Result<(), FoldError> {
        self.begin(index, PartBody::Text(String::new()))
    }

    pub(crate) fn begin_thought(&mut self, index: u64, thought: Thought) -> Result<(), FoldError> {
        self.begin(index, PartBody::Thought(thought))
    }

    pub(crate) fn begin_ignored(&mut self, index: u64) -> Result<(), FoldError> {
        self.begin(index, PartBody::Ignored)
    }

    /// Begins a tool call. `id` may be missing, empty or taken; `given` are arguments that are there already, as
    /// JSON, or empty.
    pub(crate) fn begin_call(
        &mut self,
        index: u64,
        id: Option<&str>,
        name: String,
        given: String,
    ) -> Result<ModelStreamEvent, FoldError> {
        let id = self.ids.claim(id);
        let event = ModelStreamEvent::ToolCallStarted { id: id.clone(), name: name.clone() };
        self.begin(index, PartBody::Call { id, name, given, raw: String::new() })?;
        Ok(event)
    }

    /// True where the arguments of the call under that index are a JSON document already, so that nothing is to come.
    pub(crate) fn is_whole_call(&mut self, index: u64) -> bool {
        match self.find(index) {
            Some(PartBody::Call { given, raw, .. }) => {
                let arguments = if is_blank(raw) { given } else { raw };
                let may_end = arguments.len() <= MAX_PROBED_BYTES && arguments.trim_end().ends_with('}');
                may_end && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
            }
            _ => false,
        }
    }

    /// Text for a part; a part that never began begins here.
    pub(crate) fn text(&mut self, index: u64, delta: String) -> Result<Option<ModelStreamEvent>, FoldError> {
        if self.find(index).is_none() {
            self.begin_text(index)?;
        }
        match self.find(index) {
            Some(PartBody::Text(text)) => {
                text.push_str(&delta);
                Ok((!delta.is_empty()).then_some(ModelStreamEvent::TextDelta(delta)))
            }
            other => misfit(index, "text", other),
        }
    }

    /// Readable text of a thought; a part that never began begins here.
    pub(crate) fn thought(&mut self, index: u64, delta: String) -> Result<Option<ModelStreamEvent>, FoldError> {
        if self.find(index).is_none() {
            self.begin_thought(index, Thought::default())?;
        }
        match self.find(index) {
            Some(PartBody::Thought(thought)) => {
                thought.text.push_str(&delta);
                Ok((!delta.is_empty()).then_some(ModelStreamEvent::ThoughtDelta(delta)))
            }
            other => misfit(index, "a thought", other),
        }
    }

    /// A piece of a thought's seal. Some endpoints seal other parts too, which means nothing to us.
    pub(crate) fn signature(&mut self, index: u64, delta: &str) {
        if let Some(PartBody::Thought(thought)) = self.find(index) {
            thought.signature.get_or_insert_default().push_str(delta);
        }
    }

    /// The seal of a thought, whole. Where nothing readable came, the seal is the thought.
    pub(crate) fn seal_thought(&mut self, index: u64, seal: &str) -> Result<(), FoldError> {
        if self.find(index).is_none() {
            self.begin_thought(index, Thought::default())?;
        }
        if let Some(PartBody::Thought(thought)) = self.find(index) {
            thought.redacted = thought.text.is_empty();
            thought.signature = Some(seal.to_owned());
        }
        Ok(())
    }

    /// Names a call that began without a name.
    pub(crate) fn name_call(&mut self, index: u64, named: &str) -> Option<ModelStreamEvent> {
        match self.find(index)? {
            PartBody::Call { id, name, .. } => {
                named.clone_into(name);
                Some(ModelStreamEvent::ToolCallStarted { id: id.clone(), name: named.to_owned() })
            }
            _ => None,
        }
    }

    /// A piece of a call's arguments.
    pub(crate) fn arguments(&mut self, index: u64, delta: &str) -> Result<(), FoldError> {
        match self.find(index) {
            Some(PartBody::Call { raw, .. }) => {
                raw.push_str(delta);
                Ok(())
            }
            other => misfit(index, "arguments", other).map(|_| ()),
        }
    }

    /// Figures of the provider. They are cumulative, and not every event has all of them: the highest counts.
    pub(crate) fn usage(&mut self, seen: Usage) {
        let higher = |known: u64, seen: u64| known.max(seen.min(MAX_TOKENS));
        self.usage = Usage {
            input_tokens: higher(self.usage.input_tokens, seen.input_tokens),
            output_tokens: higher(self.usage.output_tokens, seen.output_tokens),
            cache_read_tokens: higher(self.usage.cache_read_tokens, seen.cache_read_tokens),
            cache_write_tokens: higher(self.usage.cache_write_tokens, seen.cache_write_tokens),
        };
    }

    /// The whole answer. Without a `stop` of the provider it follows from the parts.
    pub(crate) fn finish(mut self, stop: Option<ModelStop>) -> ModelAnswer {
        // Stable: parts that share an index stay in the order in which they began.
        self.parts.sort_by_key(|part| part.index);
        let parts: Vec<AssistantPart> = self.parts.into_iter().filter_map(|part| part.body.finish()).collect();
        let stop = stop.unwrap_or_else(|| {
            let calls = parts.iter().any(|part| matches!(part, AssistantPart::ToolCall(_)));
            if calls { ModelStop::ToolUse } else { ModelStop::EndTurn }
        });
        ModelAnswer { parts, stop, usage: self.usage }
    }

    fn begin(&mut self, index: u64, body: PartBody) -> Result<(), FoldError> {
        if self.parts.len() >= MAX_PARTS {
            return Err(FoldError(format!("the answer has more than {MAX_PARTS} parts")));
        }
        self.parts.push(PartDraft { index, body });
        Ok(())
    }

    /// The part that began last under that index.
    fn find(&mut self, index: u64) -> Option<&mut PartBody> {
        self.parts.iter_mut().rev().find(|part| part.index == index).map(|part| &mut part.body)
    }
}

fn misfit(index: u64, piece: &str, body: Option<&mut PartBody>) -> Result<Option<ModelStreamEvent>, FoldError> {
    let found = match body {
        Some(PartBody::Ignored) => return Ok(None),
        Some(PartBody::Text(_)) => "text",
        Some(PartBody::Thought(_)) => "a thought",
        Some(PartBody::Call { .. }) => "a tool call",
        None => "a part that never began",
    };
    Err(FoldError(format!("part {index} is {found}, but {piece} came for it")))
}

impl PartBody {
    fn finish(self) -> Option<AssistantPart> {
        match self {
            PartBody::Text(text) => (!text.is_empty()).then_some(AssistantPart::Text(text)),
            PartBody::Thought(thought) => {
                let empty = thought.text.is_empty() && thought.signature.is_none();
                (!empty).then_some(AssistantPart::Thought(thought))
            }
            PartBody::Call { id, name, given, raw } => Some(AssistantPart::ToolCall(ToolCall {
                id,
                name,
                arguments: arguments(if is_blank(&raw) { given } else { raw }),
            })),
            PartBody::Ignored => None,
        }
    }
}

fn is_blank(json: &str) -> bool {
    json.trim().is_empty()
}

fn arguments(raw: String) -> ToolArguments {
    // How a call without arguments looks: nothing at all, or `null`.
    let parsed = if is_blank(&raw) { Ok(Value::Null) } else { serde_json::from_str(&raw) };
    match parsed {
        Ok(Value::Object(map)) => ToolArguments::Object(map),
        Ok(Value::Null) => ToolArguments::Object(serde_json::Map::new()),
        Ok(other) => ToolArguments::Invalid { raw, reason: format!("it is {}", kind_of(&other)) },
        Err(error) => ToolArguments::Invalid { raw, reason: format!("it does not parse: {error}") },
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Gives each call of an answer an id of its own.
#[derive(Debug)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    /// Part of the ids that we make up, so that those of two answers differ even where one has left the request.
    seed: String,
}

impl CallIds {
    /// Ids for an answer to that request, which began at that Unix time.
    pub(crate) fn for_answer(request: &ModelRequest, now_ms: i64) -> CallIds {
        let parts = request.messages.iter().filter_map(|message| match message {
            ModelMessage::Assistant(parts) => Some(parts),
            ModelMessage::User(_) | ModelMessage::ToolResults(_) => None,
        });
        let ids = parts.flatten().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call.id.0.clone()),
            AssistantPart::Text(_) | AssistantPart::Thought(_) => None,
        });
        CallIds { taken: ids.collect(), seed: format!("{now_ms:x}") }
    }

    /// The provider's id where it is usable and free; else one derived from it, or made up.
    fn claim(&mut self, id: Option<&str>) -> ToolCallId {
        let usable = id.filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.contains(char::is_control));
        let wanted = usable.map_or_else(|| format!("call_{}", self.seed), str::to_owned);
        let mut free = wanted.clone();
        let mut repetition = 1_u64;
        while !self.taken.insert(free.clone()) {
            repetition += 1;
            free = format!("{wanted}_{repetition}");
        }
        ToolCallId(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fold() -> AnswerFold {
        AnswerFold::new(CallIds { taken: HashSet::from(["earlier".to_owned()]), seed: "5".to_owned() })
    }

    fn ids(answer: &ModelAnswer) -> Vec<&str> {
        let calls = answer.parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call.id.0.as_str()),
            _ => None,
        });
        calls.collect()
    }

    #[test]
    fn ids_are_unique_in_the_answer_and_against_the_request() {
        let mut fold = fold();
        for (index, id) in [Some("a"), Some("a"), Some("earlier"), None, Some(""), Some("x\ny")].into_iter().enumerate()
        {
            fold.begin_call(index as u64, id, "Read".into(), String::new()).expect("room");
        }
        assert_eq!(ids(&fold.finish(None)), ["a", "a_2", "earlier_2", "call_5", "call_5_2", "call_5_3"]);
    }

    #[track_caller]
    fn check_arguments(given: &str, pieces: &[&str], expect: &ToolArguments) {
        let mut fold = fold();
        fold.begin_call(0, Some("a"), "Read".into(), given.into()).expect("room");
        for piece in pieces {
            fold.arguments(0, piece).expect("a call");
        }
        let answer = fold.finish(None);
        assert!(
            matches!(&answer.parts[..], [AssistantPart::ToolCall(call)] if call.arguments == *expect),
            "{pieces:?}: {answer:?}"
        );
    }

    #[test]
    fn arguments_are_an_object_or_kept_as_they_came() {
        let object = |value: Value| ToolArguments::Object(value.as_object().cloned().expect("object"));
        let invalid = |raw: &str, reason: &str| ToolArguments::Invalid { raw: raw.into(), reason: reason.into() };
        check_arguments("", &[], &object(json!({})));
        check_arguments("{}", &["", " \n"], &object(json!({})));
        check_arguments("", &["null"], &object(json!({})));
        check_arguments(r#"{"a": 1}"#, &[], &object(json!({"a": 1})));
        check_arguments("{}", &["{\"b\"", ":2}"], &object(json!({"b": 2})));
        check_arguments("", &["[1]"], &invalid("[1]", "it is an array"));
        check_arguments("\"x\"", &[], &invalid("\"x\"", "it is a string"));
        let cut = invalid("{\"b\":", "it does not parse: EOF while parsing a value at line 1 column 5");
        check_arguments("", &["{\"b\":"], &cut);
        let deep = "[".repeat(100_000);
        let too_deep = invalid(&deep, "it does not parse: recursion limit exceeded at line 1 column 128");
        check_arguments("", &[&deep], &too_deep);
    }

    #[test]
    fn parts_are_ordered_by_index_and_a_repeated_index_is_another_part() {
        let mut fold = fold();
        fold.text(2, "third".into()).expect("text");
        fold.begin_text(0).expect("room");
        fold.text(0, "first".into()).expect("text");
        fold.begin_call(0, Some("a"), "Read".into(), String::new()).expect("room");
        fold.arguments(0, "{}").expect("a call");
        let answer = fold.finish(None);
        assert_eq!(answer.stop, ModelStop::ToolUse);
        assert!(matches!(
            &answer.parts[..],
            [AssistantPart::Text(first), AssistantPart::ToolCall(_), AssistantPart::Text(third)]
                if first == "first" && third == "third"
        ));
    }

    #[test]
    fn a_piece_of_the_wrong_kind_is_an_error_unless_the_part_is_unknown() {
        let mut fold = fold();
        fold.begin_ignored(0).expect("room");
        assert_eq!(fold.arguments(0, "{}"), Ok(()));
        fold.begin_text(1).expect("room");
        assert!(fold.arguments(1, "{}").is_err());
        assert!(fold.arguments(9, "{}").is_err());
        fold.signature(1, "x");
        assert!(fold.thought(1, "x".into()).is_err());
    }

    #[test]
    fn parts_and_figures_are_bounded() {
        let mut fold = fold();
        let refused = (0..=MAX_PARTS).any(|index| fold.begin_text(index as u64).is_err());
        assert!(refused);
        fold.usage(Usage { input_tokens: u64::MAX, output_tokens: 3, ..Usage::default() });
        fold.usage(Usage { output_tokens: 2, cache_read_tokens: 1, ..Usage::default() });
        let usage = fold.finish(None).usage;
        assert_eq!(usage.context_tokens(), MAX_TOKENS + 3 + 1);
    }
}
