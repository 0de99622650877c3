//! What the model, and through it the user, reads when a call does not run.
//!
//! Invariant: every text says that the call was not run, and one that a setting would have changed names that setting.

use peri_acp_types::{PermissionMode, ToolCall, ToolOutput, ToolSpec};
use peri_config::PermissionRule;

use super::judge::file_of;
use super::rule::SHELL_TOOL;

/// The longest command or path that is repeated, in characters.
const SUBJECT_CHARS: usize = 200;

/// The call as a rule would name it: `Bash(npm test)`.
pub(super) fn subject(tool: &ToolSpec, call: &ToolCall) -> String {
    match detail(tool, call) {
        Some(detail) => format!("{}({})", tool.name, one_line(detail)),
        None => tool.name.clone(),
    }
}

/// The call as a headline: `Bash: npm test`.
pub(super) fn title(tool: &ToolSpec, call: &ToolCall) -> String {
    match detail(tool, call) {
        Some(detail) => format!("{}: {}", tool.name, one_line(detail)),
        None => tool.name.clone(),
    }
}

fn detail<'a>(tool: &ToolSpec, call: &'a ToolCall) -> Option<&'a str> {
    let is_shell = tool.name == SHELL_TOOL && matches!(tool.origin, peri_acp_types::ToolOrigin::Builtin(_));
    if is_shell { call.arguments.str("command") } else { file_of(tool, call) }
}

/// The first line, without control characters, cut to a bearable length.
fn one_line(text: &str) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(SUBJECT_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

pub(super) fn denied(subject: &str, reason: &str) -> ToolOutput {
    ToolOutput::error(format!(
        "Refused: {subject} was not run: {reason}. Do not try to do the same in another way; do without it, or tell the \
         user what it is needed for."
    ))
}

pub(super) fn rejected(subject: &str) -> ToolOutput {
    ToolOutput::error(format!(
        "Refused: {subject} was not run: the user said no. Do not try to do the same in another way; ask the user how to \
         go on, or go on without it."
    ))
}

pub(super) fn cancelled(subject: &str) -> ToolOutput {
    ToolOutput::error(format!("Not run: the turn was cancelled while permission for {subject} was being asked."))
}

/// What would have let a call run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Remedy {
    /// Rules that together would allow it; empty where none would.
    pub(super) rules: Vec<PermissionRule>,
    /// The least trusting mode that would.
    pub(super) mode: Option<PermissionMode>,
}

/// `why` nobody answered: a clause, as the broker gives it.
pub(super) fn unavailable(subject: &str, reason: &str, why: &str, remedy: &Remedy) -> ToolOutput {
    let why = match why.trim().trim_end_matches('.') {
        "" => "nobody can be asked",
        why => why,
    };
    let rules: Vec<String> = remedy.rules.iter().map(PermissionRule::to_string).collect();
    let by_rule = (!rules.is_empty()).then(|| {
        let them = if rules.len() == 1 { "that rule" } else { "those rules" };
        format!(
            "--allowed-tools {}, or with {them} under `permissions.allow` in settings.json",
            argument(&rules.join(","))
        )
    });
    let by_mode = remedy.mode.map(|mode| format!("--permission-mode {}", mode.as_str()));
    let ways: Vec<String> = by_rule.into_iter().chain(by_mode).collect();
    let remedy = match ways.is_empty() {
        true => "No rule and no mode allows it.".to_owned(),
        false => format!("The user can allow it with {}.", ways.join(", or with ")),
    };
    ToolOutput::error(format!(
        "Refused: {subject} was not run: it needs permission, and {why}. Why it needs permission: {reason}. {remedy}"
    ))
}

/// Text as one argument of a command line.
fn argument(text: &str) -> String {
    let is_safe_in_double = !text.contains(['"', '$', '`', '\\', '!']);
    if is_safe_in_double { format!("\"{text}\"") } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
