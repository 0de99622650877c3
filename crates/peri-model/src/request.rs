//! What a model is asked. Domain words only: each adapter knows how its wire says them.

use peri_acp_types::{AssistantPart, Content, ToolResult, ToolSpec};

/// One request, whole. Two requests of a session differ only at the end of `messages`, so that the provider's prompt
/// cache holds.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelRequest {
    /// System text, in parts that are sent in this order.
    pub system: Vec<String>,
    pub tools: Vec<ToolSpec>,
    pub messages: Vec<ModelMessage>,
    /// The most tokens that the answer may have, thoughts included.
    pub max_output_tokens: u32,
    pub thinking: Thinking,
}

/// A message as the model sees it.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelMessage {
    User(Vec<Content>),
    Assistant(Vec<AssistantPart>),
    /// Answers to all calls of the assistant message before it.
    ToolResults(Vec<ToolResult>),
}

/// How much the model may think before it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Thinking {
    /// The request does not mention it.
    #[default]
    Unset,
    /// At most so many tokens.
    Budget(u32),
}
