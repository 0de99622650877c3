//! A request as this wire writes it.
//!
//! Invariant: a message's bytes depend on the message alone, cache markers apart, so that a request begins with the bytes
//! of the one before it. What the wire refuses (empty texts, unsigned thoughts, odd names) is mended here, always alike.

use std::borrow::Cow;

use peri_acp_types::{AssistantPart, Content, Image, Thought, ToolArguments, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ids::allowed;
use crate::{ModelMessage, ModelRequest, Thinking};

/// The least budget for thoughts that the wire allows.
const MIN_THINKING_BUDGET: u32 = 1024;
/// Image types that the wire takes.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// How arguments that are no object go back: the wire wants one.
const INVALID_ARGUMENTS: &str = "INVALID_JSON";
/// How many of the newest messages of the user's side carry a cache marker. Two, because the provider looks for an earlier
/// entry only some blocks back from a marker, and one step with many calls can be longer than that.
const MARKED_MESSAGES: usize = 2;

/// The request. `messages` comes last, so that the bytes up to its end are the stable prefix.
#[derive(Serialize)]
pub(super) struct WireRequest<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<WireThinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<WireTool<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Block<'a>>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireThinking {
    Enabled { budget_tokens: u32 },
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: Role,
    content: Vec<Marked<Block<'a>>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Map<String, Value>>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

/// A block, and whether the provider's prompt cache should keep what ends with it.
#[derive(Serialize)]
struct Marked<T> {
    #[serde(flatten)]
    block: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

pub(super) fn wire_request<'a>(model: &'a str, request: &'a ModelRequest) -> WireRequest<'a> {
    let max_tokens = request.output_tokens();
    let mut tools: Vec<_> = request.tools.iter().map(|tool| unmarked(wire_tool(tool))).collect();
    let mut system: Vec<_> = request.system.iter().filter_map(|part| text(part)).map(unmarked).collect();
    let mut messages: Vec<_> = request.messages.iter().filter_map(wire_message).collect();
    if messages.first().is_none_or(|first| first.role == Role::Assistant) {
        messages.insert(0, WireMessage { role: Role::User, content: vec![placeholder("(no message)")] });
    }
    mark(tools.last_mut());
    mark(system.last_mut());
    for message in messages.iter_mut().rev().filter(|message| message.role == Role::User).take(MARKED_MESSAGES) {
        mark(message.content.last_mut());
    }
    WireRequest { model, max_tokens, stream: true, thinking: wire_thinking(request), tools, system, messages }
}

fn wire_thinking(request: &ModelRequest) -> Option<WireThinking> {
    match request.thinking {
        Thinking::Unset | Thinking::Effort(_) => None,
        Thinking::Budget(tokens) => {
            // The answer needs room beside the thoughts.
            let budget_tokens = tokens.min(request.output_tokens().saturating_sub(1));
            (budget_tokens >= MIN_THINKING_BUDGET).then_some(WireThinking::Enabled { budget_tokens })
        }
    }
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    let input_schema = match &tool.input_schema {
        Value::Object(schema) if schema.contains_key("type") => Cow::Borrowed(&tool.input_schema),
        Value::Object(schema) => {
            let mut typed = Map::from_iter([("type".to_owned(), json!("object"))]);
            typed.extend(schema.clone());
            Cow::Owned(Value::Object(typed))
        }
        _ => Cow::Owned(json!({"type": "object"})),
    };
    WireTool { name: allowed(&tool.name), description: &tool.description, input_schema }
}

/// None for an answer of which nothing can go back.
fn wire_message(message: &ModelMessage) -> Option<WireMessage<'_>> {
    match message {
        ModelMessage::User(content) => {
            let mut blocks: Vec<_> = content.iter().filter_map(content_block).map(unmarked).collect();
            if blocks.is_empty() {
                blocks.push(placeholder("(empty message)"));
            }
            Some(WireMessage { role: Role::User, content: blocks })
        }
        ModelMessage::ToolResults(results) => {
            let blocks: Vec<_> = results.iter().map(|result| unmarked(result_block(result))).collect();
            (!blocks.is_empty()).then_some(WireMessage { role: Role::User, content: blocks })
        }
        ModelMessage::Assistant(parts) => {
            let blocks: Vec<_> = parts.iter().filter_map(part_block).collect();
            let speaks = blocks.iter().any(|block| matches!(block, Block::Text { .. } | Block::ToolUse { .. }));
            // The wire takes no message that ends in a thought, let alone one that is nothing else.
            let blocks = without_last_thoughts(blocks);
            speaks.then(|| WireMessage { role: Role::Assistant, content: blocks.into_iter().map(unmarked).collect() })
        }
    }
}

fn without_last_thoughts(mut blocks: Vec<Block<'_>>) -> Vec<Block<'_>> {
    let is_thought = |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
    blocks
}

fn part_block(part: &AssistantPart) -> Option<Block<'_>> {
    match part {
        AssistantPart::Text(words) => text(words),
        AssistantPart::Thought(thought) => thought_block(thought),
        AssistantPart::ToolCall(call) => Some(call_block(call)),
    }
}

/// The wire takes back only what carries its seal.
fn thought_block(thought: &Thought) -> Option<Block<'_>> {
    let signature = thought.signature.as_deref().filter(|signature| !signature.is_empty())?;
    Some(match thought.redacted {
        true => Block::RedactedThinking { data: signature },
        false => Block::Thinking { thinking: &thought.text, signature },
    })
}

fn call_block(call: &ToolCall) -> Block<'_> {
    let input = match &call.arguments {
        ToolArguments::Object(map) => Cow::Borrowed(map),
        ToolArguments::Invalid { raw, .. } => {
            Cow::Owned(Map::from_iter([(INVALID_ARGUMENTS.to_owned(), Value::String(raw.clone()))]))
        }
    };
    Block::ToolUse { id: allowed(&call.id.0), name: allowed(&call.name), input }
}

fn result_block(result: &ToolResult) -> Block<'_> {
    let mut content: Vec<_> = result.output.content.iter().filter_map(content_block).collect();
    if content.is_empty() {
        content.push(Block::Text { text: "(no output)".into() });
    }
    Block::ToolResult { tool_use_id: allowed(&result.call_id.0), content, is_error: result.output.is_error }
}

fn content_block(content: &Content) -> Option<Block<'_>> {
    match content {
        Content::Text(words) => text(words),
        Content::Image(image) => Some(image_block(image)),
        Content::Resource { uri, text: Some(body), .. } => {
            Some(Block::Text { text: format!("<resource uri=\"{uri}\">\n{body}\n</resource>").into() })
        }
        Content::Resource { uri, mime_type, text: None } => {
            let kind = mime_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
            Some(Block::Text { text: format!("[resource {uri}{kind}]").into() })
        }
    }
}

fn image_block(image: &Image) -> Block<'_> {
    if IMAGE_TYPES.contains(&image.mime_type.as_str()) && !image.base64.is_empty() {
        return Block::Image { source: ImageSource::Base64 { media_type: &image.mime_type, data: &image.base64 } };
    }
    Block::Text { text: format!("[an image of type {:?}, which cannot be shown to you]", image.mime_type).into() }
}

/// The wire refuses texts that are nothing but white space.
fn text(words: &str) -> Option<Block<'_>> {
    (!words.trim().is_empty()).then_some(Block::Text { text: words.into() })
}

fn placeholder(words: &'static str) -> Marked<Block<'static>> {
    unmarked(Block::Text { text: words.into() })
}

fn unmarked<T>(block: T) -> Marked<T> {
    Marked { block, cache_control: None }
}

fn mark<T>(block: Option<&mut Marked<T>>) {
    if let Some(block) = block {
        block.cache_control = Some(CacheControl::Ephemeral);
    }
}
