//! Compact: keeps an eye on how full the context window is.
//!
//! Today it counts and warns. Replacing stale results and summaries are not built yet.

use peri_acp_types::{AssistantPart, Content, Message, MessageBody, NoticeKind, Thread, ToolArguments};

use super::Turn;

/// From this share of the window on, the user is warned, in percent.
const WARN_AT_PERCENT: u64 = 90;

/// How much of the window is taken: what the provider counted last, and what came since.
pub(super) struct ContextFigure {
    counted_tokens: u64,
    /// Messages of the thread that the provider has counted.
    counted_messages: usize,
    warned: bool,
}

impl ContextFigure {
    /// The figure for a thread as it stands.
    pub(super) fn of(thread: &Thread) -> ContextFigure {
        let last = thread.messages.iter().enumerate().rev().find_map(|(index, message)| match &message.body {
            MessageBody::Assistant(assistant) => Some((assistant.usage.context_tokens(), index + 1)),
            _ => None,
        });
        let (counted_tokens, counted_messages) = last.unwrap_or_default();
        ContextFigure { counted_tokens, counted_messages, warned: false }
    }
}

impl Turn {
    /// Tokens that the next request will take, as far as is known.
    pub(super) fn context_tokens(&self) -> u64 {
        let uncounted = self.thread.messages.iter().skip(self.context.counted_messages).map(text_bytes).sum();
        self.context.counted_tokens + self.asked.model.estimate_tokens(uncounted)
    }

    pub(super) async fn compact(&mut self) {
        let warned = self.context.warned;
        self.context = ContextFigure { warned, ..ContextFigure::of(&self.thread) };
        let (used, window) = (self.context_tokens(), self.asked.model.limits().context_window);
        if warned || used * 100 < window * WARN_AT_PERCENT {
            return;
        }
        self.context.warned = true;
        let text = format!("the context is nearly full: about {used} of {window} tokens; start a new session soon");
        self.notice(NoticeKind::Capability, text).await;
    }
}

/// Bytes of a message that the model reads as text. Images are counted by their provider only.
fn text_bytes(message: &Message) -> u64 {
    let bytes: usize = match &message.body {
        MessageBody::User(content) => content.iter().map(content_bytes).sum(),
        MessageBody::ToolResults(results) => {
            results.iter().flat_map(|result| &result.output.content).map(content_bytes).sum()
        }
        MessageBody::Notice(text) => text.len(),
        MessageBody::Summary(summary) => summary.text.len(),
        MessageBody::Assistant(assistant) => assistant.parts.iter().map(part_bytes).sum(),
    };
    bytes as u64
}

fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Resource { uri, text, .. } => uri.len() + text.as_ref().map_or(0, String::len),
        Content::Image(_) => 0,
    }
}

fn part_bytes(part: &AssistantPart) -> usize {
    match part {
        AssistantPart::Text(text) => text.len(),
        AssistantPart::Thought(thought) => thought.text.len(),
        AssistantPart::ToolCall(call) => match &call.arguments {
            ToolArguments::Object(map) => map.iter().map(|(key, value)| key.len() + value.to_string().len()).sum(),
            ToolArguments::Invalid { raw, .. } => raw.len(),
        },
    }
}
