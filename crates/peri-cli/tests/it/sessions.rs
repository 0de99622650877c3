//! Going on in a session, and looking at those that are stored.

use peri_testkit::model_server::{Answer, FakeModelServer, Script};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn numbers() -> FakeModelServer {
    FakeModelServer::start(Script::by_history(["One.", "Two.", "Three."].map(|text| Answer::new().text(text))))
}

const ID: &str = "7e570000-0000-4000-8000-000000000001";

#[test]
fn continue_goes_on_in_the_last_session_of_the_directory() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let first = sandbox.peri(["-p", "one", "--output-format", "json"]).run();
    let first = first.code(0).json();
    let second = sandbox.peri(["-p", "-c", "two", "--output-format", "json"]).run();
    let result = second.code(0).json();
    second
        .check(result["session_id"] == first["session_id"], "the same session")
        .check(result["result"] == "Two.", "with its history");
    sandbox.peri(["-p", "--continue", "three"]).run().code(0).stdout_is("Three.\n");
    model.check_invariants();

    let elsewhere = sandbox.home();
    let run = sandbox.peri(["-p", "-c", "x"]).cwd(&elsewhere).run();
    run.code(2).stderr_has("no session").stderr_has("hint:");
}

#[test]
fn resume_takes_the_beginning_of_an_id_from_any_directory() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.peri(["-p", "one", "--session-id", ID]).run().code(0).stdout_is("One.\n");
    let elsewhere = sandbox.home();
    let run = sandbox.peri(["-p", "-r", "7E57", "two"]).cwd(&elsewhere).run();
    run.code(0).stdout_is("Two.\n").stderr_has(&format!("works in {}", sandbox.canonical_work()));
    let run = sandbox.peri(["-p", "-r", ID, "--cwd", "../home", "x"]).run();
    run.code(2).stderr_has("works in").stderr_has("hint: leave --cwd out");
    sandbox.peri(["-p", "-r", ID, "three"]).run().code(0).stdout_is("Three.\n");

    let run = sandbox.peri(["-p", "again", "--session-id", ID]).run();
    run.code(2).stderr_has("exists already").stderr_has("--resume");
    let run = sandbox.peri(["-p", "-r", "ffff", "x"]).run();
    run.code(2).stderr_has("no session ffff").stderr_has("hint:");

    let other = "7e570000-0000-4000-8000-000000000002";
    sandbox.peri(["-p", "one", "--session-id", other]).run().code(0);
    sandbox.peri(["-p", "-r", "7e57", "x"]).run().code(2).stderr_has("2 sessions").stderr_has(ID);
}

#[test]
fn list_and_show() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.peri(["sessions", "list"]).run().code(0).stdout_has("no sessions");
    assert!(!sandbox.data_dir().exists(), "a list makes no file");
    sandbox.peri(["-p", "first words\nmore", "--session-id", ID]).run().code(0);

    sandbox.peri(["sessions", "list"]).run().code(0).stdout_has(ID).stdout_has("first words");
    let elsewhere = sandbox.peri(["sessions", "list"]).cwd(&sandbox.home()).run();
    elsewhere.code(0).check(!elsewhere.stdout.contains(ID), "another directory's are not listed");
    sandbox.peri(["sessions", "list", "--all"]).cwd(&sandbox.home()).run().code(0).stdout_has(ID);
    let listed = sandbox.peri(["sessions", "list", "--output-format", "json"]).run().code(0).json();
    assert_eq!(listed[0]["session_id"], ID);
    assert_eq!(listed[0]["title"], "first words");

    sandbox.peri(["sessions", "show", "7e57"]).run().code(0).stdout_has("> first words").stdout_has("One.");
    let shown = sandbox.peri(["sessions", "show", ID, "--output-format", "json"]).run().code(0).json();
    let roles: Vec<&Value> = shown["messages"].as_array().expect("messages").iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, [&json!("user"), &json!("assistant")]);
}

#[test]
fn without_persistence_nothing_is_kept() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.peri(["-p", "one", "--no-session-persistence"]).run().code(0).stdout_is("One.\n");
    let run = sandbox.peri(["-p", "-c", "two"]).run();
    run.code(2).check(!sandbox.data_dir().join("trust.json").exists(), "nothing was written");
}

#[test]
fn append_system_prompt_and_cwd_have_their_effect() {
    let model = numbers();
    let sandbox = Sandbox::with_model(&model.base_url());
    let elsewhere = sandbox.home().join("project");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let run =
        sandbox.peri(["-p", "one", "--append-system-prompt", "Speak of ferns.", "--cwd", "../home/project"]).run();
    run.code(0);
    let request = model.requests().pop().expect("a request");
    let system = request.json["system"].to_string();
    run.check(system.contains("Speak of ferns."), "the text is in the system prompt")
        .check(system.contains("home/project"), "the directory is in the system prompt");
}
