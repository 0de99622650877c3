//! `peri doctor`: what it finds, and that it says what to do.

use std::os::unix::fs::PermissionsExt as _;

use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::sandbox::{Finished, Sandbox};

fn serving() -> FakeModelServer {
    let list = json!({"data": [{"id": "some-model"}, {"id": "other-model"}]});
    FakeModelServer::start(Script::in_order([Answer::new()]).with_models(&list))
}

fn refusing(status: u16, words: &str) -> FakeModelServer {
    let reply = Reply::status(status).json_body(&json!({"error": {"type": "x", "message": words}}));
    FakeModelServer::start(Script::in_order([Answer::new()]).answering_models(reply))
}

fn examine(sandbox: &Sandbox) -> Finished<'_> {
    sandbox.peri(["doctor", "--output-format", "json"]).run()
}

/// What was found in that area: level and words of each line.
fn found(run: &Finished<'_>, area: &str) -> Vec<(String, String)> {
    let report = run.json();
    let checks = report["checks"].as_array().expect("checks").clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks
        .iter()
        .filter(|check| check["area"] == area)
        .map(|check| (text(&check["level"]), text(&check["what"])))
        .collect()
}

#[track_caller]
fn check_area(run: &Finished<'_>, area: &str, level: &str, part: &str) {
    let found = found(run, area);
    let there = found.iter().any(|(found, what)| found == level && what.contains(part));
    run.check(there, &format!("{area}: {level}, {part}; found {found:?}"));
}

#[test]
fn all_is_well() {
    let model = serving();
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = examine(&sandbox);
    run.code(0);
    check_area(&run, "settings", "ok", "settings.json");
    check_area(&run, "trust", "ok", "nothing that needs trust");
    check_area(&run, "endpoint", "ok", "lists 2 models");
    check_area(&run, "key", "ok", "MY_KEY is accepted");
    check_area(&run, "model", "ok", "mine/some-model is there");
    check_area(&run, "sessions", "ok", "not there yet");
    check_area(&run, "processes", "ok", "found and ended");
    check_area(&run, "programs", "ok", "ripgrep is not needed");
    check_area(&run, "terminal", "ok", "no terminal");
    run.check(!run.stdout.contains("sk-test-secret"), "no secret");
    run.check(model.requests().is_empty(), "no model was asked");
    run.check(!sandbox.data_dir().exists(), "nothing was made");
    let every_mend = |check: &Value| (check["level"] == "ok") == check["mend"].is_null();
    run.check(run.json()["checks"].as_array().expect("checks").iter().all(every_mend), "a mend unless all is well");

    let run = sandbox.peri(["doctor"]).run();
    run.code(0).stdout_has("ok       endpoint").stdout_has("no fault, no warning");
}

#[test]
fn an_endpoint_that_is_not_there() {
    let sandbox = Sandbox::with_model("http://127.0.0.1:1");
    let run = examine(&sandbox);
    run.code(1);
    check_area(&run, "endpoint", "fault", "127.0.0.1:1 does not answer");
    sandbox.peri(["doctor"]).run().code(1).stdout_has("fault    endpoint").stdout_has("mend:").stdout_has("1 fault");
}

#[test]
fn a_key_that_is_not_taken_and_one_that_is_not_there() {
    let model = refusing(401, "that key has expired");
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = examine(&sandbox);
    run.code(1);
    check_area(&run, "endpoint", "ok", "answers");
    check_area(&run, "key", "fault", "MY_KEY is not accepted: HTTP 401: that key has expired");
    let run = sandbox.peri(["doctor", "--output-format", "json"]).env("MY_KEY", None).run();
    run.code(1);
    check_area(&run, "model", "fault", "MY_KEY");
}

#[test]
fn an_endpoint_without_a_list_leaves_key_and_model_unknown() {
    let model = refusing(404, "no such route");
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = examine(&sandbox);
    run.code(0);
    check_area(&run, "endpoint", "ok", "no such route");
    check_area(&run, "model", "warning", "unknown");
}

#[test]
fn a_model_that_is_not_on_the_list_is_a_warning() {
    let model = serving();
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["doctor", "--output-format", "json", "--model", "mine/absent"]).run();
    run.code(0);
    check_area(&run, "model", "warning", "mine/absent is not on the endpoint's list");
    let run = sandbox.peri(["doctor", "--output-format", "json", "--model", "mine/some"]).run();
    check_area(&run, "model", "warning", "mine/some is not on the endpoint's list");
}

#[test]
fn a_name_that_the_list_has_with_a_date_is_there() {
    let list = json!({"data": [{"id": "some-model-20250929"}, {"id": "some-model-mini"}]});
    let model = FakeModelServer::start(Script::in_order([Answer::new()]).with_models(&list));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = examine(&sandbox);
    check_area(&run, "model", "ok", "mine/some-model is there, as some-model-20250929");
}

#[test]
fn an_only_model_of_another_name_is_a_warning() {
    let list = json!({"data": [{"id": "some-model-mini"}]});
    let model = FakeModelServer::start(Script::in_order([Answer::new()]).with_models(&list));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = examine(&sandbox);
    check_area(&run, "model", "warning", "the endpoint lists only some-model-mini");
}

#[test]
fn settings_and_trust_are_looked_at() {
    let model = serving();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.write(&sandbox.work().join(".peri/settings.json"), r#"{"permissions": {"allow": ["Bash(ls:*)"]}}"#);
    let run = examine(&sandbox);
    run.code(0);
    check_area(&run, "trust", "warning", "not trusted");
    sandbox.write(&sandbox.user_settings(), "{\"model\": 7}");
    let run = examine(&sandbox);
    run.code(1);
    check_area(&run, "settings", "fault", "`model`");
    check_area(&run, "processes", "ok", "");
}

#[test]
fn a_store_that_cannot_be_made_or_read() {
    let model = serving();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.write(&sandbox.home().join(".local/share"), "not a directory");
    let run = examine(&sandbox);
    run.code(1);
    check_area(&run, "sessions", "fault", ".local/share");
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.peri(["-p", "x"]).run();
    let run = examine(&sandbox);
    run.code(0);
    check_area(&run, "sessions", "ok", "can be read and written");
}

#[test]
fn servers_are_looked_for_and_not_started() {
    let model = serving();
    let sandbox = Sandbox::with_model(&model.base_url());
    let marker = sandbox.home().join("started");
    let program = sandbox.home().join("server");
    sandbox.write(&program, &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    sandbox.write_user_settings(&json!({
        "model": "mine/some-model",
        "providers": {"mine": {"protocol": "anthropic", "baseUrl": model.base_url(), "apiKeyEnv": "MY_KEY"}},
        "mcpServers": {
            "there": {"command": program.display().to_string()},
            "absent": {"command": "no-such-program-here", "env": {"TOKEN": "sk-mcp-secret"}},
            "remote": {"url": "https://mcp.example.org/x?key=sk-url-secret"},
        },
    }));
    let run = examine(&sandbox);
    run.code(1);
    check_area(&run, "mcp", "ok", "there starts");
    check_area(&run, "mcp", "fault", "absent starts `no-such-program-here`");
    check_area(&run, "mcp", "ok", "remote is at https://mcp.example.org/x");
    run.check(!marker.exists(), "it was not started");
    run.check(!run.stdout.contains("-secret"), "no secret");
}
