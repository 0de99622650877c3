//! `peri models`: what the endpoint offers.

use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn offering(list: &Value) -> FakeModelServer {
    FakeModelServer::start(Script::in_order([Answer::new()]).with_models(list))
}

fn two() -> FakeModelServer {
    offering(&json!({"data": [
        {"id": "some-model", "display_name": "Some Model", "max_input_tokens": 100_000, "max_tokens": 8000},
        {"id": "other-model"},
    ]}))
}

#[test]
fn the_list_marks_the_chosen_model() {
    let model = two();
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["models"]).run();
    run.code(0).stdout_has("* mine/some-model").stdout_has("100000 tokens").stdout_has("  mine/other-model");
    let list = sandbox.peri(["models", "mine", "--output-format", "json"]).run().code(0).json();
    assert_eq!(list["chosen"], "mine/some-model");
    assert_eq!(list["models"][0]["id"], "mine/some-model");
    assert_eq!(list["models"][0]["chosen"], true);
    assert_eq!(list["models"][0]["max_output_tokens"], 8000);
    assert_eq!(list["models"][1]["context_window"], Value::Null);
    let asked = model.listings().pop().expect("a request");
    assert_eq!(asked.header("x-api-key"), Some("sk-test-secret"));
    assert!(model.requests().is_empty(), "no model was asked");
}

#[test]
fn what_the_settings_state_wins_and_is_added() {
    let model = two();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.write_user_settings(&json!({
        "model": "mine/unlisted",
        "providers": {"mine": {
            "protocol": "anthropic", "baseUrl": model.base_url(),
            "models": {"some-model": {"contextWindow": 5000}, "stated": {"maxOutputTokens": 77}},
        }},
    }));
    let run = sandbox.peri(["models", "--output-format", "json"]).run();
    let list = run.code(0).json();
    let ids: Vec<&Value> = list["models"].as_array().expect("models").iter().map(|model| &model["model"]).collect();
    assert_eq!(ids, ["some-model", "other-model", "stated", "unlisted"]);
    assert_eq!(list["models"][0]["context_window"], 5000);
    assert_eq!(list["models"][0]["max_output_tokens"], 8000);
    assert_eq!(list["models"][2]["max_output_tokens"], 77);
    assert_eq!(list["models"][3]["listed"], false);
    sandbox.peri(["models"]).run().code(0).stdout_has("* mine/unlisted").stdout_has("not on the endpoint's list");
}

#[test]
fn a_refusal_is_told_in_the_endpoints_own_words() {
    let reply = Reply::status(401).json_body(&json!({"error": {"type": "x", "message": "that key has expired"}}));
    let model = FakeModelServer::start(Script::in_order([Answer::new()]).answering_models(reply));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["models"]).run();
    run.code(1).stdout_is("").stderr_has("that key has expired").stderr_has("401").stderr_has("hint:");
    run.check(!run.stderr.contains("sk-test-secret"), "no key");

    let sandbox = Sandbox::with_model("http://127.0.0.1:1");
    sandbox.peri(["models"]).run().code(1).stderr_has("127.0.0.1:1").stderr_has("hint: is the endpoint up");
}

#[test]
fn what_cannot_be_asked_is_a_usage_error() {
    let sandbox = Sandbox::with_model("http://127.0.0.1:1");
    sandbox.peri(["models", "theirs"]).run().code(2).stderr_has("theirs").stderr_has("known are: mine");
    sandbox.peri(["models"]).env("MY_KEY", None).run().code(2).stderr_has("MY_KEY");
    Sandbox::new().peri(["models"]).run().code(2).stderr_has("no model is chosen");
}

#[test]
fn control_characters_of_an_endpoint_stay_out_of_json_lines_of_text() {
    let model = offering(&json!({"data": [{"id": "a\u{1b}[31mb"}, {"id": "fine"}]}));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["models"]).run();
    run.code(0).check(!run.stdout.contains('\u{1b}'), "no control character").stdout_has("mine/fine");
}
