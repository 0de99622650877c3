//! Shell commands against rules.
//!
//! Holds: every text is judged, soon; a command that a rule denies and that stands there plainly, on a line of its own,
//! never runs, whatever allowed command comes before it and whatever comes after its name.

use std::sync::Arc;

use futures::executor::block_on;
use peri_acp_types::PermissionMode;
use peri_agent::{CallVerdict, Middleware as _};
use peri_middlewares::permission::{PermissionMiddleware, PermissionPolicy};
use serde_json::json;

use crate::fakes::{FakeBroker, FakePaths, FakeSink, pending, workspace_tool};

/// The first byte chooses mode and rules; the rest is the command.
pub fn check(data: &[u8]) {
    let Some((choice, command)) = data.split_first() else { return };
    let command = String::from_utf8_lossy(command);
    let allow = ["Bash", "Bash(git status:*)", "Bash(echo:*)", "Bash(ls *)"][usize::from(choice & 3)];
    let mode = if choice & 4 == 0 { PermissionMode::Default } else { PermissionMode::Bypass };
    let policy = PermissionPolicy {
        mode,
        allow: vec![allow.parse().expect("a rule")],
        ask: Vec::new(),
        deny: vec!["Bash(rm:*)".parse().expect("a rule")],
    };
    let allowed_alone = runs(&policy, &command);
    let with_name = format!("rm {command}");
    assert!(defines(&command) || !runs(&policy, &with_name), "runs: {with_name:?}");
    if allowed_alone && ends_a_line(&command) {
        for joint in ["\n", "; ", " && ", " | ", " & "] {
            let line = format!("{command}{joint}rm x");
            let plain = joint == "\n" || stays_code(&command);
            assert!(!plain || !runs(&policy, &line), "runs: {line:?}");
        }
    }
}

fn runs(policy: &PermissionPolicy, command: &str) -> bool {
    let middleware = PermissionMiddleware::new(
        policy,
        Arc::<FakeBroker>::default(),
        Arc::<FakePaths>::default(),
        Arc::<FakeSink>::default(),
    );
    let mut call = pending(workspace_tool("Bash"), json!({ "command": command }));
    block_on(middleware.before_call(&mut call)) == CallVerdict::Proceed
}

/// After a name this is the definition of a function, which is no call of it.
fn defines(command: &str) -> bool {
    command.replace("\\\n", "").trim_start_matches([' ', '\t']).starts_with('(')
}

/// What follows a line break is another command: the text does not end in the middle of a here-document or a word.
fn ends_a_line(command: &str) -> bool {
    !command.contains("<<") && !command.ends_with('\\')
}

/// What follows on the same line is no part of a comment.
fn stays_code(command: &str) -> bool {
    !command.contains('#')
}
