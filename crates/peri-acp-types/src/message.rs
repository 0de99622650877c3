//! Transcript messages: what a thread keeps and what a model is shown. No wire and no stored form.

use std::time::Duration;

use crate::{MessageId, ToolCall, ToolCallId, ToolOutput, TurnId};

/// One message of a transcript.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    pub id: MessageId,
    /// The turn that it belongs to.
    pub turn_id: TurnId,
    /// Unix time in milliseconds.
    pub created_at_ms: i64,
    pub body: MessageBody,
}

/// Who said it, and what.
#[derive(Clone, PartialEq, Debug)]
pub enum MessageBody {
    /// A person, or the client for them.
    User(Vec<Content>),
    /// The model. Calls in it are answered by [`MessageBody::ToolResults`] right after it.
    Assistant(AssistantMessage),
    /// One result for each call of the assistant message before it, in the order of the calls.
    ToolResults(Vec<ToolResult>),
    /// Said by Peri to the model (and shown to the user): an interrupted turn, the loop guard.
    Notice(String),
    /// Stands in the model's context for the messages that a compaction took out of it.
    Summary(Summary),
}

/// What a compaction left of the messages before it. They stay stored; the model sees this in their place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// What the model is told in place of them.
    pub text: String,
    /// The first of the messages before the summary that the model still sees, after the summary. None: it sees none.
    pub first_kept: Option<MessageId>,
    pub origin: SummaryOrigin,
}

/// Who wrote a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SummaryOrigin {
    /// The model was asked for it.
    Model,
    /// Nobody: messages were left out, and the text says so.
    Truncation,
}

/// One message of the model, whole.
#[derive(Clone, PartialEq, Debug)]
pub struct AssistantMessage {
    /// `PROVIDER/MODEL` as configured.
    pub model: String,
    pub parts: Vec<AssistantPart>,
    pub stop: ModelStop,
    pub usage: Usage,
}

impl AssistantMessage {
    /// The tool calls, in the order in which the model made them.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            AssistantPart::Text(_) | AssistantPart::Thought(_) => None,
        })
    }

    /// All text parts, joined.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Text(text) => Some(text.as_str()),
                AssistantPart::Thought(_) | AssistantPart::ToolCall(_) => None,
            })
            .collect()
    }
}

/// A piece of an assistant message, in the order in which it was produced.
#[derive(Clone, PartialEq, Debug)]
pub enum AssistantPart {
    Text(String),
    Thought(Thought),
    ToolCall(ToolCall),
}

/// Reasoning of the model. It goes back to the provider that made it, unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thought {
    /// Readable text; empty where the provider keeps it to itself.
    pub text: String,
    /// The provider's seal or encrypted form, opaque to us.
    pub signature: Option<String>,
    /// True where `signature` holds the whole thought in encrypted form and there is no text.
    pub redacted: bool,
}

/// Why the model stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelStop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    /// A stop sequence, a pause, or a reason of a newer protocol.
    Other,
}

/// Content from a user or a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    Text(String),
    Image(Image),
    /// A file or page that the client names; the text is there if it was embedded.
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: Option<String>,
    },
}

/// An image, base64 as every wire here carries it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// For example `image/png`.
    pub mime_type: String,
    pub base64: String,
}

/// The answer to one tool call.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolResult {
    pub call_id: ToolCallId,
    pub output: ToolOutput,
}

/// Tokens as the provider counted them. A figure that it did not send is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
}

impl Usage {
    /// Everything that filled the context window in this request, output included.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens
    }

    /// Adds the figures of another request.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

/// Time as a bound or a figure, in the unit that the field's formats use.
pub fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The longest title that is taken from a prompt, in characters.
const TITLE_CHARS: usize = 80;

/// The first line of text that says something, cut to a title's length.
pub(crate) fn title_of(content: &[Content]) -> Option<String> {
    let line = content.iter().find_map(|content| match content {
        Content::Text(text) => text.lines().map(str::trim).find(|line| !line.is_empty()),
        Content::Image(_) | Content::Resource { .. } => None,
    })?;
    let printable: String = line.chars().filter(|c| !c.is_control()).collect();
    match printable.char_indices().nth(TITLE_CHARS) {
        None => Some(printable),
        Some((end, _)) => Some(format!("{}…", printable.get(..end).unwrap_or_default())),
    }
}
