//! A stored transcript as the updates that a client would have seen.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{ContentChunk, SessionUpdate, ToolCallStatus};
use peri_acp_types::{
    AssistantPart, Message, MessageBody, ToolArguments, ToolCall, ToolCallId, ToolKind, ToolOutput, ToolResult,
};
use peri_controller::ShownTool;

use super::content::{text_block, to_block};
use super::tool;
use super::view::said_by_peri;

/// The transcript's updates, message by message in its order. A call comes with its result, which is in the message after it,
/// and with the kind of the tool of its name among those that the session has now.
pub(crate) fn replay<'a>(
    messages: &'a [Message],
    tools: &'a [ShownTool],
) -> impl Iterator<Item = Vec<SessionUpdate>> + use<'a> {
    let results: HashMap<&ToolCallId, &ToolOutput> = messages
        .iter()
        .filter_map(|message| match &message.body {
            MessageBody::ToolResults(results) => Some(results),
            MessageBody::User(_) | MessageBody::Assistant(_) | MessageBody::Notice(_) | MessageBody::Summary(_) => None,
        })
        .flatten()
        .map(|ToolResult { call_id, output }| (call_id, output))
        .collect();
    let past = Past { results, tools };
    messages.iter().map(move |message| updates_of(message, &past))
}

/// What a stored call does not say itself.
struct Past<'a> {
    results: HashMap<&'a ToolCallId, &'a ToolOutput>,
    tools: &'a [ShownTool],
}

fn updates_of(message: &Message, past: &Past<'_>) -> Vec<SessionUpdate> {
    let chunk = |block| ContentChunk::new(block).message_id(Some(message.id.to_string().into()));
    match &message.body {
        MessageBody::User(content) => {
            content.iter().map(|content| SessionUpdate::UserMessageChunk(chunk(to_block(content)))).collect()
        }
        MessageBody::Notice(text) => vec![SessionUpdate::AgentMessageChunk(said_by_peri(text))],
        MessageBody::Summary(_) => vec![SessionUpdate::AgentMessageChunk(said_by_peri(
            "the model's context was compacted here; from here on it sees a summary of what came before.",
        ))],
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
                AssistantPart::ToolCall(call) => Some(SessionUpdate::ToolCall(told_call(call, past))),
            })
            .collect(),
    }
}

fn told_call(call: &ToolCall, past: &Past<'_>) -> agent_client_protocol::v1::schema::ToolCall {
    // The tool may be gone, with its server.
    let kind = past.tools.iter().find(|tool| tool.name == call.name).map_or(ToolKind::Other, |tool| tool.kind);
    let mut told = tool::announced(&call.id.0, &title(call), kind).name(call.name.clone());
    told.raw_input = Some(tool::raw_input(&call.arguments));
    match past.results.get(&call.id) {
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
