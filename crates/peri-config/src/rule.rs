//! The text form of permission rules: `Tool`, `Tool(pattern)`, `mcp__SERVER`, `mcp__SERVER__TOOL`.
//!
//! Owns: reading and writing that form. Must not: know what a pattern matches; the permission middleware judges. Invariant: a rule that was read is written back with the same text.

use std::fmt;
use std::str::FromStr;

use crate::mcp::is_server_name;
use crate::path::steers_display;
use crate::reader::nearest;

/// The longest rule that is accepted, in bytes.
const MAX_RULE_BYTES: usize = 4096;
/// How a rule names something of a configured MCP server.
const SERVER_PREFIX: &str = "mcp__";

/// Peri's own tools, as this version has them. A rule about any other builtin tool matches nothing, and a misspelt `deny`
/// must not be taken for a working one. The composition root's tests compare this with the servers' catalogs.
pub const BUILTIN_TOOLS: [&str; 8] = ["Bash", "BashOutput", "Edit", "Glob", "Grep", "KillBash", "Read", "Write"];

/// Which calls a rule is about. What becomes of them is the list in which it stands.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PermissionRule {
    subject: RuleSubject,
    pattern: Option<String>,
}

/// Whose calls.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RuleSubject {
    /// A tool of Peri's own. Never one of a configured server, whatever name that one chooses.
    Builtin(String),
    /// Every tool of a configured MCP server, by the server's configured name.
    Server(String),
    /// One tool of a configured MCP server.
    ServerTool { server: String, tool: String },
}

/// Text that is no rule. `Display` reads on from the key and says how to write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleError {
    #[error("must not be empty: write `Tool` or `Tool(pattern)`")]
    Empty,
    #[error("must not be longer than {MAX_RULE_BYTES} bytes")]
    TooLong,
    #[error("must not hold line breaks or other control characters")]
    ControlCharacter,
    #[error("must begin with the name of a tool (letters, digits, `_`, `-`), right before `(` if there is one")]
    ToolName,
    #[error("must end with `)`, since it has a `(`")]
    Unclosed,
    #[error("has an empty pattern: write the tool's name alone for every call of it")]
    EmptyPattern,
    #[error("must name a server: `mcp__SERVER` for all of its tools, or `mcp__SERVER__TOOL`")]
    ServerName,
    #[error("must have no pattern: a rule about an MCP server's tool covers every call of it")]
    PatternOnServer,
    #[error("must name one tool: to let everything pass, set `permissions.mode`")]
    EveryTool,
}

impl PermissionRule {
    pub fn subject(&self) -> &RuleSubject {
        &self.subject
    }

    /// What stands in the parentheses: never empty. None: every call.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }

    /// For a rule about a builtin tool that this version does not have: a message that reads on from the rule, and the
    /// tool that was probably meant.
    pub(crate) fn unknown_tool(&self) -> Option<(&'static str, Option<String>)> {
        match &self.subject {
            RuleSubject::Builtin(tool) if !BUILTIN_TOOLS.contains(&tool.as_str()) => {
                let meant = nearest(tool, &BUILTIN_TOOLS).map(|known| format!("did you mean `{known}`?"));
                Some(("names no tool of Peri and has no effect", meant))
            }
            _ => None,
        }
    }

    /// A rule about a builtin tool.
    ///
    /// # Errors
    /// [`RuleError`] where its text could not be read back.
    pub fn builtin(tool: &str, pattern: Option<&str>) -> Result<PermissionRule, RuleError> {
        match pattern {
            None => tool.parse(),
            Some(pattern) => format!("{tool}({pattern})").parse(),
        }
    }
}

impl FromStr for PermissionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<PermissionRule, RuleError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        if text.len() > MAX_RULE_BYTES {
            return Err(RuleError::TooLong);
        }
        if text.contains(steers_display) {
            return Err(RuleError::ControlCharacter);
        }
        let (name, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or(RuleError::Unclosed)?)),
        };
        if pattern.is_some_and(|pattern| pattern.trim().is_empty()) {
            return Err(RuleError::EmptyPattern);
        }
        let subject = parse_subject(name)?;
        if pattern.is_some() && !matches!(subject, RuleSubject::Builtin(_)) {
            return Err(RuleError::PatternOnServer);
        }
        Ok(PermissionRule { subject, pattern: pattern.map(str::to_owned) })
    }
}

fn parse_subject(name: &str) -> Result<RuleSubject, RuleError> {
    if name == "*" {
        return Err(RuleError::EveryTool);
    }
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let Some(rest) = name.strip_prefix(SERVER_PREFIX) else {
        return if is_name(name) { Ok(RuleSubject::Builtin(name.to_owned())) } else { Err(RuleError::ToolName) };
    };
    // The server's configured name ends at the first `__`; its tools may have any name that the server chooses.
    let is_tool = |text: &str| !text.is_empty() && text != "*" && !text.contains(char::is_whitespace);
    match rest.split_once("__") {
        None if is_server_name(rest) => Ok(RuleSubject::Server(rest.to_owned())),
        Some((server, tool)) if is_server_name(server) && is_tool(tool) => {
            Ok(RuleSubject::ServerTool { server: server.to_owned(), tool: tool.to_owned() })
        }
        _ => Err(RuleError::ServerName),
    }
}

impl fmt::Display for RuleSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleSubject::Builtin(tool) => f.write_str(tool),
            RuleSubject::Server(server) => write!(f, "{SERVER_PREFIX}{server}"),
            RuleSubject::ServerTool { server, tool } => write!(f, "{SERVER_PREFIX}{server}__{tool}"),
        }
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            None => self.subject.fmt(f),
            Some(pattern) => write!(f, "{}({pattern})", self.subject),
        }
    }
}

/// Takes `Read,Bash(git log:*) Edit` apart: rules end at a comma or white space outside parentheses. Reads none of them.
pub fn split_rule_list(text: &str) -> Vec<String> {
    let mut rules = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            rules.push(String::new());
        } else if let Some(rule) = rules.last_mut() {
            rule.push(c);
        }
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}
