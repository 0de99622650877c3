//! Which calls run, which are asked about, which are refused, and what is said.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use peri_acp_types::{NoticeKind, PermissionAnswer, PermissionMode, ToolOutput, ToolSpec};
use peri_agent::{CallVerdict, Middleware, PendingCall};
use peri_config::{Layer, Origin, PermissionRule, RuleList};
use peri_middlewares::permission::{PermissionMiddleware, PermissionPolicy, PolicyRule, RuleSink};
use serde_json::{Value, json};

use crate::fakes::{FakeBroker, FakePaths, FakeSink, external, pending, scope, workspace_tool};

/// A session's permission with everything around it.
pub(crate) struct Desk {
    middleware: PermissionMiddleware,
    broker: Arc<FakeBroker>,
    paths: Arc<FakePaths>,
    sink: Arc<FakeSink>,
}

/// `rules` are lines of `allow RULE`, `ask RULE`, `deny RULE`; a line without either names the mode.
pub(crate) fn desk(rules: &str) -> Desk {
    let mut policy = PermissionPolicy::default();
    for line in rules.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let rule = |text: &str| text.parse().expect("a rule");
        match line.split_once(' ') {
            Some(("allow", text)) => policy.allow.push(rule(text)),
            Some(("ask", text)) => policy.ask.push(rule(text)),
            Some(("deny", text)) => policy.deny.push(rule(text)),
            _ => policy.mode = PermissionMode::from_word(line).expect("a mode"),
        }
    }
    let (broker, paths, sink) = (Arc::<FakeBroker>::default(), Arc::<FakePaths>::default(), Arc::<FakeSink>::default());
    let middleware = PermissionMiddleware::new(&policy, broker.clone(), paths.clone(), sink.clone());
    Desk { middleware, broker, paths, sink }
}

impl Desk {
    pub(crate) fn answers(self, answers: &[PermissionAnswer]) -> Desk {
        self.broker.answers.lock().unwrap().extend(answers.iter().cloned());
        self
    }

    pub(crate) async fn call(&self, spec: ToolSpec, arguments: Value) -> (CallVerdict, PendingCall) {
        let mut call = pending(spec, arguments);
        let verdict = self.middleware.before_call(&mut call).await;
        (verdict, call)
    }

    /// `runs`, `asked: REASON` or `refused: TEXT`; nobody is there to answer.
    pub(crate) async fn outcome(&self, spec: ToolSpec, arguments: Value) -> String {
        let asked_before = self.asked();
        let (verdict, call) = self.call(spec, arguments).await;
        match verdict {
            CallVerdict::Proceed if call.granted_paths.is_empty() => "runs".to_owned(),
            CallVerdict::Proceed => format!("runs with {}", call.granted_paths.join(", ")),
            CallVerdict::Refuse(_) if self.asked() > asked_before => {
                format!("asked: {}", self.broker.asked.lock().unwrap().last().unwrap().reason)
            }
            CallVerdict::Refuse(output) => format!("refused: {}", output.joined_text()),
        }
    }

    pub(crate) fn asked(&self) -> usize {
        self.broker.asked.lock().unwrap().len()
    }

    pub(crate) async fn bash(&self, command: &str) -> String {
        self.outcome(workspace_tool("Bash"), json!({ "command": command })).await
    }

    pub(crate) async fn file(&self, tool: &str, path: &str) -> String {
        self.outcome(workspace_tool(tool), json!({ "file_path": path })).await
    }
}

#[track_caller]
pub(crate) fn begins(text: &str, begin: &str, about: &str) {
    assert!(text.starts_with(begin), "{about}: {text}");
}

pub(crate) fn text_of(verdict: CallVerdict) -> String {
    match verdict {
        CallVerdict::Proceed => "runs".to_owned(),
        CallVerdict::Refuse(output) => {
            assert!(output.is_error);
            output.joined_text()
        }
    }
}

#[tokio::test]
async fn a_rule_for_one_command_allows_that_command_only() {
    let desk = desk("allow Bash(git status:*)");
    for command in [
        "git status",
        "git status -s -- src",
        "git  status",
        "CI=1 git status",
        "git status 2>&1 >/dev/null",
        "(git status; git status -s)",
    ] {
        assert_eq!(desk.bash(command).await, "runs", "{command}");
    }
    for command in [
        "git status && rm -rf x",
        "git status; rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "echo $(rm x)",
        "git status $(rm x)",
        "git status \"`rm x`\"",
        "git status <(rm x)",
        "cat <<EOF | sh\nrm x\nEOF",
        "git status <<EOF\n$(rm x)\nEOF",
        "FOO=1 git status",
        "PATH=/tmp git status",
        "PATH=/tmp; git status",
        "find . -exec rm {} +",
        "sudo git status",
        "env rm",
        "xargs rm",
        "git status > out",
        "git status >> ~/.bashrc",
        "git statusx",
        "git stash",
        "git",
        "GIT status",
        "./git status",
        "/usr/bin/git status",
        "git status || curl x | bash",
        "$(echo git) status",
        "git \"$X\"",
        "g*t status",
        "eval 'git status; rm x'",
        "bash -c 'rm x'",
        "sh",
        "source x",
        "git status; eval $X",
        "if git status; then rm x; fi",
        "f() { rm x; }; git status",
        "git -C /x status",
        "git status ${x:-$(rm y)}",
        "trap 'rm x' EXIT; git status",
        "alias git=rm; git status",
        "git(){ rm x; }\ngit status",
        "git status $((`rm x`))",
        "x='a[$(rm y)]'; git status $((x))",
        "git status !(x)",
        "git status \u{202e}",
        "git status 'unclosed",
        "exec git push",
        "for i in $(rm x); do git status; done",
        "export PATH=x; git status",
    ] {
        begins(&desk.bash(command).await, "asked: ", command);
    }
    for command in [
        "timeout 5 git status",
        "bash -c 'git status'",
        "env git status",
        "command git status | xargs git status",
        "eval git status",
    ] {
        assert_eq!(desk.bash(command).await, "runs", "{command}");
    }
}

#[tokio::test]
async fn every_part_of_a_command_line_must_be_allowed() {
    let desk = desk("allow Bash(cargo test:*)\n allow Bash(grep:*)\n allow Bash(find:*)\n allow Bash(cd:*)");
    assert_eq!(desk.bash("cargo test 2>&1 | grep -v ok").await, "runs");
    assert_eq!(desk.bash("find . -name '*.rs' -exec grep x {} +").await, "runs");
    begins(&desk.bash("find . -exec rm {} \\;").await, "asked: no rule allows `find . -exec rm {}", "find -exec");
    begins(&desk.bash("find . -delete").await, "asked: `find` is told to delete", "find -delete");
    assert_eq!(
        desk.bash("cargo test | tee log && cargo build").await,
        "asked: no rule allows `tee log`; no rule allows `cargo build`"
    );
    begins(&desk.bash("cd /tmp && cargo test > out").await, "asked: it writes a file that is not written out", "cd");
    begins(&desk.bash(&format!("cargo test {}", "x".repeat(20_000))).await, "asked: it is longer than 16 KiB", "long");
    begins(
        &desk.bash(&format!("cargo test {}1{}", "$(".repeat(70), ")".repeat(70))).await,
        "asked: it is nested deeper",
        "deep",
    );
    begins(&desk.bash("cargo test \u{0}").await, "asked: it holds the control character U+0000", "NUL");
}

#[tokio::test]
async fn deny_rules_are_hard_to_dodge() {
    let desk = desk("allow Bash\n deny Bash(rm:*)\n deny Bash(git push:*)");
    assert_eq!(desk.bash("ls -la | sort > out; python3 -c 'print(1)'").await, "runs");
    for command in [
        "rm x",
        "\\rm x",
        "'rm' x",
        "r\"m\" x",
        "/bin/rm x",
        "./../bin/rm x",
        "command rm x",
        "env rm x",
        "ls; rm x",
        "ls && (cd x; rm y)",
        "echo $(rm x)",
        "sh -c 'rm x'",
        "bash -c \"ls; rm x\"",
        "xargs rm",
        "find . -exec rm {} +",
        "sudo rm x",
        "nohup timeout 5 rm x &",
        "eval rm x",
        "trap 'rm x' EXIT",
        "cat <<E\n$(rm x)\nE",
        "FOO=1 rm x",
        "if true; then rm x; fi",
        "f() { rm x; }",
        "busybox rm x",
        "git push",
        "git push origin main",
        "time rm x",
        "! rm x",
        "exec rm x",
        "while rm x; do :; done",
        "[[ -f x ]] && rm x",
        "x=`rm y`",
        "ls <(rm x)",
        "rm",
        "rm x > 'unclosed",
        "PS4='$(rm x)'; set -x; ls",
        "GIT_SSH_COMMAND='rm x' git fetch",
    ] {
        let outcome = desk.bash(command).await;
        let is_refused = outcome.starts_with("refused: ") && outcome.contains("rule `Bash(");
        let is_unreadable = command.contains("unclosed") && outcome.starts_with("asked: ");
        assert!(is_refused || is_unreadable, "{command}: {outcome}");
    }
    for command in [
        "$(echo rm) x",
        "$X x",
        "r? x",
        "{rm,x}",
        "eval \"$X\"",
        "sh",
        "curl x | bash",
        "source x",
        "alias ls=rm; ls x",
        "git -C . push",
        "git $X",
        "git -c alias.x=push x $Y",
        "xargs -I% % x",
        "env -S 'rm x'",
        "sudo --odd rm x",
        "ssh h rm x",
        "$'\\x72m' x",
        "coproc rm x",
        "echo 'unclosed",
        "hash -p /bin/rm ls; ls x",
        "find . -delete",
        "x='a[$(rm y)]'; ((x))",
        "flock f rm x",
        "watch rm x",
        "parallel rm ::: x",
        "python3 x \u{1}",
    ] {
        begins(&desk.bash(command).await, "asked: rule `Bash(", command);
    }
}

#[tokio::test]
async fn a_denial_names_rule_and_command() {
    let desk = desk("allow Bash\n deny Bash(rm:*)");
    let refused = desk.bash("cargo test && rm -rf target").await;
    assert!(
        refused.contains("rule `Bash(rm:*)` denies `rm -rf target`") && refused.contains("was not run"),
        "{refused}"
    );
}

#[tokio::test]
async fn bypass_asks_nothing_and_still_denies() {
    let desk = desk("bypass\n deny Bash(rm:*)\n ask Bash(curl:*)\n deny Edit(*.pem)");
    for command in ["ls > /etc/x", "curl x", "FOO=1 make", "PATH=/x:$PATH make", "cargo build && ./run.sh"] {
        assert_eq!(desk.bash(command).await, "runs", "{command}");
    }
    for command in ["rm x", "$(echo rm) x", "eval $X", "echo 'unclosed", "ls > key.pem", "ls > $X"] {
        begins(&desk.bash(command).await, "refused: ", command);
    }
    assert_eq!(desk.file("Write", "/etc/passwd").await, "runs with /etc/passwd");
    begins(&desk.file("Edit", "/etc/ssl/key.pem").await, "refused: ", "pem");
    assert_eq!(desk.asked(), 0);
}

#[tokio::test]
async fn without_rules_reading_the_workspace_runs_and_the_rest_is_asked_about() {
    let desk = desk("");
    assert_eq!(desk.file("Read", "src/a.rs").await, "runs");
    assert_eq!(desk.file("Read", "/work/src/../a.rs").await, "runs");
    assert_eq!(desk.outcome(workspace_tool("Grep"), json!({"pattern": "x"})).await, "runs");
    assert_eq!(desk.outcome(workspace_tool("BashOutput"), json!({})).await, "runs");
    for (tool, path) in
        [("Read", "../x"), ("Read", "~/.ssh/id"), ("Read", "/etc/passwd"), ("Edit", "src/a.rs"), ("Write", "b")]
    {
        begins(&desk.file(tool, path).await, "asked: ", path);
    }
    begins(&desk.outcome(workspace_tool("Glob"), json!({"pattern": "*", "path": "/etc"})).await, "asked: ", "Glob");
    begins(&desk.bash("ls").await, "asked: ", "ls");
}

#[tokio::test]
async fn accept_edits_lets_edits_in_the_workspace_pass() {
    let desk = desk("accept-edits\n allow Bash(git status:*)");
    assert_eq!(desk.file("Edit", "src/a.rs").await, "runs");
    assert_eq!(desk.file("Write", "new/b.rs").await, "runs");
    assert_eq!(desk.bash("git status > status.txt").await, "runs");
    for path in ["/etc/x", "../x", ".git/hooks/pre-commit", "sub/.GIT/config", ".peri/settings.local.json", ".mcp.json"]
    {
        begins(&desk.file("Edit", path).await, "asked: ", path);
    }
    begins(&desk.bash("git status > .git/config").await, "asked: ", "redirection into .git");
    begins(&desk.bash("git status > /etc/x").await, "asked: ", "redirection out");
    begins(&desk.bash("ls").await, "asked: ", "ls");
}

#[tokio::test]
async fn rules_about_paths_match_where_a_path_leads() {
    let desk = desk(
        "allow Edit(src/**)\n allow Read(~/notes)\n allow Write(/tmp/out/*.txt)\n deny Read(secret/**)\n deny Edit(.env)",
    );
    desk.paths.link("/work/link", "/work/src");
    desk.paths.link("/work/src/out", "/etc");
    desk.paths.link("/work/alias", "/work/secret/key");
    desk.paths.link("/work/notes", "/home/me/notes");
    for path in ["src/a.rs", "./src/b/../c.rs", "/work/src/a", "link/a.rs", "x/../src/a.rs"] {
        assert_eq!(desk.file("Edit", path).await, "runs", "{path}");
        assert_eq!(desk.file("Write", path).await, "runs", "{path}");
    }
    for path in ["src/out/passwd", "src/../a.rs", "src2/a", "/work/srca"] {
        begins(&desk.file("Edit", path).await, "asked: ", path);
    }
    assert_eq!(desk.file("Read", "~/notes/a").await, "runs with /home/me/notes/a");
    assert_eq!(desk.file("Read", "notes").await, "runs with /home/me/notes");
    assert_eq!(desk.file("Write", "/tmp/out/a.txt").await, "runs with /tmp/out/a.txt");
    assert_eq!(desk.file("Edit", "/tmp/out/a.txt").await, "runs with /tmp/out/a.txt", "Write and Edit are one subject");
    begins(&desk.file("Write", "/tmp/out/b/a.txt").await, "asked: ", "one star, one folder");
    for path in ["secret/key", "alias", "src/../secret/x/y"] {
        begins(&desk.file("Read", path).await, "refused: ", path);
    }
    let grep = desk.outcome(workspace_tool("Grep"), json!({"pattern": "x", "path": "secret"})).await;
    begins(&grep, "refused: ", "Grep");
    for path in [".env", "src/.env", "/elsewhere/.env"] {
        begins(&desk.file("Write", path).await, "refused: ", path);
    }
    begins(&desk.bash("echo x > src/.env").await, "refused: ", "redirection");
}

#[tokio::test]
async fn a_workspace_that_is_a_link_is_the_workspace() {
    let desk = desk("allow Edit(/work/src/**)\n allow Edit(doc/**)");
    desk.paths.link("/work", "/real/place");
    for path in ["src/a.rs", "doc/b.md", "/real/place/doc/b.md"] {
        assert_eq!(desk.file("Edit", path).await, "runs", "{path}");
    }
    begins(&desk.file("Edit", "a.rs").await, "asked: ", "a.rs");
}

#[tokio::test]
async fn deny_beats_ask_beats_allow() {
    let desk = desk(
        "allow Bash(git:*)\n ask Bash(git commit:*)\n deny Bash(git push:*)\n allow Edit\n ask Edit(Cargo.lock)\n deny KillBash",
    );
    assert_eq!(desk.bash("git log").await, "runs");
    assert_eq!(desk.bash("git commit -m x").await, "asked: rule `Bash(git commit:*)` says so");
    begins(&desk.bash("git push").await, "refused: ", "push");
    begins(&desk.bash("git commit -m x; git push").await, "refused: ", "both");
    assert_eq!(desk.file("Edit", "a").await, "runs");
    assert_eq!(desk.file("Edit", "/etc/a").await, "runs with /etc/a");
    begins(&desk.file("Write", "Cargo.lock").await, "asked: ", "Cargo.lock");
    begins(&desk.outcome(workspace_tool("KillBash"), json!({})).await, "refused: ", "KillBash");
}

#[tokio::test]
async fn external_tools_are_judged_by_their_origin() {
    let desk = desk(
        "allow mcp__docs__search\n allow mcp__wiki\n deny mcp__wiki__delete\n allow Read\n allow mcp__docs__page.read",
    );
    assert_eq!(desk.outcome(external("docs", "search", false), json!({})).await, "runs");
    assert_eq!(desk.outcome(external("docs", "page.read", false), json!({})).await, "runs");
    assert_eq!(desk.outcome(external("wiki", "anything", false), json!({})).await, "runs");
    begins(&desk.outcome(external("wiki", "delete", false), json!({})).await, "refused: ", "delete");
    begins(&desk.outcome(external("docs", "list", true), json!({})).await, "asked: it belongs to the external", "hint");
    // A server cannot pass for a builtin tool or for another server, whatever its tools are called.
    let posing = |name: &str, server: &str| ToolSpec { name: name.to_owned(), ..external(server, "x", true) };
    begins(&desk.outcome(posing("Read", "evil"), json!({"file_path": "a"})).await, "asked: ", "posing as Read");
    begins(&desk.outcome(posing("mcp__docs__search", "evil"), json!({})).await, "asked: ", "posing as docs");
}

#[tokio::test]
async fn an_answer_counts_once_or_for_good() {
    use PermissionAnswer::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let desk = desk("").answers(&[AllowOnce, RejectOnce, AllowAlways, RejectAlways, RejectAlways]);
    assert_eq!(desk.bash("cargo test").await, "runs");
    let refused = desk.call(workspace_tool("Bash"), json!({"command": "cargo test"})).await.0;
    assert!(text_of(refused).contains("the user said no"));
    assert_eq!(desk.bash("cargo test -p x").await, "runs");
    assert_eq!(desk.asked(), 3);
    assert_eq!(desk.bash("cargo test -p y && cargo test").await, "runs", "a rule was learned");
    assert_eq!(*desk.sink.0.lock().unwrap(), ["Bash(cargo test:*)"]);
    begins(&desk.bash("cargo publish").await, "asked: ", "rejected for good");
    begins(&desk.bash("cargo publish --dry-run").await, "refused: ", "a rule was learned");
    begins(&desk.bash("a; b $X").await, "asked: ", "no rule can name it");
    begins(&desk.bash("a; b $X").await, "refused: ", "the call is remembered");
    assert_eq!(desk.asked(), 5);
    // Where several rules would be needed, none is written.
    assert_eq!(*desk.sink.0.lock().unwrap(), ["Bash(cargo test:*)", "deny Bash(cargo publish:*)"]);
}

#[tokio::test]
async fn what_always_means_is_shown_before_it_is_chosen() {
    #[track_caller]
    fn shown(desk: &Desk, title: &str, rules: &[&str]) {
        let asked = desk.broker.asked.lock().unwrap();
        let request = asked.last().unwrap();
        assert_eq!(
            (request.title.as_str(), request.always_rules.iter().map(String::as_str).collect::<Vec<_>>()),
            (title, rules.to_vec())
        );
    }
    let desk = desk("allow Bash(ls:*)");
    desk.bash("npm run build -- --x").await;
    shown(&desk, "Bash: npm run build -- --x", &["Bash(npm run build:*)"]);
    desk.bash("ls | sort -o x").await;
    shown(&desk, "Bash: ls | sort -o x", &["Bash(sort -o x)"]);
    desk.bash("rm -rf 'a b'").await;
    shown(&desk, "Bash: rm -rf 'a b'", &["Bash(rm -rf 'a b')"]);
    desk.bash("git fetch && cargo test > 'out*.txt'").await;
    shown(
        &desk,
        "Bash: git fetch && cargo test > 'out*.txt'",
        &["Bash(git fetch:*)", "Bash(cargo test:*)", "Edit(./out[*].txt)"],
    );
    desk.bash("source .venv/bin/activate").await;
    shown(&desk, "Bash: source .venv/bin/activate", &["Bash(source .venv/bin/activate)"]);
    desk.bash("timeout 5 python3 x.py").await;
    shown(&desk, "Bash: timeout 5 python3 x.py", &["Bash(python3 x.py)"]);
    desk.bash("DB=x npm test").await;
    shown(&desk, "Bash: DB=x npm test", &["Bash(DB=x npm test:*)"]);
    for command in ["echo $X | $Y", "eval $X", "rm $X", "PATH=x; ls", "git status\n'"] {
        desk.bash(command).await;
        assert!(desk.broker.asked.lock().unwrap().last().unwrap().always_rules.is_empty(), "{command}");
    }
    desk.file("Edit", "src/deep/a.rs").await;
    shown(&desk, "Edit: src/deep/a.rs", &["Edit(src/deep/**)"]);
    desk.file("Write", "a[1].rs").await;
    shown(&desk, "Write: a[1].rs", &["Edit(./a[[]1[]].rs)"]);
    desk.file("Read", "/home/me/x").await;
    shown(&desk, "Read: /home/me/x", &["Read(/home/me/x)"]);
    desk.outcome(external("docs", "a.b", false), json!({})).await;
    let name = external("docs", "a.b", false).name;
    shown(&desk, &name, &[&name]);
}

#[tokio::test]
async fn when_nobody_can_be_asked_the_way_out_is_named() {
    async fn refusal(rules: &str, tool: &str, arguments: Value) -> String {
        text_of(desk(rules).call(workspace_tool(tool), arguments).await.0)
    }
    let bash = |command: &str| json!({ "command": command });
    assert_eq!(
        refusal("", "Bash", bash("npm test")).await,
        "Refused: Bash(npm test) was not run: it needs permission, and nobody is there to be asked. Why it needs \
         permission: no rule allows `npm test`. The user can allow it with --allowed-tools \"Bash(npm test:*)\", or with \
         that rule under `permissions.allow` in settings.json, or with --permission-mode bypass."
    );
    let edit = refusal("", "Edit", json!({"file_path": "src/a.rs"})).await;
    assert!(
        edit.contains("--allowed-tools \"Edit(src/**)\"") && edit.ends_with("or with --permission-mode accept-edits."),
        "{edit}"
    );
    let unnamed = refusal("", "Bash", bash("$X y")).await;
    assert!(unnamed.contains("--allowed-tools \"Bash\"") && unnamed.contains("--permission-mode bypass"), "{unnamed}");
    let doubtful = refusal("allow Bash\n deny Bash(rm:*)", "Bash", bash("$X y")).await;
    assert!(doubtful.ends_with("No rule and no mode allows it."), "{doubtful}");
    let asked = refusal("ask Bash(npm:*)", "Bash", bash("npm test")).await;
    assert!(asked.ends_with("The user can allow it with --permission-mode bypass."), "{asked}");
}

#[tokio::test]
async fn the_rules_that_are_named_do_allow_the_call() {
    for command in [
        "npm test",
        "a 'b c' \"d'e\"",
        "git commit -m 'x (y)' && cargo build",
        "find . -exec wc -l {} +",
        "A=1 make x > y/z",
    ] {
        let asked = desk("");
        asked.bash(command).await;
        let rules = asked.broker.asked.lock().unwrap().last().unwrap().always_rules.clone();
        assert!(!rules.is_empty(), "{command}");
        let lines: Vec<String> = rules.iter().map(|rule| format!("allow {rule}")).collect();
        assert_eq!(desk(&lines.join("\n")).bash(command).await, "runs", "{command} with {rules:?}");
    }
}

#[tokio::test]
async fn a_question_that_gets_no_answer_is_a_refusal() {
    let unavailable = |why: &str| PermissionAnswer::Unavailable(why.to_owned());
    for (answer, told) in [
        (PermissionAnswer::Cancelled, "Not run: the turn was cancelled"),
        (unavailable("the client is gone"), "was not run: it needs permission, and the client is gone. Why"),
        (unavailable("it broke.\n"), "was not run: it needs permission, and it broke. Why"),
        (unavailable(""), "was not run: it needs permission, and nobody can be asked. Why"),
    ] {
        let desk = desk("").answers(&[answer]);
        let text = text_of(desk.call(workspace_tool("Bash"), json!({"command": "ls"})).await.0);
        assert!(text.contains(told), "{text}");
    }
}

#[tokio::test]
async fn a_grant_is_for_the_path_that_was_asked_about() {
    let desk = desk("").answers(&[PermissionAnswer::AllowOnce]);
    desk.paths.link("/work/out", "/elsewhere/a");
    let (verdict, call) = desk.call(workspace_tool("Read"), json!({"file_path": "out"})).await;
    assert_eq!(verdict, CallVerdict::Proceed);
    assert_eq!(call.granted_paths, ["/elsewhere/a"]);
}

#[tokio::test]
async fn calls_without_what_they_are_judged_by_do_not_run() {
    let desk = desk("bypass");
    for (tool, arguments) in [
        ("Read", json!({})),
        ("Edit", json!({"file_path": 1})),
        ("Bash", json!({"cmd": "ls"})),
        ("Grep", json!({"path": []})),
    ] {
        let (verdict, _) = desk.call(workspace_tool(tool), arguments).await;
        let CallVerdict::Refuse(ToolOutput { is_error: true, .. }) = verdict else { panic!("{tool}: {verdict:?}") };
    }
}

#[tokio::test]
async fn a_rule_that_cannot_be_read_is_named_and_never_allows() {
    let desk = desk("allow Bash(a && b)\n deny Bash(x | y)\n deny Read([)\n deny KillBash(z)");
    let notices = desk.middleware.open(&scope()).await.notices;
    assert_eq!(notices.len(), 4, "{notices:?}");
    begins(&desk.bash("a && b").await, "asked: ", "allow");
    begins(&desk.bash("x").await, "asked: rule `Bash(x | y)` may deny it", "deny");
    begins(&desk.file("Read", "a").await, "asked: ", "deny of a path");
    begins(&desk.outcome(workspace_tool("KillBash"), json!({})).await, "asked: ", "a deny pattern without meaning");
}

#[tokio::test]
async fn ending_what_the_session_started_needs_no_permission() {
    assert_eq!(desk("").outcome(workspace_tool("KillBash"), json!({})).await, "runs");
    begins(&desk("deny KillBash").outcome(workspace_tool("KillBash"), json!({})).await, "refused", "a deny rule");
}

#[tokio::test]
async fn questions_come_one_at_a_time_and_an_answer_settles_those_that_wait() {
    let desk = desk("").answers(&[PermissionAnswer::AllowAlways]);
    let commands: Vec<String> = (0..8).map(|index| format!("cargo test -p x{index}")).collect();
    let outcomes = futures::future::join_all(commands.iter().map(|command| desk.bash(command))).await;
    assert!(outcomes.iter().all(|outcome| outcome == "runs"), "{outcomes:?}");
    assert_eq!(desk.asked(), 1);
}

#[tokio::test]
async fn a_question_that_is_dropped_leaves_the_way_free() {
    let desk = desk("").answers(&[PermissionAnswer::AllowOnce]);
    desk.broker.away.store(true, Ordering::SeqCst);
    assert!(desk.bash("ls").now_or_never().is_none(), "it waits for an answer");
    desk.broker.away.store(false, Ordering::SeqCst);
    assert_eq!(desk.bash("ls").await, "runs");
}

#[tokio::test]
async fn a_search_leaves_out_what_reading_is_denied() {
    let desk = desk("deny Read(.env)\n deny Read(secret/**)\n deny Bash(rm:*)\n ask Read(x)");
    for tool in ["Grep", "Glob"] {
        let (verdict, call) = desk.call(workspace_tool(tool), json!({"pattern": "x"})).await;
        assert_eq!(verdict, CallVerdict::Proceed);
        let hidden = ["**/.env", "**/.env/**", "/work/secret/**", "/work/secret/**/**"];
        assert!(
            hidden.iter().all(|glob| call.hidden_paths.iter().any(|known| known == glob)),
            "{:?}",
            call.hidden_paths
        );
    }
    let (_, call) = desk.call(workspace_tool("Read"), json!({"file_path": "a"})).await;
    assert!(call.hidden_paths.is_empty());
}

#[tokio::test]
async fn another_mode_holds_from_the_next_call_on() {
    let desk = desk("deny Bash(rm:*)");
    begins(&desk.bash("touch a").await, "asked", "the mode from the start");
    desk.middleware.permission_mode_changed(PermissionMode::Bypass).await;
    assert_eq!(desk.bash("touch a").await, "runs");
    begins(&desk.bash("rm a").await, "refused", "a deny rule holds in every mode");
    desk.middleware.permission_mode_changed(PermissionMode::AcceptEdits).await;
    assert_eq!(desk.file("Write", "a").await, "runs");
    begins(&desk.bash("touch a").await, "asked", "commands are no edits");
    desk.middleware.permission_mode_changed(PermissionMode::Default).await;
    begins(&desk.file("Write", "a").await, "asked", "as from the start");
}

#[tokio::test]
async fn an_open_question_is_withdrawn_by_a_mode_that_settles_it_and_by_no_other() {
    let desk = desk("");
    desk.broker.away.store(true, Ordering::SeqCst);
    let mut outcome = Box::pin(desk.bash("touch a"));
    assert!(outcome.as_mut().now_or_never().is_none(), "nobody answers");
    desk.middleware.permission_mode_changed(PermissionMode::AcceptEdits).await;
    assert!(outcome.as_mut().now_or_never().is_none(), "this mode does not settle it");
    desk.middleware.permission_mode_changed(PermissionMode::Bypass).await;
    assert_eq!(outcome.await, "runs");
    assert_eq!(desk.asked(), 1);
}

#[tokio::test]
async fn a_refusal_names_the_file_that_its_rule_stands_in() {
    let origin = Origin { layer: Layer::User, name: "/home/me/settings.json".to_owned() };
    let rule = |text: &str| PolicyRule { rule: text.parse().expect("a rule"), origin: Some(origin.clone()) };
    let policy = PermissionPolicy {
        deny: ["Bash(rm:*)", "Read(secret/**)", "mcp__docs"].map(rule).to_vec(),
        ask: vec![rule("Bash(git push:*)")],
        ..PermissionPolicy::default()
    };
    let (broker, paths) = (Arc::<FakeBroker>::default(), Arc::<FakePaths>::default());
    let middleware = PermissionMiddleware::new(&policy, broker.clone(), paths, Arc::<FakeSink>::default());
    for (spec, arguments, text) in [
        (workspace_tool("Bash"), json!({"command": "ls && rm a"}), "Bash(rm:*)"),
        (workspace_tool("Bash"), json!({"command": "cat secret/a < secret/b"}), "Read(secret/**)"),
        (workspace_tool("Read"), json!({"file_path": "secret/a"}), "Read(secret/**)"),
        (workspace_tool("Bash"), json!({"command": "git push origin"}), "Bash(git push:*)"),
        (external("docs", "search", true), json!({}), "mcp__docs"),
    ] {
        let mut call = pending(spec, arguments);
        let CallVerdict::Refuse(output) = middleware.before_call(&mut call).await else { panic!("{text} refuses") };
        let named = format!("rule `{text}` from /home/me/settings.json");
        assert!(output.joined_text().contains(&named), "{}", output.joined_text());
    }
}

/// Settings that cannot be written.
struct FullDisk;

#[async_trait::async_trait]
impl RuleSink for FullDisk {
    async fn keep(&self, _list: RuleList, _rules: &[PermissionRule]) -> Result<(), String> {
        Err("cannot write /work/.peri/settings.local.json: no space left".to_owned())
    }
}

#[tokio::test]
async fn a_rule_that_could_not_be_kept_holds_for_the_session_and_the_user_is_told() {
    let broker = Arc::<FakeBroker>::default();
    broker.answers.lock().unwrap().extend([PermissionAnswer::AllowAlways, PermissionAnswer::RejectAlways]);
    let policy = PermissionPolicy::default();
    let middleware =
        PermissionMiddleware::new(&policy, broker.clone(), Arc::<FakePaths>::default(), Arc::new(FullDisk));
    let mut call = pending(workspace_tool("Bash"), json!({"command": "cargo test"}));
    assert_eq!(middleware.before_call(&mut call).await, CallVerdict::Proceed);
    let [(NoticeKind::Configuration, text)] = call.notices.as_slice() else { panic!("{:?}", call.notices) };
    assert!(text.contains("`Bash(cargo test:*)`") && text.contains("no space left"), "{text}");
    let mut again = pending(workspace_tool("Bash"), json!({"command": "cargo test --all"}));
    assert_eq!(middleware.before_call(&mut again).await, CallVerdict::Proceed);
    assert!(again.notices.is_empty());
    assert_eq!(broker.asked.lock().unwrap().len(), 1);

    let mut rejected = pending(workspace_tool("Bash"), json!({"command": "cargo publish"}));
    assert!(matches!(middleware.before_call(&mut rejected).await, CallVerdict::Refuse(_)));
    let [(NoticeKind::Configuration, text)] = rejected.notices.as_slice() else { panic!("{:?}", rejected.notices) };
    assert!(text.starts_with("rejected for this session only") && text.contains("no space left"), "{text}");
    let mut again = pending(workspace_tool("Bash"), json!({"command": "cargo publish --dry-run"}));
    assert!(matches!(middleware.before_call(&mut again).await, CallVerdict::Refuse(_)));
    assert_eq!(broker.asked.lock().unwrap().len(), 2);
}
