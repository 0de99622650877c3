//! Tools as the model and the user see them. Where a tool runs is the business of its MCP server.

use serde_json::Value;

use crate::{Content, ToolCallId};

/// A tool that the model may be shown. Order and bytes are part of the stable prefix of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolSpec {
    /// The name that the model calls: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments (an object).
    pub input_schema: Value,
    pub kind: ToolKind,
    /// The tool changes nothing, so that calls of it may run side by side and need no permission.
    /// Taken from the server's word only for builtin servers.
    pub read_only: bool,
    /// Who provides it; permission judges by this, never by the name.
    pub origin: ToolOrigin,
}

/// Where a tool comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToolOrigin {
    /// A builtin MCP server, named by its module: `workspace`.
    Builtin(String),
    /// An MCP server that the user or the client configured, by its configured name.
    External(String),
}

/// What a call does, for display. The words are ACP's `ToolKind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Fetch,
    Think,
    Other,
}

impl ToolKind {
    /// The word that ACP and our MCP metadata use.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolKind::Read => "read",
            ToolKind::Edit => "edit",
            ToolKind::Search => "search",
            ToolKind::Execute => "execute",
            ToolKind::Fetch => "fetch",
            ToolKind::Think => "think",
            ToolKind::Other => "other",
        }
    }

    /// Reads [`ToolKind::as_str`] back; an unknown word is [`ToolKind::Other`].
    pub fn from_word(word: &str) -> ToolKind {
        [ToolKind::Read, ToolKind::Edit, ToolKind::Search, ToolKind::Execute, ToolKind::Fetch, ToolKind::Think]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .unwrap_or(ToolKind::Other)
    }
}

/// A call that the model made.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolCall {
    pub id: ToolCallId,
    pub name: String,
    pub arguments: ToolArguments,
}

/// The arguments of a call. What does not parse is kept, so that the error can show it and history stays true.
#[derive(Clone, PartialEq, Debug)]
pub enum ToolArguments {
    /// A JSON object. Empty or missing arguments are `{}`.
    Object(serde_json::Map<String, Value>),
    /// The bytes as the model sent them, and why they are no JSON object.
    Invalid { raw: String, reason: String },
}

impl ToolArguments {
    /// The object, if there is one.
    pub fn object(&self) -> Option<&serde_json::Map<String, Value>> {
        match self {
            ToolArguments::Object(map) => Some(map),
            ToolArguments::Invalid { .. } => None,
        }
    }

    /// A string argument.
    pub fn str(&self, key: &str) -> Option<&str> {
        self.object()?.get(key)?.as_str()
    }
}

/// What a call gave. A failed call is data for the model, not an error of ours.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolOutput {
    pub content: Vec<Content>,
    pub is_error: bool,
    /// Facts for display; the model does not see them.
    pub details: ToolDetails,
}

impl ToolOutput {
    /// A successful text.
    pub fn text(text: impl Into<String>) -> ToolOutput {
        ToolOutput { content: vec![Content::Text(text.into())], ..ToolOutput::default() }
    }

    /// A failure, in words for the model.
    pub fn error(text: impl Into<String>) -> ToolOutput {
        ToolOutput { is_error: true, ..ToolOutput::text(text) }
    }

    /// All text of the output, joined by newlines.
    pub fn joined_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|content| match content {
                Content::Text(text) => Some(text.as_str()),
                Content::Resource { text, .. } => text.as_deref(),
                Content::Image(_) => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// What a client can show beside the text of a result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolDetails {
    pub locations: Vec<ToolLocation>,
    pub diffs: Vec<FileDiff>,
}

/// A file that a call touched or looks at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolLocation {
    /// Absolute path.
    pub path: String,
    /// 1-based.
    pub line: Option<u32>,
}

/// A file before and after an edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDiff {
    /// Absolute path.
    pub path: String,
    /// None where the file is new.
    pub old_text: Option<String>,
    pub new_text: String,
}
