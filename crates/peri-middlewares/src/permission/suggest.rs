//! Rules to offer for "always": narrow enough to be shown and understood.
//!
//! Invariant: what is offered is only a candidate; the asker offers it if judging again with it allows the call.

use peri_acp_types::{ToolOrigin, ToolSpec};
use peri_config::PermissionRule;

use super::path_rule::Place;
use super::rule::{Rule, SHELL_TOOL};
use super::shell::{Command, Runs, Standing, Word};
use super::shell_verdict::allowed;

/// Programs whose first word after the name says what they do: `cargo test`. A rule for it may have a tail.
const WITH_SUBCOMMANDS: [&str; 28] = [
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "hg",
    "jj",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "rustup",
    "terraform",
    "uv",
    "yarn",
];
/// Their subcommands after which another word says what is run: `npm run lint`.
const RUNNERS: [&str; 4] = ["run", "exec", "x", "dlx"];
/// Programs that show things and change none.
const VIEWERS: [&str; 22] = [
    "basename", "cat", "cut", "date", "diff", "dirname", "du", "echo", "file", "grep", "head", "ls", "pwd", "realpath",
    "rg", "stat", "tail", "tree", "uniq", "wc", "which", "whoami",
];

/// Rules that would allow a command and what it runs, as far as they are missing.
pub(super) fn command_rules(command: &Command, allow: &[&Rule]) -> Vec<PermissionRule> {
    let inner = |commands: &[Command]| -> Vec<PermissionRule> {
        let missing = commands.iter().filter(|inner| !allowed(inner, allow));
        missing.flat_map(|inner| command_rules(inner, allow)).collect()
    };
    match &command.runs {
        Runs::Others { commands, standing: Standing::Transparent, .. } if command.settings.is_empty() => {
            inner(commands)
        }
        Runs::Others { commands, standing: Standing::AlsoItself, .. } => {
            let mut rules: Vec<PermissionRule> = shell_rule(command, Width::Exact).into_iter().collect();
            rules.extend(inner(commands));
            rules
        }
        Runs::Others { .. } | Runs::Unseen(_) => shell_rule(command, Width::Exact).into_iter().collect(),
        Runs::Itself => shell_rule(command, width(command)).into_iter().collect(),
    }
}

/// How much of a command a rule spells out.
enum Width {
    Exact,
    /// So many words, then anything.
    Words(usize),
}

fn width(command: &Command) -> Width {
    let text = |index: usize| command.words.get(index).and_then(Word::literal).unwrap_or_default();
    let is_plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
    };
    if VIEWERS.contains(&text(0)) {
        return Width::Words(1);
    }
    if !WITH_SUBCOMMANDS.contains(&text(0)) || !is_plain(text(1)) {
        return Width::Exact;
    }
    match RUNNERS.contains(&text(1)) {
        false => Width::Words(2),
        true if is_plain(text(2)) => Width::Words(3),
        true => Width::Exact,
    }
}

fn shell_rule(command: &Command, width: Width) -> Option<PermissionRule> {
    let (words, tail) = match width {
        Width::Exact => (command.words.as_slice(), ""),
        Width::Words(count) => (command.words.get(..count)?, ":*"),
    };
    let words: Option<Vec<String>> = words.iter().map(|word| word.literal().map(quoted)).collect();
    let settings = command.settings.iter().cloned();
    let text: Vec<String> = settings.chain(words?).collect();
    PermissionRule::builtin(SHELL_TOOL, Some(&format!("{}{tail}", text.join(" ")))).ok()
}

/// The word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    let is_bare = !word.is_empty() && word.chars().all(is_plain);
    if is_bare { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Rules that would allow a file to a tool: in the workspace its folder, elsewhere the file alone.
pub(super) async fn file_rules(tool: &str, path: &str, place: Place<'_>) -> Vec<PermissionRule> {
    let subject = if tool == "Write" { "Edit" } else { tool };
    let pattern = match place.below_root(path).await {
        Some(below) => match below.rsplit_once('/') {
            Some((folder, _)) => format!("{}/**", globset::escape(folder)),
            // A name without a slash would mean that name anywhere.
            None => format!("./{}", globset::escape(&below)),
        },
        None if matches!(tool, "Grep" | "Glob") => format!("{}/**", globset::escape(path.trim_end_matches('/'))),
        None => globset::escape(path),
    };
    PermissionRule::builtin(subject, Some(&pattern)).into_iter().collect()
}

/// Rules that would allow every call of a tool.
pub(super) fn whole_rules(tool: &ToolSpec) -> Vec<PermissionRule> {
    let rule = match &tool.origin {
        ToolOrigin::Builtin(_) => PermissionRule::builtin(&tool.name, None).ok(),
        ToolOrigin::External(_) => tool.name.parse().ok(),
    };
    rule.into_iter().collect()
}
