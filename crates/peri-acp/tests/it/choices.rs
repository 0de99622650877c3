//! What a client chooses for a session that lives: mode, model, effort.

use peri_testkit::acp_driver::{AcpDriver, Permission};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::world::{CWD, Served, World};

async fn client_of(world: &World) -> (AcpDriver, Served, String, Value) {
    let (mut client, served) = world.connect();
    client.initialize().await;
    let answer = client.must("session/new", json!({"cwd": CWD, "mcpServers": []})).await;
    let session = answer["sessionId"].as_str().unwrap_or_default().to_owned();
    client.use_session(&session);
    (client, served, session, answer)
}

/// The value in use of each option, in order.
fn in_use(answer: &Value) -> Vec<(&str, &str)> {
    let options = answer["configOptions"].as_array().expect("options");
    options.iter().filter_map(|option| Some((option["id"].as_str()?, option["currentValue"].as_str()?))).collect()
}

fn choose(session: &str, option: &str, value: &str) -> Value {
    json!({"sessionId": session, "configId": option, "value": value})
}

#[tokio::test]
async fn every_way_to_open_a_session_tells_what_can_be_chosen() {
    let world = World::new([FakeModel::default(), FakeModel::default(), FakeModel::default()]);
    let (mut client, _served, session, opened) = client_of(&world).await;
    let stored = json!({"sessionId": session, "cwd": CWD, "mcpServers": []});
    let mut answers = vec![opened];
    for method in ["session/load", "session/resume"] {
        client.must("session/close", json!({"sessionId": session})).await;
        answers.push(client.must(method, stored.clone()).await);
    }
    for answer in answers {
        assert_eq!(in_use(&answer), [("mode", "default"), ("model", "fake/model"), ("effort", "default")]);
        assert_eq!(answer["modes"]["currentModeId"], "default");
        let modes = answer["modes"]["availableModes"].as_array().expect("modes");
        let ids: Vec<&Value> = modes.iter().map(|mode| &mode["id"]).collect();
        assert_eq!(ids, ["default", "accept-edits", "bypass"]);
    }
}

#[tokio::test]
async fn a_choice_is_answered_whole_and_told_in_both_forms() {
    let world = World::new([FakeModel::default(), FakeModel::default()]);
    let (mut client, _served, session, _) = client_of(&world).await;
    let answer = client.must("session/set_config_option", choose(&session, "effort", "high")).await;
    assert_eq!(in_use(&answer), [("mode", "default"), ("model", "fake/model"), ("effort", "high")]);
    let answer = client.must("session/set_config_option", choose(&session, "mode", "bypass")).await;
    assert_eq!(in_use(&answer), [("mode", "bypass"), ("model", "fake/model"), ("effort", "high")]);
    let told = |kind: &'static str| move |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
    let mode = client.wait_for("the mode", told("current_mode_update")).await;
    assert_eq!(mode["params"]["update"]["currentModeId"], "bypass");
    let options = client
        .wait_for("the options", |message| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == "config_option_update" && update["configOptions"][0]["currentValue"] == "bypass"
        })
        .await;
    assert_eq!(in_use(&options["params"]["update"]), [("mode", "bypass"), ("model", "fake/model"), ("effort", "high")]);
    let answer = client.must("session/set_config_option", choose(&session, "effort", "default")).await;
    assert_eq!(in_use(&answer)[2], ("effort", "default"));
}

#[tokio::test]
async fn the_older_way_to_choose_a_mode_has_the_same_effect() {
    let model = FakeModel::new([
        FakeAnswer::calls(&[("call-1", "Bash", json!({"command": "make test"}))]),
        FakeAnswer::text("Done."),
        FakeAnswer::calls(&[("call-2", "Bash", json!({"command": "make test"}))]),
        FakeAnswer::text("Done."),
    ]);
    let world = World::new([model]);
    let (mut client, _served, session, _) = client_of(&world).await;
    client.on_permission([Permission::Choose("reject_once")]);
    client.prompt("test it").await;
    let answer = client.must("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})).await;
    assert_eq!(answer, json!({}));
    let prompted = client.prompt("again").await;
    let ended = prompted.updates.iter().find(|update| update["status"] == "completed");
    assert_eq!(ended.map(|update| &update["toolCallId"]), Some(&json!("call-2")), "nobody was asked: {prompted:?}");
    client
        .wait_for("the options", |message| message["params"]["update"]["sessionUpdate"] == "config_option_update")
        .await;
}

#[tokio::test]
async fn a_model_of_a_known_provider_can_be_chosen_though_settings_do_not_list_it() {
    let second = FakeModel::new([FakeAnswer::text("Second.")]).named("fake/other");
    let world = World::new([FakeModel::default(), second]);
    let (mut client, _served, session, _) = client_of(&world).await;
    let answer = client.must("session/set_config_option", choose(&session, "model", "fake/other")).await;
    assert_eq!(in_use(&answer)[1], ("model", "fake/other"));
    let values: Vec<&Value> =
        answer["configOptions"][1]["options"].as_array().expect("values").iter().map(|value| &value["value"]).collect();
    assert_eq!(values, ["fake/other", "fake/model"]);
    assert_eq!(client.prompt("hello").await.text(), "Second.");
}

#[tokio::test]
async fn what_is_not_offered_is_refused_with_what_is_and_changes_nothing() {
    let world = World::new([FakeModel::default()]);
    let (mut client, _served, session, _) = client_of(&world).await;
    for (method, params, part) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}), "`accept-edits`"),
        ("session/set_config_option", choose(&session, "mode", "yolo"), "`accept-edits`"),
        ("session/set_config_option", choose(&session, "effort", "most"), "`high`"),
        ("session/set_config_option", choose(&session, "colour", "red"), "`effort`"),
        ("session/set_config_option", choose(&session, "model", "stranger/model"), "`fake/model`"),
        ("session/set_config_option", choose(&session, "model", "nonsense"), "`fake/model`"),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "type": "boolean", "value": true}),
            "text",
        ),
        ("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": 7}), ""),
        ("session/set_config_option", json!({"sessionId": session, "configId": "mode"}), ""),
    ] {
        let error = client.request(method, params.clone()).await.expect_err("it is not offered");
        assert_eq!(error.code, -32602, "{params}: {error:?}");
        assert!(error.message.contains(part), "{params}: {}", error.message);
    }
    let answer = client.must("session/set_config_option", choose(&session, "mode", "default")).await;
    assert_eq!(in_use(&answer), [("mode", "default"), ("model", "fake/model"), ("effort", "default")]);
}
