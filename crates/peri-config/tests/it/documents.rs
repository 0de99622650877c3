//! What each key takes, and what is said where it is something else.

use peri_acp_types::PermissionMode;
use peri_config::{CommandLineOverlay, ConfigError};

use crate::memory::{SHARED, USER, World};

/// Findings about the user's document, without the file's name.
#[track_caller]
fn check(document: &str, expect: &[&str]) {
    let findings = World::new().file(USER, document).findings();
    let shown: Vec<String> = findings.iter().map(|finding| finding.replace(&format!("{USER}: "), "")).collect();
    assert_eq!(shown, expect, "{document}");
}

#[test]
fn the_documented_example_works_as_written() {
    let world = World::new().var("MY_KEY", "k").file(
        USER,
        r#"{"model": "mine/some-model",
 "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:18080", "apiKeyEnv": "MY_KEY"}},
 "permissions": {"allow": ["Read", "Bash(git status:*)"], "ask": [], "deny": ["Bash(rm:*)"]}}"#,
    );
    let found = world.loaded();
    assert_eq!(world.findings(), Vec::<String>::new());
    let model = found.settings.provider_for(found.settings.chosen_model().unwrap()).unwrap();
    assert_eq!((model.provider.as_str(), model.model.as_str()), ("mine", "some-model"));
    assert_eq!(model.base_url, "http://127.0.0.1:18080");
    assert_eq!(model.api_key.unwrap().reveal(), "k");
    let permissions = &found.settings.permissions;
    let allowed: Vec<String> = permissions.allow.iter().map(|rule| rule.value.to_string()).collect();
    assert_eq!(allowed, ["Read", "Bash(git status:*)"]);
    assert!(permissions.ask.is_empty());
    assert_eq!(permissions.deny[0].to_string(), format!("rule `Bash(rm:*)` from {USER}"));
    assert_eq!(permissions.mode, PermissionMode::Default);
}

#[test]
fn documents_that_say_nothing_wrong() {
    check("", &[]);
    check("  \n", &[]);
    check("{}", &[]);
    check("\u{feff}{}", &[]);
    check(r#"{"$schema": "https://example.org/settings.schema.json"}"#, &[]);
    check(r#"{"model": "mine/deep/er/model:tag@1"}"#, &[]);
    check(r#"{"thinking": {"budgetTokens": 0}, "loopGuard": 0, "maxTurns": 1}"#, &[]);
    check(r#"{"retry": {"idleTimeoutSeconds": 0.25, "maxAttempts": 1}}"#, &[]);
    check(r#"{"permissions": {"mode": "accept-edits", "additionalDirectories": ["/a", "b"]}}"#, &[]);
}

#[test]
fn documents_that_are_no_object() {
    check("[]", &["E must be a JSON object; write `{ ... }`"]);
    check(
        "{",
        &[
            "E is not valid JSON: EOF while parsing an object at line 1 column 1; mend it there (JSON has no comments and no trailing commas)",
        ],
    );
    check(
        "{} {}",
        &[
            "E is not valid JSON: trailing characters at line 1 column 4; mend it there (JSON has no comments and no trailing commas)",
        ],
    );
    let findings = World::new().file(USER, b"{\"model\": \"\xff\"}").findings();
    assert_eq!(findings, [format!("E {USER}: is not valid UTF-8 (at byte 11); save it as UTF-8")]);
}

#[test]
fn a_key_that_stands_twice_is_an_error() {
    check(
        r#"{"permissions": {"deny": ["Bash(rm:*)"], "deny": []}}"#,
        &["E key `permissions.deny` is there twice; keep one of them"],
    );
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    check(r#"{"modle": "a/b"}"#, &["W key `modle` is not known and has no effect; did you mean `model`?"]);
    check(r#"{"max_turns": 3}"#, &["W key `max_turns` is not known and has no effect; did you mean `maxTurns`?"]);
    check(r#"{"zzz": 1}"#, &["W key `zzz` is not known and has no effect"]);
    check(
        r#"{"permissions": {"denny": []}}"#,
        &["W key `permissions.denny` is not known and has no effect; did you mean `deny`?"],
    );
    check(
        r#"{"providers": {"p": {"protocol": "anthropic", "baseURL": "http://h"}}}"#,
        &["W key `providers.p.baseURL` is not known and has no effect; did you mean `baseUrl`?"],
    );
}

#[test]
fn keys_without_effect_are_named() {
    check(r#"{"hooks": {"PreToolUse": []}}"#, &["W key `hooks` is recognised, but has no effect in this version"]);
}

#[test]
fn wrong_kinds_of_values() {
    check(r#"{"model": 3}"#, &["E key `model` must be text, not a number"]);
    check(r#"{"model": null}"#, &["E key `model` must be text, not null; to set nothing, leave the key out"]);
    check(
        r#"{"model": "opus"}"#,
        &["E key `model` must be PROVIDER/MODEL, such as `anthropic/claude-sonnet-5-5`, without spaces"],
    );
    check(r#"{"maxTurns": "3"}"#, &["E key `maxTurns` must be a whole number from 1 to 4294967295, not text"]);
    check(r#"{"maxTurns": 0}"#, &["E key `maxTurns` must be a whole number from 1 to 4294967295"]);
    check(r#"{"maxTurns": 1.5}"#, &["E key `maxTurns` must be a whole number from 1 to 4294967295"]);
    check(r#"{"loopGuard": -1}"#, &["E key `loopGuard` must be a whole number from 0 to 1000"]);
    check(
        r#"{"bash": {"maxTimeoutSeconds": 0}}"#,
        &["E key `bash.maxTimeoutSeconds` must be a number of seconds above 0, 86400 at most"],
    );
    check(
        r#"{"retry": {"maxDelaySeconds": 1e300}}"#,
        &["E key `retry.maxDelaySeconds` must be a number of seconds above 0, 86400 at most"],
    );
    check(
        r#"{"thinking": {"budgetTokens": 5}}"#,
        &["E key `thinking.budgetTokens` (5) must be at least 1024; or 0 to leave it to the model"],
    );
    check(r#"{"hooks": []}"#, &["E key `hooks` must be an object, not a list"]);
    check(r#"{"env": {"A=B": "x"}}"#, &["E key `env.\"A=B\"` is not the name of an environment variable"]);
    check(r#"{"env": {"A": 1}}"#, &["E key `env.A` must be text, not a number"]);
    check(
        r#"{"permissions": {"additionalDirectories": [""]}}"#,
        &["E key `permissions.additionalDirectories[0]` must not be empty"],
    );
}

#[test]
fn permissions() {
    check(
        r#"{"permissions": {"deny": ["Bash(rm:*)", "Bash(rm", 7]}}"#,
        &[
            "E key `permissions.deny[1]` must end with `)`, since it has a `(`",
            "E key `permissions.deny[2]` must be text, not a number",
        ],
    );
    check(
        r#"{"permissions": {"mode": "bypas"}}"#,
        &["E key `permissions.mode` must be one of default, accept-edits, bypass; did you mean `bypass`?"],
    );
    check(r#"{"permissions": {"allow": "Read"}}"#, &["E key `permissions.allow` must be a list, not text"]);
}

#[test]
fn a_rule_about_no_tool_of_ours_is_named() {
    check(
        r#"{"permissions": {"deny": ["Bsh(rm:*)", "bash", "WebFetch", "mcp__any__thing"]}}"#,
        &[
            "W key `permissions.deny[0]` names no tool of Peri and has no effect; did you mean `Bash`?",
            "W key `permissions.deny[1]` names no tool of Peri and has no effect; did you mean `Bash`?",
            "W key `permissions.deny[2]` names no tool of Peri and has no effect",
        ],
    );
    let allowed_tools = vec!["Writ".to_owned()];
    let world = World::new().overlay(CommandLineOverlay { allowed_tools, ..CommandLineOverlay::default() });
    let expect = "W --allowed-tools: rule `Writ` names no tool of Peri and has no effect; did you mean `Write`?";
    assert_eq!(world.findings(), [expect]);
}

#[test]
fn providers() {
    check(
        r#"{"providers": {"p": {}}}"#,
        &["E key `providers.p.protocol` is missing; set it to one of anthropic, openai-chat, openai-responses"],
    );
    check(
        r#"{"providers": {"a/b": {"protocol": "anthropic"}}}"#,
        &[
            "E key `providers.\"a/b\"` has a name that `model` could not use; name it with letters, digits, `.`, `_` and `-`, 64 at most",
        ],
    );
    check(
        r#"{"providers": {"p": {"protocol": "anthropic", "baseUrl": "localhost:80"}}}"#,
        &["E key `providers.p.baseUrl` must begin with `http://` or `https://`; put the scheme in front of the host"],
    );
    check(
        r#"{"providers": {"p": {"protocol": "anthropic", "baseUrl": "https://h/v1"}}}"#,
        &["W key `providers.p.baseUrl` ends in a part that Peri adds itself (`/v1/messages`); write `https://h`"],
    );
    check(
        r#"{"providers": {"p": {"protocol": "anthropic", "apiKeyEnv": "K", "apiKey": "k"}}}"#,
        &[
            "W key `providers.p.apiKey` holds a secret in plain text; better keep it in an environment variable and name that in `apiKeyEnv`",
            "E key `providers.p.apiKey` stands beside `apiKeyEnv`; keep one of them, best `apiKeyEnv`",
        ],
    );
    check(
        r#"{"providers": {"p": {"protocol": "anthropic", "models": {"m": {"contextWindow": 2048, "maxOutputTokens": 2048}}}}}"#,
        &[
            "E key `providers.p.models.m.maxOutputTokens` must be less than `contextWindow`; the window holds input and output together",
        ],
    );
    check(
        r#"{"providers": {"p": {"protocol": "anthropic", "headers": {"Host": "x", "a b": "x", "X": "\n"}}}}"#,
        &[
            "E key `providers.p.headers.Host` is a header that Peri sets itself; leave it out",
            "E key `providers.p.headers.\"a b\"` is not the name of an HTTP header",
            "E key `providers.p.headers.X` must be printable ASCII, 8192 bytes at most",
        ],
    );
}

#[test]
fn a_secret_in_the_wrong_place_is_never_repeated() {
    for document in [
        r#"{"providers": "geheim"}"#,
        r#"{"providers": {"p": "geheim"}}"#,
        r#"{"providers": {"p": {"protocol": "geheim", "baseUrl": "geheim", "apiKeyEnv": "sk-geheim", "apiKey": ["geheim"]}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "baseUrl": "http://u:geheim@h"}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "headers": {"authorization": "geheim\u0001"}}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "apiKey": "geheim", "headers": {"x": "geheim"}}}, "env": {"T": "geheim"}}"#,
        r#"{"model": "geheim", "env": "geheim", "permissions": {"mode": "geheim", "allow": ["geheim("]}, "maxTurns": "geheim"}"#,
        r#"{"apiKey": "geheim"}"#,
        r#"{"model": "geheim"#,
    ] {
        let world = World::new().file(USER, document);
        let shown = match world.load() {
            Ok(found) => format!("{found:?} {}", found.settings.to_display_json()),
            Err(error) => format!("{error:?} {error}"),
        };
        assert!(!shown.contains("geheim"), "{document}: {shown}");
    }
}

#[test]
fn all_errors_are_told_at_once() {
    let world = World::new().file(USER, r#"{"model": 1, "maxTurns": "x", "zzz": 1}"#);
    let Err(ConfigError::Invalid(findings)) = world.load() else { panic!("must not load") };
    assert_eq!(findings.len(), 3);
    // The warnings come along, behind the errors.
    let error = ConfigError::Invalid(findings).to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert_eq!(lines[2], format!("warning: {USER}: key `zzz` is not known and has no effect"));
}

#[test]
fn a_model_that_cannot_be_used_is_told_with_the_warnings_before_it() {
    let found = World::new().file(SHARED, r#"{"model": "p/m"}"#).loaded();
    let error = found.settings.chosen_model().unwrap_err();
    assert_eq!(error.clone().after_warnings(&[]), error);
    let told = error.clone().after_warnings(&found.diagnostics).to_string();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], error.to_string());
    assert!(lines[1].starts_with(&format!("warning: {SHARED}: key `model` ignored")), "{told}");
    assert_eq!(lines.len(), 2);
}
