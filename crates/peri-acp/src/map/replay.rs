//! A stored transcript as the updates that a client would have seen.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{ContentChunk, SessionUpdate, ToolCallStatus};
use peri_acp_types::{
    AssistantPart, Message, MessageBody, Thread, ToolArguments, ToolCall, ToolCallId, ToolKind, ToolOutput, ToolResult,
};

use super::content::{text_block, to_block};
use super::tool;
use super::view::said_by_peri;

/// The transcript's updates, message by message in its order. A call comes with its result, which is in the message after it.
pub(crate) fn replay(thread: &Thread) -> impl Iterator<Item = Vec<SessionUpdate>> {
    let results: HashMap<&ToolCallId, &ToolOutput> = thread
        .messages
        .iter()
        .filter_map(|message| match &message.body {
            MessageBody::ToolResults(results) => Some(results),
            MessageBody::User(_) | MessageBody::Assistant(_) | MessageBody::Notice(_) => None,
        })
        .flatten()
        .map(|ToolResult { call_id, output }| (call_id, output))
        .collect();
    thread.messages.iter().map(move |message| updates_of(message, &results))
}

fn updates_of(message: &Message, results: &HashMap<&ToolCallId, &ToolOutput>) -> Vec<SessionUpdate> {
    let chunk = |block| ContentChunk::new(block).message_id(Some(message.id.to_string().into()));
    match &message.body {
        MessageBody::User(content) => {
            content.iter().map(|content| SessionUpdate::UserMessageChunk(chunk(to_block(content)))).collect()
        }
        MessageBody::Notice(text) => vec![SessionUpdate::AgentMessageChunk(said_by_peri(text))],
        // Told with their calls.
        MessageBody::ToolResults(_) => Vec::new(),
        MessageBody::Assistant(assistant) => assistant
            .parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Text(text) => Some(SessionUpdate::AgentMessageChunk(chunk(text_block(text)))),
                AssistantPart::Thought(thought) if thought.text.is_empty() => None,
                AssistantPart::Thought(thought) => {
                    Some(SessionUpdate::AgentThoughtChunk(chunk(text_block(&thought.text))))
                }
                AssistantPart::ToolCall(call) => {
                    Some(SessionUpdate::ToolCall(told_call(call, results.get(&call.id).copied())))
                }
            })
            .collect(),
    }
}

/// A stored call does not say its tool's kind: that is the live tool's business, and the tool may be gone.
fn told_call(call: &ToolCall, output: Option<&ToolOutput>) -> agent_client_protocol::v1::schema::ToolCall {
    let mut told = tool::announced(&call.id.0, &title(call), ToolKind::Other).name(call.name.clone());
    told.raw_input = Some(tool::raw_input(&call.arguments));
    match output {
        Some(output) => told.update(tool::finished_fields(output)),
        None => told.status = ToolCallStatus::Failed,
    }
    told
}

/// The name, and the first argument that is a short line.
fn title(call: &ToolCall) -> String {
    const LONGEST: usize = 120;
    let ToolArguments::Object(arguments) = &call.arguments else { return call.name.clone() };
    let telling = arguments
        .values()
        .filter_map(|value| value.as_str())
        .find(|text| !text.is_empty() && text.chars().count() <= LONGEST && !text.chars().any(char::is_control));
    telling.map_or_else(|| call.name.clone(), |text| format!("{}: {text}", call.name))
}
