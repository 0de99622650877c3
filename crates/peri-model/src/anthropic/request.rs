//! A request as this wire writes it.
//!
//! Invariant: a message's bytes depend on the message alone, cache markers apart, so that a request begins with the bytes
//! of the one before it. What the wire refuses (empty texts, unsigned thoughts, odd names) is mended here, always alike.

use std::borrow::Cow;

use peri_acp_types::{AssistantPart, Content, Thought, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

use super::thinking::{OutputConfig, WireThinking, wire_thinking};
use crate::ids::allowed;
use crate::plain::{self, Shown};
use crate::seal;
use crate::{ModelMessage, ModelRequest};

/// The longest name or id of a tool call that the wire takes, in bytes.
const MAX_ID_BYTES: usize = 128;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<WireTool<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Block<'a>>>,
    messages: Vec<WireMessage<'a>>,
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
    let (thinking, output_config) = wire_thinking(model, request);
    WireRequest { model, max_tokens, stream: true, thinking, output_config, tools, system, messages }
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    let input_schema = plain::tool_schema(&tool.input_schema);
    WireTool { name: allowed(&tool.name, MAX_ID_BYTES), description: &tool.description, input_schema }
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
    let signature = thought.signature.as_deref().filter(|seal| !seal.is_empty() && !seal::is_ours(seal))?;
    Some(match thought.redacted {
        true => Block::RedactedThinking { data: signature },
        false => Block::Thinking { thinking: &thought.text, signature },
    })
}

fn call_block(call: &ToolCall) -> Block<'_> {
    Block::ToolUse {
        id: allowed(&call.id.0, MAX_ID_BYTES),
        name: allowed(&call.name, MAX_ID_BYTES),
        input: plain::arguments(&call.arguments),
    }
}

fn result_block(result: &ToolResult) -> Block<'_> {
    let mut content: Vec<_> = result.output.content.iter().filter_map(content_block).collect();
    if content.is_empty() {
        content.push(Block::Text { text: "(no output)".into() });
    }
    let tool_use_id = allowed(&result.call_id.0, MAX_ID_BYTES);
    Block::ToolResult { tool_use_id, content, is_error: result.output.is_error }
}

fn content_block(content: &Content) -> Option<Block<'_>> {
    Some(match plain::shown(content)? {
        Shown::Text(text) => Block::Text { text },
        Shown::Image(image) => {
            Block::Image { source: ImageSource::Base64 { media_type: &image.mime_type, data: &image.base64 } }
        }
    })
}

fn text(words: &str) -> Option<Block<'_>> {
    plain::said(words).map(|words| Block::Text { text: words.into() })
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
