//! A script as a JSON document, for an endpoint in a process of its own.
//!
//! ```json
//! {"choose": "by_history", "replies": [
//!   {"thinking": "Hm.", "text": ["Let me ", "look."], "tool_calls": [{"id": "t1", "name": "Read", "input": {"path": "a"}}]},
//!   {"status": 529, "headers": {"retry-after": "1"}, "error": {"type": "overloaded_error", "message": "Overloaded"}},
//!   {"text": "Done.", "cut_after": 200}
//! ]}
//! ```

use std::collections::BTreeMap;

use peri_acp_types::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::reply::{Reply, Rest};
use super::script::Script;
use crate::gate::Gate;

/// The document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFile {
    #[serde(default)]
    choose: Choice,
    replies: Vec<ReplyEntry>,
    /// The document that the list of models is; without it there is none.
    models: Option<Value>,
}

/// How a reply is chosen; see the functions of [`Script`] that bear these names.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Choice {
    #[default]
    InOrder,
    RepeatingLast,
    ByHistory,
}

/// One reply. Without `status` it is an answer of the model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReplyEntry {
    thinking: Option<String>,
    text: Option<Pieces>,
    /// The text's pieces again and again: so many times in all.
    text_times: Option<usize>,
    tool_calls: Vec<CallEntry>,
    stop_reason: Option<String>,
    usage: Option<UsageEntry>,
    /// Without status: an error event at the end of what came before. With it: the body.
    error: Option<ErrorEntry>,
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    body: Option<String>,
    /// Bytes of the body after which the connection is closed, reset, or silent for ever.
    cut_after: Option<usize>,
    reset_after: Option<usize>,
    silent_after: Option<usize>,
    chunk_bytes: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Pieces {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    id: Option<String>,
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UsageEntry {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorEntry {
    #[serde(rename = "type")]
    kind: String,
    message: String,
}

/// A document that is no script.
#[derive(Debug, thiserror::Error)]
#[error("not a script: {0}")]
pub struct ScriptFileError(#[from] serde_json::Error);

impl ScriptFile {
    /// Reads the document.
    ///
    /// # Errors
    /// [`ScriptFileError`] with line and column.
    pub fn parse(json: &[u8]) -> Result<ScriptFile, ScriptFileError> {
        Ok(serde_json::from_slice(json)?)
    }
}

impl From<ScriptFile> for Script {
    fn from(file: ScriptFile) -> Script {
        let replies: Vec<Reply> = (0..).zip(file.replies).map(|(place, entry)| entry.into_reply(place)).collect();
        let script = match file.choose {
            Choice::InOrder => Script::in_order(replies),
            Choice::RepeatingLast => Script::repeating_last(replies),
            Choice::ByHistory => Script::by_history(replies),
        };
        match &file.models {
            Some(list) => script.with_models(list),
            None => script,
        }
    }
}

impl ReplyEntry {
    fn into_reply(self, place: usize) -> Reply {
        let mut reply = match self.status {
            None => Reply::from(self.answer(place)),
            Some(status) => {
                let reply = Reply::status(status);
                match (&self.error, &self.body) {
                    (Some(error), _) => reply.error_body(&error.kind, &error.message),
                    (None, Some(body)) => reply.body(body.as_str()),
                    (None, None) => reply,
                }
            }
        };
        if let Some(bytes) = self.chunk_bytes {
            reply = reply.in_chunks_of(bytes);
        }
        for (name, value) in &self.headers {
            reply = reply.header(name, value);
        }
        let faults = [
            (self.cut_after, Rest::Close),
            (self.reset_after, Rest::Reset),
            // Nobody opens it.
            (self.silent_after, Rest::Stall(Gate::shut())),
        ];
        let fault = faults.into_iter().find_map(|(place, rest)| Some((place?, rest)));
        fault.map_or(reply.clone(), |(place, rest)| reply.after(place, rest))
    }

    fn answer(&self, place: usize) -> Answer {
        let mut answer = Answer::new();
        if let Some(thinking) = &self.thinking {
            answer = answer.thinking(thinking, "c2NyaXB0ZWQ=");
        }
        let pieces: Vec<&str> = match &self.text {
            None => Vec::new(),
            Some(Pieces::One(text)) => vec![text],
            Some(Pieces::Many(texts)) => texts.iter().map(String::as_str).collect(),
        };
        if !pieces.is_empty() {
            let count = pieces.len() * self.text_times.unwrap_or(1);
            answer = answer.text_deltas(pieces.iter().copied().cycle().take(count));
        }
        for (number, call) in self.tool_calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| format!("toolu_{place}_{number}"));
            let input = if call.input.is_null() { &json!({}) } else { &call.input };
            answer = answer.tool_use(&id, &call.name, input);
        }
        if let Some(usage) = self.usage {
            answer = answer.usage(Usage {
                input_tokens: usage.input,
                output_tokens: usage.output,
                cache_read_tokens: usage.cache_read,
                cache_write_tokens: usage.cache_write,
            });
        }
        if let Some(reason) = &self.stop_reason {
            answer = answer.stop_reason(reason);
        }
        match &self.error {
            Some(error) => answer.error(&error.kind, &error.message),
            None => answer,
        }
    }
}
