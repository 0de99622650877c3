//! The one contract between a session that needs a decision and whoever can give it.

use crate::{SessionId, ToolCall, ToolKind, TurnId};

/// How much runs without being asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PermissionMode {
    /// Ask for anything that is not read-only.
    #[default]
    Default,
    /// As `Default`, but edits inside the workspace pass.
    AcceptEdits,
    /// Nothing is asked. Deny rules still apply.
    Bypass,
}

impl PermissionMode {
    /// Every mode, in order of trust.
    pub const ALL: [PermissionMode; 3] = [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Bypass];

    /// The word on the command line, in settings and as ACP mode id.
    pub fn as_str(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "accept-edits",
            PermissionMode::Bypass => "bypass",
        }
    }

    /// Reads [`PermissionMode::as_str`] back.
    pub fn from_word(word: &str) -> Option<PermissionMode> {
        PermissionMode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// A call that waits for a decision.
#[derive(Clone, PartialEq, Debug)]
pub struct PermissionRequest {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub call: ToolCall,
    pub kind: ToolKind,
    /// One line that says what would happen: `Bash: git push`.
    pub title: String,
    /// Why it is asked: the rule, the mode, or what could not be read.
    pub reason: String,
    /// The rules that "always" would write, shown before it is chosen. Empty: "always" is not offered.
    pub always_rules: Vec<String>,
}

/// What came back. Anything but the two allows is a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PermissionAnswer {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// The turn was cancelled meanwhile.
    Cancelled,
    /// Nobody is there to ask (print mode), or the way to them failed. The text says which.
    Unavailable(String),
}
