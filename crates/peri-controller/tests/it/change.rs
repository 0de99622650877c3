//! Changing a session, and whether it could ask a model at all.

use std::time::Duration;

use peri_acp_types::ports::TrustState;
use peri_acp_types::{Content, Effort, PermissionMode, PromptInput, SessionId};
use peri_controller::{ConfigError, ControllerError, SettingChoice};
use peri_model::{ModelProtocol, Thinking};
use peri_testkit::fake_model::FakeAnswer;

use crate::world::{CWD, Settings, World, params};

const TWO_PROVIDERS: &str = r#"{"model": "mine/some-model", "thinking": {"effort": "low"},
    "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9",
                           "models": {"b": {}, "a": {"contextWindow": 64000}}},
                  "also": {"protocol": "openai-chat", "baseUrl": "http://127.0.0.1:8/v1", "models": {"c": {}}},
                  "keyed": {"protocol": "openai-responses", "baseUrl": "http://127.0.0.1:7/v1", "apiKeyEnv": "NO_SUCH_KEY"}}}"#;

fn world() -> World {
    World::new(Settings { user: TWO_PROVIDERS, ..Settings::default() })
}

async fn session(world: &World) -> SessionId {
    world.controller.new_session(params(CWD), None).await.expect("a session").facts.session_id
}

#[tokio::test]
async fn a_client_is_told_what_there_is_to_choose_from() {
    let world = world();
    let facts = world.controller.new_session(params(CWD), None).await.expect("a session").facts;
    let ids: Vec<&str> = facts.models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["mine/some-model", "mine/a", "mine/b", "also/c"]);
    assert_eq!((facts.settings.model.as_str(), facts.settings.effort), ("mine/some-model", Some(Effort::Low)));
}

#[tokio::test]
async fn a_model_is_looked_up_in_settings_and_asked_from_then_on() {
    let world = world();
    let id = session(&world).await;
    let settings = world.controller.change_session(id, SettingChoice::Model("also/d/e".to_owned())).await;
    assert_eq!(settings.expect("a session that lives").model, "also/d/e");
    let endpoint = world.endpoints.lock().expect("no panic").last().cloned().expect("an endpoint");
    assert_eq!((endpoint.protocol, endpoint.model.as_str()), (ModelProtocol::OpenAiChat, "d/e"));
    assert_eq!(endpoint.base_url, "http://127.0.0.1:8/v1");

    let effort = SettingChoice::Effort(Some(Effort::High));
    world.controller.change_session(id, effort).await.expect("a session that lives");
    let mode = SettingChoice::PermissionMode(PermissionMode::AcceptEdits);
    let settings = world.controller.change_session(id, mode).await.expect("a session that lives");
    assert_eq!((settings.effort, settings.permission_mode), (Some(Effort::High), PermissionMode::AcceptEdits));
    world.model.then([FakeAnswer::text("x")]);
    world
        .controller
        .prompt(id, PromptInput::new(vec![Content::Text("hello".to_owned())]))
        .await
        .expect("the input is taken");
    world.model.asked(1).await;
    assert_eq!(world.model.requests()[0].thinking, Thinking::Effort(Effort::High));
}

#[tokio::test]
async fn a_model_that_cannot_be_had_changes_nothing_and_says_why() {
    let world = world();
    let id = session(&world).await;
    let connected = world.endpoints.lock().expect("no panic").len();
    let refused = async |model: &str| {
        let choice = SettingChoice::Model(model.to_owned());
        world.controller.change_session(id, choice).await.expect_err("no such model")
    };
    let error = refused("gpt").await;
    assert!(
        matches!(error, ControllerError::ModelName { .. }) && error.to_string().starts_with("`gpt` must be"),
        "{error}"
    );
    assert_eq!(error.suggested_model(), None, "it could be of any provider");
    let error = refused("theirs/gpt").await;
    assert!(matches!(error, ControllerError::Config(ConfigError::UnknownProvider { .. })), "{error}");
    assert!(!error.wants_authentication());
    let error = refused("keyed/gpt").await;
    assert!(error.to_string().contains("NO_SUCH_KEY") && error.wants_authentication(), "{error}");
    assert_eq!(world.endpoints.lock().expect("no panic").len(), connected);
    let mode = SettingChoice::PermissionMode(PermissionMode::Default);
    let settings = world.controller.change_session(id, mode).await.expect("a session that lives");
    assert_eq!(settings.model, "mine/some-model");
}

#[tokio::test]
async fn a_bare_name_is_taken_for_one_of_the_only_provider() {
    let world = World::new(Settings::default());
    let id = session(&world).await;
    for (choice, suggestion) in [("m2", Some("mine/m2")), ("a b", None), ("theirs/m2", Some("mine/theirs/m2"))] {
        let choice = SettingChoice::Model(choice.to_owned());
        let error = world.controller.change_session(id, choice).await.expect_err("no such model");
        assert_eq!(error.suggested_model().as_deref(), suggestion, "{error}");
    }
}

#[tokio::test]
async fn a_session_that_is_not_open_is_not_changed() {
    let world = world();
    let opened = world.controller.new_session(params(CWD), None).await.expect("a session");
    drop(opened.events);
    let id = opened.facts.session_id;
    world.controller.close_session(id, Duration::from_secs(60)).await.expect("it closes");
    for choice in [SettingChoice::Model("mine/a".to_owned()), SettingChoice::Effort(None)] {
        let changed = world.controller.change_session(id, choice).await;
        assert!(matches!(changed, Err(ControllerError::NotFound(_))), "{changed:?}");
    }
}

#[tokio::test]
async fn whether_a_model_could_be_asked_is_told_without_a_session() {
    world().controller.check_model(Some(CWD)).await.expect("a model without a key");
    world().controller.check_model(None).await.expect("a model without a key");

    let nothing = World::new(Settings { user: "{}", ..Settings::default() });
    let error = nothing.controller.check_model(None).await.expect_err("no model");
    assert!(error.wants_authentication(), "{error}");

    let broken = World::new(Settings { user: r#"{"model": 7}"#, ..Settings::default() });
    let error = broken.controller.check_model(None).await.expect_err("broken settings");
    assert!(!error.wants_authentication(), "{error}");
    let relative = broken.controller.check_model(Some("project")).await;
    assert!(matches!(relative, Err(ControllerError::RelativeCwd(_))));
}

#[tokio::test]
async fn a_workspace_has_no_say_where_none_is_asked_about() {
    let world = World::new(Settings {
        user: "{}",
        workspace: Some(
            r#"{"model": "w/m", "providers": {"w": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#,
        ),
        trust: TrustState::Trusted,
    });
    world.controller.check_model(Some(CWD)).await.expect("the workspace's own model");
    assert!(world.controller.check_model(None).await.is_err());
}
