//! Reasoning items: what of them is kept in a thought, so that the item can go back as it came.
//!
//! The provider keeps nothing, so an item is of use to it only with its encrypted content. Invariant: an item goes back
//! with the very id, summary and content with which it came.

use peri_acp_types::Thought;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::seal;

/// The protocol's name in a seal.
const PROTOCOL: &str = "openai-responses";

/// A reasoning item, as far as it goes back.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct ReasoningItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The wire wants it even where it is empty.
    #[serde(default)]
    summary: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encrypted_content: Option<String>,
}

impl ReasoningItem {
    /// The seal for the item's thought; None where the item is of no use to the provider.
    pub(super) fn seal(&self) -> Option<String> {
        self.encrypted_content.as_ref().filter(|content| !content.is_empty())?;
        Some(seal::seal(PROTOCOL, serde_json::to_value(self).ok()?))
    }

    /// The item of a thought; None for a thought of another protocol.
    pub(super) fn of(thought: &Thought) -> Option<ReasoningItem> {
        serde_json::from_value(seal::open(PROTOCOL, thought.signature.as_deref()?)?).ok()
    }

    /// The readable text.
    pub(super) fn summary_text(&self) -> String {
        let texts = self.summary.iter().filter_map(|part| part.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    }
}
