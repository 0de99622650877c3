//! What the command line teaches and refuses.

use crate::sandbox::Sandbox;

#[track_caller]
fn check_usage(args: &[&str], parts: &[&str]) {
    let sandbox = Sandbox::new();
    let run = sandbox.peri(args.iter().copied()).run();
    run.code(2).stdout_is("");
    for part in parts {
        run.stderr_has(part);
    }
}

#[test]
fn alone_it_says_what_to_do() {
    let sandbox = Sandbox::new();
    let run = sandbox.peri([]).run();
    run.code(0).stdout_has("peri demo").stdout_has("peri -p").check(run.stderr.is_empty(), "no words on stderr");
}

#[test]
fn help_teaches() {
    let sandbox = Sandbox::new();
    let run = sandbox.peri(["--help"]).run();
    run.code(0);
    for part in
        ["Examples:", "Exit codes:", "Variables:", "Files", "ANTHROPIC_API_KEY", "NO_COLOR", "--permission-mode"]
    {
        run.stdout_has(part);
    }
    run.check(!run.stdout.contains("__supervise"), "the supervisor is not shown");
    for command in ["acp", "sessions", "config", "models", "doctor", "trust", "demo", "man", "completions"] {
        sandbox.peri([command, "--help"]).run().code(0).stdout_has("Usage: peri");
        sandbox.peri(["help", command]).run().code(0).stdout_has("Usage: peri");
        run.stdout_has(&format!("  {command}"));
    }
    sandbox.peri(["help"]).run().code(0).stdout_has("Examples:");
    sandbox.peri(["--version"]).run().code(0).stdout_is(&format!("peri {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_cannot_have_an_effect_is_refused_with_a_hint() {
    check_usage(&["-p", "--no-such-option"], &["--no-such-option"]);
    check_usage(&["fix it"], &["-p", "hint:"]);
    check_usage(&["--verbose"], &["-p", "hint:"]);
    check_usage(&["sessions", "list", "--all", "--cwd", "/"], &["--cwd"]);
    check_usage(&["sessions", "show", "x", "--settings", "{}"], &["--settings"]);
    check_usage(&["-p", "fix", "it"], &["hint: quote it"]);
    check_usage(&["-p", "  "], &["empty", "hint:"]);
    check_usage(&["-p", "--session-id", "seven", "x"], &["--session-id"]);
    check_usage(&["-p", "-c", "--session-id", "0197c2a0-0000-7000-8000-000000000001", "x"], &["hint:"]);
    check_usage(&["-p", "--max-turns", "0", "x"], &["--max-turns"]);
    check_usage(&["-p", "--include-partial-messages", "x"], &["hint: add --output-format stream-json"]);
    check_usage(&["-p", "--cwd", "/no/such/directory", "x"], &["/no/such/directory", "hint:"]);
    check_usage(&["-p", "--config-file", "nowhere.json", "x"], &["nowhere.json"]);
    check_usage(&["__supervise"], &["not for use"]);
}

#[test]
fn a_usage_error_has_a_result_object_in_the_json_formats() {
    let sandbox = Sandbox::new();
    for format in ["json", "stream-json"] {
        let run = sandbox.peri(["-p", "-c", "-r", "0197", "--output-format", format, "x"]).run();
        let result = run.code(2).json();
        run.check(result["type"] == "result" && result["is_error"] == true, "a result object");
        run.stderr_has("hint:");
    }
}

#[test]
fn every_command_shows_an_example() {
    let sandbox = Sandbox::new();
    for command in [
        &["acp"][..],
        &["sessions"],
        &["config"],
        &["models"],
        &["doctor"],
        &["trust"],
        &["demo"],
        &["man"],
        &["completions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "export"],
        &["sessions", "delete"],
        &["config", "show"],
        &["config", "path"],
        &["config", "check"],
    ] {
        let run = sandbox.peri(command.iter().copied().chain(["--help"])).run();
        run.code(0).stdout_has("Example").stdout_has(&format!("peri {}", command.join(" ")));
    }
}

#[test]
fn a_slip_of_the_fingers_is_understood() {
    check_usage(&["sesions", "list"], &["no command `sesions`", "did you mean peri sessions?"]);
    check_usage(&["docter"], &["did you mean peri doctor?"]);
    check_usage(&["fix the tests"], &["-p", "hint:"]);
    check_usage(&["sessions", "lst"], &["list"]);
}

#[test]
fn manual_pages() {
    let sandbox = Sandbox::new();
    sandbox.peri(["man"]).run().code(0).stdout_has(".TH PERI 1").stdout_has("permission");
    sandbox.peri(["man", "sessions", "export"]).run().code(0).stdout_has(".TH PERI-SESSIONS-EXPORT 1");
    let version = format!(".TH PERI-ACP 1  \"peri {}\"", env!("CARGO_PKG_VERSION"));
    sandbox.peri(["man", "acp"]).run().code(0).stdout_has(&version);
    sandbox.peri(["man", "sesions"]).run().code(2).stderr_has("no command sesions").stderr_has("sessions");
    let run = sandbox.peri(["man", "--output-dir", "share/man1"]).run();
    run.code(0).stdout_has("peri.1").stdout_has("peri-sessions-list.1");
    for page in ["peri.1", "peri-acp.1", "peri-sessions-export.1"] {
        run.check(sandbox.work().join("share/man1").join(page).is_file(), page);
    }
}

#[test]
fn completions_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = sandbox.peri(["completions", shell]).run();
        run.code(0)
            .stdout_has("permission-mode")
            .stdout_has("doctor")
            .stdout_has("export")
            .check(!run.stdout.contains("__supervise"), "no inner command");
    }
    sandbox.peri(["completions", "tcsh"]).run().code(2);
}

#[test]
fn without_a_home_it_says_what_to_set() {
    let sandbox = Sandbox::new();
    let run = sandbox.peri(["-p", "x"]).env("HOME", None).run();
    run.code(2).stderr_has("HOME").stderr_has("PERI_HOME");
}
