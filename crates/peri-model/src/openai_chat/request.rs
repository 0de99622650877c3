//! A request as this wire writes it.
//!
//! Invariant: a message's bytes depend on the message alone, so that a request begins with the bytes of the one before it.
//! Of several forms the plainest is taken: servers of this protocol know less than the protocol does.

use std::borrow::Cow;

use peri_acp_types::{AssistantPart, Content, Effort, Image, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use super::reasoning::Reasoning;
use crate::ids::allowed;
use crate::openai::{self, Host, MAX_NAME_BYTES};
use crate::plain::{self, Shown};
use crate::{ModelMessage, ModelRequest};

/// The longest id of a tool call that the wire takes, in bytes.
const MAX_ID_BYTES: usize = 40;

/// The request. `messages` comes last, so that the bytes up to its end are the stable prefix.
#[derive(Serialize)]
pub(super) struct WireRequest<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireTool<'a> {
    Function { function: WireFunction<'a> },
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: String,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// Null beside calls: some templates print what is missing, some servers refuse what is empty.
        content: Option<String>,
        #[serde(flatten)]
        reasoning: Reasoning,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

/// A text where there is nothing else: servers without eyes take no list of parts.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(String),
    Parts(Vec<UserPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UserPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireCall<'a> {
    Function { id: Cow<'a, str>, function: CalledFunction<'a> },
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    /// JSON, as a text.
    arguments: String,
}

pub(super) fn wire_request<'a>(
    model: &'a str,
    host: Host,
    request: &'a ModelRequest,
) -> Result<WireRequest<'a>, serde_json::Error> {
    let system: Vec<&str> = request.system.iter().filter_map(|part| plain::said(part)).collect();
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(WireMessage::System { content: system.join("\n\n") });
    }
    for message in &request.messages {
        let begins = !messages.iter().any(|message| !matches!(message, WireMessage::System { .. }));
        let more = wire_messages(message)?;
        // Templates of local models want the user to begin.
        if begins && !more.is_empty() && !matches!(message, ModelMessage::User(_)) {
            messages.push(user_text("(no message)"));
        }
        messages.extend(more);
    }
    if messages.is_empty() {
        messages.push(user_text("(no message)"));
    }
    // OpenAI refuses the older name for its newer models; most others know no other.
    let (max_tokens, max_completion_tokens) = match host {
        Host::OpenAi => (None, openai::output_tokens(request)),
        Host::Mistral | Host::Other => (openai::output_tokens(request), None),
    };
    Ok(WireRequest {
        model,
        stream: true,
        // Mistral sends usage unasked, and refuses members that it does not know.
        stream_options: (host != Host::Mistral).then_some(StreamOptions { include_usage: true }),
        max_tokens,
        max_completion_tokens,
        reasoning_effort: request.thinking.effort().map(Effort::as_str),
        tools: request.tools.iter().map(wire_tool).collect(),
        messages,
    })
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    WireTool::Function {
        function: WireFunction {
            name: allowed(&tool.name, MAX_NAME_BYTES),
            description: &tool.description,
            parameters: plain::tool_schema(&tool.input_schema),
        },
    }
}

/// Nothing for an answer of which nothing can go back.
fn wire_messages(message: &ModelMessage) -> Result<Vec<WireMessage<'_>>, serde_json::Error> {
    Ok(match message {
        ModelMessage::User(content) => vec![user(content)],
        ModelMessage::Assistant(parts) => assistant(parts)?.into_iter().collect(),
        ModelMessage::ToolResults(results) => tool_results(results),
    })
}

fn user(content: &[Content]) -> WireMessage<'_> {
    let shown: Vec<Shown<'_>> = content.iter().filter_map(plain::shown).collect();
    if shown.is_empty() {
        return user_text("(empty message)");
    }
    let texts: Option<Vec<&str>> = shown
        .iter()
        .map(|shown| match shown {
            Shown::Text(text) => Some(text.as_ref()),
            Shown::Image(_) => None,
        })
        .collect();
    let content = match texts {
        Some(texts) => UserContent::Text(texts.join("\n\n")),
        None => UserContent::Parts(shown.into_iter().map(user_part).collect()),
    };
    WireMessage::User { content }
}

fn user_part(shown: Shown<'_>) -> UserPart<'_> {
    match shown {
        Shown::Text(text) => UserPart::Text { text },
        Shown::Image(image) => image_part(image),
    }
}

fn image_part(image: &Image) -> UserPart<'_> {
    UserPart::ImageUrl { image_url: ImageUrl { url: openai::data_url(image) } }
}

fn user_text(words: &str) -> WireMessage<'static> {
    WireMessage::User { content: UserContent::Text(words.to_owned()) }
}

fn assistant(parts: &[AssistantPart]) -> Result<Option<WireMessage<'_>>, serde_json::Error> {
    let mut text = String::new();
    let mut reasoning = Reasoning::default();
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text(words) => text.push_str(words),
            AssistantPart::Thought(thought) => reasoning.take_back(thought),
            AssistantPart::ToolCall(call) => tool_calls.push(wire_call(call)?),
        }
    }
    let content = plain::said(&text).map(str::to_owned);
    let speaks = content.is_some() || !tool_calls.is_empty();
    Ok(speaks.then_some(WireMessage::Assistant { content, reasoning, tool_calls }))
}

fn wire_call(call: &ToolCall) -> Result<WireCall<'_>, serde_json::Error> {
    let arguments = serde_json::to_string(plain::arguments(&call.arguments).as_ref())?;
    let function = CalledFunction { name: allowed(&call.name, MAX_NAME_BYTES), arguments };
    Ok(WireCall::Function { id: allowed(&call.id.0, MAX_ID_BYTES), function })
}

/// The results, and after them what of them is an image: a result is text here.
fn tool_results(results: &[ToolResult]) -> Vec<WireMessage<'_>> {
    let mut messages = Vec::new();
    let mut images = Vec::new();
    for result in results {
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        for shown in result.output.content.iter().filter_map(plain::shown) {
            match shown {
                Shown::Text(text) => texts.push(text),
                Shown::Image(image) => {
                    images.push(image_part(image));
                    texts.push(format!("(image {}, shown in the message after the results)", images.len()).into());
                }
            }
        }
        let content = if texts.is_empty() { "(no output)".to_owned() } else { texts.join("\n") };
        // The wire has no mark for a failure.
        let content = if result.output.is_error { format!("Error: {content}") } else { content };
        messages.push(WireMessage::Tool { tool_call_id: allowed(&result.call_id.0, MAX_ID_BYTES), content });
    }
    if !images.is_empty() {
        let mut parts = vec![UserPart::Text { text: "The images of the results above, in their order:".into() }];
        parts.extend(images);
        messages.push(WireMessage::User { content: UserContent::Parts(parts) });
    }
    messages
}
