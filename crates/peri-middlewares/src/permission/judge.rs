//! The verdict on a call: deny before ask before allow, then the mode.
//!
//! Must not ask anybody or remember anything. Invariant: what cannot be told apart from something that a rule refuses is
//! asked about, and refused where nobody is to be asked.

use peri_acp_types::{PermissionMode, ToolCall, ToolOrigin, ToolOutput, ToolSpec};

use super::path_rule::{Breadth, Place};
use super::rule::{Pattern, Rule, Rules, SHELL_TOOL};
use super::shell::Access;
use super::shell_verdict::judge_shell;
use super::suggest;

/// Ends only what this session's own Bash started, which was judged then.
const KILL_TOOL: &str = "KillBash";

/// Parts of a workspace that decide what programs do there; `accept-edits` does not cover them.
const GUARDED: [&str; 4] = [".git", ".peri", ".claude", ".mcp.json"];

/// What becomes of a call.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Verdict {
    /// It runs; these files outside the workspace are granted to it.
    Allow {
        granted: Vec<String>,
    },
    Ask(Question),
    /// It does not run, for this reason.
    Deny(String),
    /// It cannot be judged, since its arguments are wrong; this is its result.
    Malformed(ToolOutput),
}

/// Why somebody must decide.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Question {
    /// Reads on from "because".
    pub(super) reason: String,
    /// Rules that may settle it for good. Whether they do is for the asker to find out.
    pub(super) candidates: Vec<peri_config::PermissionRule>,
    /// What a yes grants: the files outside the workspace, as they were resolved for this question.
    pub(super) granted: Vec<String>,
}

impl Question {
    /// A question that no rule can settle, since a rule asks it.
    pub(super) fn by_rule(reason: String) -> Question {
        Question { reason, candidates: Vec::new(), granted: Vec::new() }
    }
}

/// What a call is judged by.
#[derive(Clone, Copy)]
pub(super) struct Grounds<'a> {
    pub(super) rules: &'a Rules,
    pub(super) mode: PermissionMode,
    pub(super) place: Place<'a>,
}

/// How a builtin tool's argument tells what it is about.
enum Shape {
    File {
        argument: &'static str,
        default: Option<&'static str>,
        access: Access,
    },
    Shell,
    /// Nothing but its name.
    Whole,
}

fn shape(tool: &ToolSpec) -> Shape {
    let file = |argument, default, access| Shape::File { argument, default, access };
    match (&tool.origin, tool.name.as_str()) {
        (ToolOrigin::External(_), _) => Shape::Whole,
        (ToolOrigin::Builtin(_), "Read") => file("file_path", None, Access::Read),
        (ToolOrigin::Builtin(_), "Write" | "Edit") => file("file_path", None, Access::Write),
        (ToolOrigin::Builtin(_), "Grep" | "Glob") => file("path", Some("."), Access::Read),
        (ToolOrigin::Builtin(_), SHELL_TOOL) => Shape::Shell,
        (ToolOrigin::Builtin(_), _) => Shape::Whole,
    }
}

/// Judges a call.
pub(super) async fn judge(tool: &ToolSpec, call: &ToolCall, grounds: Grounds<'_>) -> Verdict {
    match shape(tool) {
        Shape::File { argument, default, access } => match text_argument(call, argument, default) {
            Ok(path) => judge_file(tool, path, access, grounds).await,
            Err(output) => Verdict::Malformed(output),
        },
        Shape::Shell => match text_argument(call, "command", None) {
            Ok(command) => judge_shell(tool, command, grounds).await,
            Err(output) => Verdict::Malformed(output),
        },
        Shape::Whole => judge_whole(tool, grounds),
    }
}

fn text_argument<'a>(
    call: &'a ToolCall,
    name: &'static str,
    default: Option<&'static str>,
) -> Result<&'a str, ToolOutput> {
    let given = call.arguments.object().and_then(|arguments| arguments.get(name));
    let text = match given {
        None | Some(serde_json::Value::Null) => default,
        Some(value) => value.as_str(),
    };
    text.ok_or_else(|| ToolOutput::error(format!("The call was not run: `{}` needs `{name}`, a text.", call.name)))
}

/// The path that a call is about, where it is about one.
pub(super) fn file_of<'a>(tool: &ToolSpec, call: &'a ToolCall) -> Option<&'a str> {
    match shape(tool) {
        Shape::File { argument, .. } => call.arguments.str(argument),
        Shape::Shell | Shape::Whole => None,
    }
}

/// What the rules say of a file.
pub(super) enum FileRuling<'a> {
    Deny(&'a Rule),
    /// This rule asks, or may refuse.
    Ask(&'a Rule),
    Allow,
    Silent,
}

/// What the rules about `tool` say of a file; `path` is resolved.
pub(super) async fn file_ruling<'a>(tool: &str, path: &str, rules: &'a Rules, place: Place<'_>) -> FileRuling<'a> {
    let mut asking = None;
    for rule in rules.deny.iter().filter(|rule| rule.is_about_builtin(tool)) {
        match &rule.pattern {
            Pattern::Every => return FileRuling::Deny(rule),
            Pattern::Path(pattern) if pattern.means(path, place, Breadth::Anywhere).await => {
                return FileRuling::Deny(rule);
            }
            Pattern::Path(_) => {}
            Pattern::Shell(_) | Pattern::Unreadable(_) => asking = Some(rule),
        }
    }
    for rule in rules.ask.iter().filter(|rule| rule.is_about_builtin(tool)) {
        let asks = match &rule.pattern {
            Pattern::Path(pattern) => pattern.means(path, place, Breadth::Anywhere).await,
            Pattern::Every | Pattern::Shell(_) | Pattern::Unreadable(_) => true,
        };
        if asks && asking.is_none() {
            asking = Some(rule);
        }
    }
    if let Some(rule) = asking {
        return FileRuling::Ask(rule);
    }
    for rule in rules.allow.iter().filter(|rule| rule.is_about_builtin(tool)) {
        let allows = match &rule.pattern {
            Pattern::Every => true,
            Pattern::Path(pattern) => pattern.means(path, place, Breadth::Workspace).await,
            Pattern::Shell(_) | Pattern::Unreadable(_) => false,
        };
        if allows {
            return FileRuling::Allow;
        }
    }
    FileRuling::Silent
}

/// The tools that look at many files in one call.
const SEARCH_TOOLS: [&str; 2] = ["Grep", "Glob"];

/// What a search must leave out: every file that a rule denies to its tool.
pub(super) async fn hidden_paths(tool: &ToolSpec, rules: &Rules, place: Place<'_>) -> Vec<String> {
    let mut hidden = Vec::new();
    let searches = matches!(tool.origin, ToolOrigin::Builtin(_)) && SEARCH_TOOLS.contains(&tool.name.as_str());
    for rule in rules.deny.iter().filter(|rule| searches && rule.is_about_builtin(&tool.name)) {
        if let Pattern::Path(pattern) = &rule.pattern {
            hidden.extend(pattern.globs(place).await);
        }
    }
    hidden
}

/// What the mode says of a file that no rule is about: None where it may be used, else why not.
pub(super) async fn objection(path: &str, inside: bool, access: Access, grounds: Grounds<'_>) -> Option<String> {
    let mode = grounds.mode.as_str();
    match (grounds.mode, access) {
        (PermissionMode::Bypass, _) => None,
        _ if !inside => Some(format!("`{path}` is outside the workspace")),
        (_, Access::Read) => None,
        (PermissionMode::Default, Access::Write) => Some(format!("mode `{mode}` asks before files are changed")),
        (PermissionMode::AcceptEdits, Access::Write) => {
            let below = grounds.place.below_root(path).await.unwrap_or_default();
            let guarded =
                below.split('/').find(|part| GUARDED.iter().any(|guarded| guarded.eq_ignore_ascii_case(part)));
            guarded
                .map(|part| format!("`{part}` decides what programs do here, so that mode `{mode}` does not cover it"))
        }
    }
}

async fn judge_file(tool: &ToolSpec, path: &str, access: Access, grounds: Grounds<'_>) -> Verdict {
    let resolved = grounds.place.resolve(path).await;
    let granted = if resolved.inside { Vec::new() } else { vec![resolved.path.clone()] };
    let allow = || Verdict::Allow { granted: granted.clone() };
    match file_ruling(&tool.name, &resolved.path, grounds.rules, grounds.place).await {
        FileRuling::Deny(rule) => Verdict::Deny(format!("{} denies `{}`", rule.told, resolved.path)),
        FileRuling::Ask(rule) if grounds.mode == PermissionMode::Bypass => bypass_ruling(rule, grounds.rules, allow),
        FileRuling::Ask(rule) => {
            Verdict::Ask(Question { granted, ..Question::by_rule(format!("{} says so", rule.told)) })
        }
        FileRuling::Allow => allow(),
        FileRuling::Silent => match objection(&resolved.path, resolved.inside, access, grounds).await {
            None => allow(),
            Some(reason) => {
                let candidates = suggest::file_rules(&tool.name, &resolved.path, grounds.place).await;
                Verdict::Ask(Question { reason, candidates, granted })
            }
        },
    }
}

/// Nothing is asked in mode `bypass`: what a rule wants asked runs, what it may refuse does not.
fn bypass_ruling(rule: &Rule, rules: &Rules, allow: impl FnOnce() -> Verdict) -> Verdict {
    if rules.deny.iter().any(|denying| std::ptr::eq(denying, rule)) {
        return Verdict::Deny(format!("{} cannot be read and may deny it", rule.told));
    }
    allow()
}

/// Judges a call by its tool alone.
fn judge_whole(tool: &ToolSpec, grounds: Grounds<'_>) -> Verdict {
    let Grounds { rules, mode, .. } = grounds;
    let deny = about(tool, &rules.deny);
    let allow = || Verdict::Allow { granted: Vec::new() };
    if let Some(rule) = deny.iter().find(|rule| rule.is_readable()) {
        return Verdict::Deny(format!("{} denies it", rule.told));
    }
    match (deny.first(), mode) {
        (Some(rule), PermissionMode::Bypass) => {
            return Verdict::Deny(format!("{} cannot be read and may deny it", rule.told));
        }
        (None, PermissionMode::Bypass) => return allow(),
        _ => {}
    }
    if let Some(rule) = deny.first().or(about(tool, &rules.ask).first()) {
        return Verdict::Ask(Question::by_rule(format!("{} says so", rule.told)));
    }
    // The hints of an external server are its own word, and no ground to trust it.
    let harmless = (tool.read_only || tool.name == KILL_TOOL) && matches!(tool.origin, ToolOrigin::Builtin(_));
    if harmless || about(tool, &rules.allow).iter().any(|rule| rule.is_readable()) {
        return allow();
    }
    let reason = match &tool.origin {
        ToolOrigin::Builtin(_) => format!("mode `{}` asks before anything is done", mode.as_str()),
        ToolOrigin::External(server) => format!("it belongs to the external server `{server}`"),
    };
    Verdict::Ask(Question { reason, candidates: suggest::whole_rules(tool), granted: Vec::new() })
}

/// The rules that are about a tool.
pub(super) fn about<'a>(tool: &ToolSpec, rules: &'a [Rule]) -> Vec<&'a Rule> {
    rules.iter().filter(|rule| rule.is_about(tool)).collect()
}
