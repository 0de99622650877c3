//! What of a session can be changed while it lives, in words that every layer shares.

use crate::PermissionMode;

/// Tokens of an answer where neither settings nor the model say, for the protocols that want a figure.
pub const DEFAULT_MAX_OUTPUT_TOKENS: u32 = 32_000;

/// How much a model should think before it answers, in the field's words. What it costs is the provider's business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    /// Every effort, the least first.
    pub const ALL: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

    /// The word in settings, on the command line and as ACP option value.
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// Reads [`Effort::as_str`] back.
    pub fn from_word(word: &str) -> Option<Effort> {
        Effort::ALL.into_iter().find(|effort| effort.as_str() == word)
    }
}

/// What a session works with now. Its actor owns it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionSettings {
    /// `PROVIDER/MODEL`.
    pub model: String,
    pub permission_mode: PermissionMode,
    /// None: requests do not mention it.
    pub effort: Option<Effort>,
}

/// A command that a client can offer: a prompt that begins with `/NAME` runs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandSpec {
    /// Without the slash.
    pub name: String,
    /// One line.
    pub description: String,
    /// What may follow the name, for people; None where nothing may.
    pub input_hint: Option<String>,
}
