//! From transcript to request: the messages as the model sees them.
//!
//! Invariant: a message maps to the same model messages for as long as the session lives, whatever follows it; so the
//! model-visible prefix is stable and the provider's prompt cache holds.

use peri_acp_types::{AssistantPart, Content, Message, MessageBody};
use peri_model::ModelMessage;

/// Maps a transcript. `model` is the one that will read it: thoughts of another model are sealed for that one and left out.
pub(crate) fn model_messages<'a>(messages: impl IntoIterator<Item = &'a Message>, model: &str) -> Vec<ModelMessage> {
    messages.into_iter().filter_map(|message| model_message(message, model)).collect()
}

fn model_message(message: &Message, model: &str) -> Option<ModelMessage> {
    match &message.body {
        MessageBody::User(content) => Some(ModelMessage::User(content.clone())),
        MessageBody::Notice(text) => Some(ModelMessage::User(vec![Content::Text(format!("[peri] {text}"))])),
        MessageBody::Summary(summary) => Some(ModelMessage::User(vec![Content::Text(summary.text.clone())])),
        MessageBody::ToolResults(results) => Some(ModelMessage::ToolResults(results.clone())),
        MessageBody::Assistant(assistant) => {
            let parts: Vec<AssistantPart> = assistant
                .parts
                .iter()
                .filter(|part| !matches!(part, AssistantPart::Thought(_)) || assistant.model == model)
                .cloned()
                .collect();
            // An answer without a word is a fact of the history, but no provider takes it back.
            (!parts.is_empty()).then_some(ModelMessage::Assistant(parts))
        }
    }
}
