//! What a model is asked. Domain words only: each adapter knows how its wire says them.

use peri_acp_types::{AssistantPart, Content, DEFAULT_MAX_OUTPUT_TOKENS, Effort, ToolResult, ToolSpec};

/// One request, whole. Two requests of a session differ only at the end of `messages`, so that the provider's prompt
/// cache holds.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelRequest {
    /// System text, in parts that are sent in this order.
    pub system: Vec<String>,
    pub tools: Vec<ToolSpec>,
    pub messages: Vec<ModelMessage>,
    /// The most tokens that the answer may have, thoughts included, by settings or the model's limit. None: neither says.
    pub max_output_tokens: Option<u32>,
    /// What the context window has left for the answer, as far as is known; at least 1. A provider refuses more.
    pub output_room: u32,
    pub thinking: Thinking,
}

impl ModelRequest {
    /// The tokens to ask for, by a protocol that wants a figure in every request.
    pub fn output_tokens(&self) -> u32 {
        self.max_output_tokens.unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS).min(self.output_room).max(1)
    }
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
    /// As much as the provider holds right for that word.
    Effort(Effort),
}

/// Budgets up to which that effort is meant, in tokens, for models that take words and no figures.
const LOW_BUDGET: u32 = 4096;
const MEDIUM_BUDGET: u32 = 16_384;

impl Thinking {
    /// In the word that comes closest; None where the request does not mention it.
    pub(crate) fn effort(self) -> Option<Effort> {
        match self {
            Thinking::Unset => None,
            Thinking::Effort(effort) => Some(effort),
            Thinking::Budget(..=LOW_BUDGET) => Some(Effort::Low),
            Thinking::Budget(..=MEDIUM_BUDGET) => Some(Effort::Medium),
            Thinking::Budget(_) => Some(Effort::High),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_become_efforts() {
        let efforts = [0, 4096, 4097, 16_384, 16_385, u32::MAX].map(|tokens| Thinking::Budget(tokens).effort());
        let (low, medium, high) = (Some(Effort::Low), Some(Effort::Medium), Some(Effort::High));
        assert_eq!(efforts, [low, low, medium, medium, high, high]);
        assert_eq!(Thinking::Unset.effort(), None);
        assert_eq!(Thinking::Effort(Effort::High).effort(), high);
    }
}
