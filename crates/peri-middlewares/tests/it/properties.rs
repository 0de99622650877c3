//! Properties of the judge over command lines that a grammar makes.

use std::sync::Arc;

use futures::executor::block_on;
use peri_agent::{CallVerdict, Middleware};
use peri_middlewares::permission::{PermissionMiddleware, PermissionPolicy};
use proptest::prelude::*;
use serde_json::json;

use crate::fakes::{FakeBroker, FakePaths, FakeSink, pending, workspace_tool};

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

/// A command line, and whether a command other than `git status` is in it.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    other: bool,
}

fn line(text: &str, other: bool) -> Line {
    Line { text: text.to_owned(), other }
}

/// A simple command; seldom another than `git status`, or every line would have one.
fn simple() -> impl Strategy<Value = Line> {
    prop_oneof![
        6 => prop::sample::select(vec!["git status", "git status -s", "'git' \"status\" x", "git status 'rm x'", "git \\\n status"])
            .prop_map(|text| line(text, false)),
        1 => prop::sample::select(vec![
            "rm x", "git push", "git", "gitstatus", "sh", "/bin/rm x", "git 'status x'", "$X", "git statusx", "\\rm x", "sudo git status",
        ])
        .prop_map(|text| line(text, true)),
    ]
}

fn compound() -> impl Strategy<Value = Line> {
    simple().prop_recursive(5, 24, 3, |inner| {
        let one = |before: &'static str, after: &'static str| {
            move |it: Line| Line { text: format!("{before}{}{after}", it.text), ..it }
        };
        let frames = prop::sample::select(vec![
            ("(", ")"),
            ("{ ", "; }"),
            ("! ", ""),
            ("time ", ""),
            ("git status $(", ")"),
            ("git status \"a`", "`b\""),
            ("git status \"$(", ")\""),
            ("git status <(", ")"),
            ("git status ${x:-$(", ")}"),
            ("x=$(", ")"),
            ("if git status; then ", "; fi"),
            ("while ", "; do git status; done"),
            ("for i in a b; do ", "; done"),
            ("case x in y) ", ";; esac"),
            ("f() { ", "; }"),
            ("git status <<E\n$(", ")\nE"),
            ("git status <<'E'\n$(rm)\nE\n", ""),
            ("timeout 5 ", ""),
            ("git status 2>&1 | ", ""),
            ("[[ -f x ]] && ", ""),
            ("# rm x\n", ""),
            ("git status <<< \"$(", ")\""),
            ("until git status; do ", "\ndone"),
            ("git status > /dev/null & ", ""),
            ("git status $(case x in x) ", ";; esac)"),
        ]);
        let framed = (frames, inner.clone()).prop_map(move |((before, after), it)| one(before, after)(it));
        let joints = prop::sample::select(vec![" && ", " || ", "; ", " | ", " |& ", " & ", "\n", " &&\n"]);
        let joined = (inner.clone(), joints, inner).prop_map(|(left, joint, right)| Line {
            text: format!("{}{joint}{}", left.text, right.text),
            other: left.other || right.other,
        });
        prop_oneof![2 => framed, 1 => joined]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_single_rule_allows_holds_no_other_command(line in compound()) {
        let policy = PermissionPolicy { allow: vec!["Bash(git status:*)".parse().unwrap()], ..PermissionPolicy::default() };
        if line.other {
            prop_assert!(!runs(&policy, &line.text), "{}", line.text);
        }
    }

    #[test]
    fn what_a_deny_rule_names_never_runs(line in compound(), spelling in prop::sample::select(vec![
        "rm -rf x", "/bin/rm x", "'rm'", "env rm x", "sh -c 'rm x'", "$(echo rm) x", "xargs rm", "command \\rm x",
    ])) {
        let policy = PermissionPolicy {
            allow: vec!["Bash".parse().unwrap()],
            deny: vec!["Bash(rm:*)".parse().unwrap()],
            ..PermissionPolicy::default()
        };
        for text in [format!("{}\n{spelling}", line.text), format!("{spelling} && {}", line.text), format!("echo \"$({spelling})\"\n{}", line.text)] {
            prop_assert!(!runs(&policy, &text), "{text}");
        }
    }

    #[test]
    fn any_text_is_judged(text in any::<String>(), shellish in "[a-z \n$(){}'\"`;|&<>\\\\#=\\[\\]~*!-]{0,200}") {
        let policy = PermissionPolicy { allow: vec!["Bash(a:*)".parse().unwrap()], ..PermissionPolicy::default() };
        runs(&policy, &text);
        runs(&policy, &shellish);
    }
}

/// The grammar makes lines that are allowed, often enough for the properties to mean something.
#[test]
fn lines_of_the_one_command_are_allowed() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let policy = PermissionPolicy { allow: vec!["Bash(git status:*)".parse().unwrap()], ..PermissionPolicy::default() };
    let mut runner = TestRunner::deterministic();
    let lines: Vec<Line> = (0..500).map(|_| compound().new_tree(&mut runner).unwrap().current()).collect();
    let clean: Vec<&Line> = lines.iter().filter(|line| !line.other).collect();
    let allowed = clean.iter().filter(|line| runs(&policy, &line.text)).count();
    assert!(clean.len() > 100 && allowed * 4 > clean.len() * 3, "{allowed} of {}", clean.len());
}
