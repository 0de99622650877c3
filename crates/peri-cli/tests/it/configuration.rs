//! Settings: faults are told with file, key and mend.

use peri_testkit::model_server::{Answer, FakeModelServer, Script};
use serde_json::json;

use crate::sandbox::Sandbox;

#[test]
fn a_fault_names_file_key_and_mend() {
    let sandbox = Sandbox::new();
    sandbox.write_user_settings(&json!({"model": "mine/x", "permissions": {"deny": [7]}, "providers": {
        "mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}));
    for args in [&["-p", "x"][..], &["config", "check"], &["config", "show"]] {
        let run = sandbox.peri(args.iter().copied()).run();
        run.code(2).stderr_has("settings.json").stderr_has("permissions.deny[0]");
    }
}

#[test]
fn no_model_and_no_key_are_told_with_what_to_set() {
    let sandbox = Sandbox::new();
    sandbox.peri(["-p", "x"]).run().code(2).stderr_has("ANTHROPIC_API_KEY");
    sandbox.peri(["config", "check"]).run().code(2).stderr_has("ANTHROPIC_API_KEY");

    let sandbox = Sandbox::with_model("http://127.0.0.1:9");
    let run = sandbox.peri(["-p", "x"]).env("MY_KEY", None).run();
    run.code(2).stderr_has("MY_KEY").stderr_has("not set");
    sandbox.peri(["-p", "x", "--model", "opus"]).run().code(2).stderr_has("--model").stderr_has("PROVIDER/MODEL");
    sandbox.peri(["-p", "x", "--allowed-tools", "Bash(git"]).run().code(2).stderr_has("--allowed-tools");
}

#[test]
fn check_show_and_path() {
    let sandbox = Sandbox::with_model("http://127.0.0.1:9");
    sandbox.peri(["config", "check"]).run().code(0).stdout_has("mine/some-model").stdout_has("MY_KEY");
    let run = sandbox.peri(["config", "show", "--settings", r#"{"maxTurns": 7}"#]).run();
    let shown = run.code(0).json();
    run.check(shown["settings"]["model"] == "mine/some-model", "the model")
        .check(shown["settings"]["maxTurns"] == 7, "what --settings says")
        .check(shown["setBy"]["model"].as_str().is_some_and(|by| by.ends_with("settings.json")), "who said it");
    let run = sandbox.peri(["config", "path"]).run();
    run.code(0).stdout_has(".config/peri/settings.json").stdout_has("peri.db").stdout_has("(not there)");

    let run = sandbox.peri(["config", "show"]).env("PERI_HOME", Some("/nowhere/peri")).run();
    run.code(0).check(run.json()["settings"]["model"].is_null(), "PERI_HOME moves the settings");
    sandbox
        .peri(["config", "path"])
        .env("PERI_HOME", Some("/nowhere/peri"))
        .run()
        .code(0)
        .stdout_has("/nowhere/peri/data");
}

#[test]
fn secrets_are_not_shown() {
    let sandbox = Sandbox::new();
    sandbox.write_user_settings(&json!({"model": "mine/x", "providers": {"mine": {
        "protocol": "anthropic", "baseUrl": "http://127.0.0.1:9", "apiKey": "sk-plain-secret"}}}));
    for action in ["show", "check", "path"] {
        let run = sandbox.peri(["config", action]).run();
        run.code(0).check(!format!("{}{}", run.stdout, run.stderr).contains("sk-plain-secret"), "the key is not shown");
    }
}

#[test]
fn settings_of_the_command_line_are_a_file_or_json() {
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]));
    let sandbox = Sandbox::new();
    let settings = json!({"model": "there/m", "providers": {"there": {
        "protocol": "anthropic", "baseUrl": model.base_url()}}})
    .to_string();
    sandbox.peri(["-p", "x", "--settings", &settings]).run().code(0).stdout_is("Hello.\n");
    sandbox.write(&sandbox.work().join("mine.json"), &settings);
    sandbox.peri(["-p", "x", "--settings", "mine.json"]).run().code(0).stdout_is("Hello.\n");
    sandbox.peri(["-p", "x", "--config-file", "mine.json"]).run().code(0).stdout_is("Hello.\n");
    sandbox.peri(["-p", "x", "--settings", "nowhere.json"]).run().code(2).stderr_has("nowhere.json");
}

#[test]
fn variables_define_a_provider_where_settings_name_none() {
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]));
    let sandbox = Sandbox::new();
    let run = sandbox
        .peri(["-p", "x"])
        .env("ANTHROPIC_API_KEY", Some("sk-from-env"))
        .env("ANTHROPIC_BASE_URL", Some(&model.base_url()))
        .run();
    run.code(0).stdout_is("Hello.\n");
    let request = model.requests().pop().expect("a request");
    run.check(request.header("x-api-key") == Some("sk-from-env"), "with the key");
}

#[test]
fn unknown_keys_are_told_once_and_harm_nothing() {
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--settings", r#"{"colour": "blue"}"#]).run();
    run.code(0).stdout_is("Hello.\n").check(run.stderr.matches("colour").count() == 1, "told once");
}
