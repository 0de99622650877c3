//! A request as this wire writes it.
//!
//! Invariant: an item's bytes depend on its message alone, so that a request begins with the bytes of the one before it.
//! The whole conversation goes with each request (`store: false`): nothing of a session lives at the provider.

use std::borrow::Cow;

use peri_acp_types::{AssistantPart, Content, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use super::reasoning::ReasoningItem;
use crate::ids::allowed;
use crate::openai::{self, MAX_NAME_BYTES};
use crate::plain::{self, Shown};
use crate::{ModelMessage, ModelRequest};

/// The longest id of a call that the wire takes, in bytes.
const MAX_ID_BYTES: usize = 64;
/// How the provider's reasoning comes in a form that can go back to it.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";
/// Beginnings of the names of models that do not reason, and refuse to be asked for it.
const WITHOUT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-"];

/// The request. `input` comes last, so that the bytes up to its end are the stable prefix.
#[derive(Serialize)]
pub(super) struct WireRequest<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<WireReasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct WireReasoning {
    effort: &'static str,
    /// Only with an effort: some accounts are refused it.
    summary: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireTool<'a> {
    Function {
        name: Cow<'a, str>,
        description: &'a str,
        parameters: Cow<'a, Value>,
        /// What is not said is strict here, and schemas of MCP servers are not.
        strict: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: Role, content: ItemContent<'a> },
    Reasoning(ReasoningItem),
    FunctionCall { call_id: Cow<'a, str>, name: Cow<'a, str>, arguments: String },
    FunctionCallOutput { call_id: Cow<'a, str>, output: ItemContent<'a> },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

/// A text where there is nothing else, which every server takes.
#[derive(Serialize)]
#[serde(untagged)]
enum ItemContent<'a> {
    Text(String),
    Parts(Vec<InputPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputPart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
}

pub(super) fn wire_request<'a>(
    model: &'a str,
    request: &'a ModelRequest,
) -> Result<WireRequest<'a>, serde_json::Error> {
    let system: Vec<&str> = request.system.iter().filter_map(|part| plain::said(part)).collect();
    let mut input = Vec::new();
    for message in &request.messages {
        add_items(message, &mut input)?;
    }
    if input.is_empty() {
        input.push(user_text("(no message)"));
    }
    Ok(WireRequest {
        model,
        stream: true,
        store: false,
        include: if may_reason(model) { vec![ENCRYPTED_REASONING] } else { vec![] },
        max_output_tokens: openai::output_tokens(request),
        reasoning: request.thinking.effort().map(|effort| WireReasoning { effort: effort.as_str(), summary: "auto" }),
        parallel_tool_calls: (!request.tools.is_empty()).then_some(true),
        tools: request.tools.iter().map(wire_tool).collect(),
        instructions: (!system.is_empty()).then(|| system.join("\n\n")),
        input,
    })
}

/// Routers put the maker before the name: `openai/gpt-4o`.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !WITHOUT_REASONING.iter().any(|beginning| name.starts_with(beginning))
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    WireTool::Function {
        name: allowed(&tool.name, MAX_NAME_BYTES),
        description: &tool.description,
        parameters: plain::tool_schema(&tool.input_schema),
        strict: false,
    }
}

fn add_items<'a>(message: &'a ModelMessage, input: &mut Vec<Item<'a>>) -> Result<(), serde_json::Error> {
    match message {
        ModelMessage::User(content) => {
            let content = item_content(content).unwrap_or_else(|| ItemContent::Text("(empty message)".to_owned()));
            input.push(Item::Message { role: Role::User, content });
        }
        ModelMessage::Assistant(parts) => {
            let items = parts.iter().filter_map(|part| part_item(part).transpose());
            input.extend(without_last_thoughts(items.collect::<Result<_, _>>()?));
        }
        ModelMessage::ToolResults(results) => input.extend(results.iter().map(result_item)),
    }
    Ok(())
}

/// A reasoning item belongs to the item after it; one that is the last of its answer is refused.
fn without_last_thoughts(mut items: Vec<Item<'_>>) -> Vec<Item<'_>> {
    while matches!(items.last(), Some(Item::Reasoning(_))) {
        items.pop();
    }
    items
}

fn part_item(part: &AssistantPart) -> Result<Option<Item<'_>>, serde_json::Error> {
    Ok(match part {
        AssistantPart::Text(text) => plain::said(text)
            .map(|text| Item::Message { role: Role::Assistant, content: ItemContent::Text(text.to_owned()) }),
        AssistantPart::Thought(thought) => ReasoningItem::of(thought).map(Item::Reasoning),
        AssistantPart::ToolCall(call) => Some(call_item(call)?),
    })
}

fn call_item(call: &ToolCall) -> Result<Item<'_>, serde_json::Error> {
    Ok(Item::FunctionCall {
        call_id: allowed(&call.id.0, MAX_ID_BYTES),
        name: allowed(&call.name, MAX_NAME_BYTES),
        arguments: serde_json::to_string(plain::arguments(&call.arguments).as_ref())?,
    })
}

fn result_item(result: &ToolResult) -> Item<'_> {
    let output = item_content(&result.output.content).unwrap_or_else(|| ItemContent::Text("(no output)".to_owned()));
    let output = if result.output.is_error { marked_as_error(output) } else { output };
    Item::FunctionCallOutput { call_id: allowed(&result.call_id.0, MAX_ID_BYTES), output }
}

/// The wire has no mark for a failure.
fn marked_as_error(output: ItemContent<'_>) -> ItemContent<'_> {
    match output {
        ItemContent::Text(text) => ItemContent::Text(format!("Error: {text}")),
        ItemContent::Parts(mut parts) => {
            parts.insert(0, InputPart::InputText { text: "Error:".into() });
            ItemContent::Parts(parts)
        }
    }
}

/// None where nothing of it says anything.
fn item_content(content: &[Content]) -> Option<ItemContent<'_>> {
    let shown: Vec<Shown<'_>> = content.iter().filter_map(plain::shown).collect();
    let has_images = shown.iter().any(|shown| matches!(shown, Shown::Image(_)));
    if shown.is_empty() {
        return None;
    }
    let parts = shown.into_iter().map(|shown| match shown {
        Shown::Text(text) => InputPart::InputText { text },
        Shown::Image(image) => InputPart::InputImage { image_url: openai::data_url(image) },
    });
    if has_images {
        return Some(ItemContent::Parts(parts.collect()));
    }
    let texts: Vec<String> = parts
        .map(|part| match part {
            InputPart::InputText { text } => text.into_owned(),
            InputPart::InputImage { image_url } => image_url,
        })
        .collect();
    Some(ItemContent::Text(texts.join("\n\n")))
}

fn user_text(words: &str) -> Item<'static> {
    Item::Message { role: Role::User, content: ItemContent::Text(words.to_owned()) }
}
