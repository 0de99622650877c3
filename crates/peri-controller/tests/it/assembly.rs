//! What a session is made of.

use std::time::Duration;

use peri_acp_types::ports::{McpTransport, ThreadQuery, TrustState};
use peri_acp_types::{Content, PermissionMode, PromptInput, SessionEvent};
use peri_controller::{ControllerError, LiteParams, Persistence, StampedEvents};
use peri_testkit::fake_model::FakeAnswer;

use crate::world::{CWD, Settings, World, params};

/// Long enough for a busy machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The notices before the first turn.
pub async fn notices(events: &mut StampedEvents, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let next = tokio::time::timeout(PATIENCE, events.next()).await;
        match next.unwrap_or_else(|_| panic!("only {texts:?}")).expect("an event").event.event {
            SessionEvent::Notice { text, .. } => texts.push(text),
            other => panic!("no notice: {other:?}"),
        }
    }
    texts
}

#[tokio::test]
async fn settings_reach_model_and_servers() {
    let world = World::new(Settings {
        user: r#"{"model": "mine/some-model", "maxTurns": 3, "appendSystemPrompt": "Speak French.",
                  "bash": {"defaultTimeoutSeconds": 7},
                  "permissions": {"mode": "accept-edits", "additionalDirectories": ["/more"]},
                  "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#,
        ..Settings::default()
    });
    world.model.then([FakeAnswer::text("Bonjour.")]);
    let opened = world.controller.new_session(params("/link"), None).await.expect("a session");

    assert_eq!(opened.facts.cwd, CWD, "one folder has one name");
    assert_eq!(opened.facts.settings.model, "mine/some-model");
    assert_eq!(opened.facts.settings.permission_mode, PermissionMode::AcceptEdits);
    assert_eq!(opened.facts.persistence, Persistence::Kept);
    let endpoint = world.endpoints.lock().expect("no panic").remove(0);
    assert_eq!((endpoint.provider.as_str(), endpoint.model.as_str()), ("mine", "some-model"));
    assert_eq!(endpoint.base_url, "http://127.0.0.1:9");
    let server = world.servers.lock().expect("no panic").remove(0);
    assert_eq!(
        (server.name.as_str(), server.roots.as_slice()),
        ("workspace", ["/project".to_owned(), "/more".to_owned()].as_slice())
    );
    let McpTransport::Builtin(settings) = server.transport else { panic!("the workspace server is builtin") };
    assert_eq!(settings.command_timeout.as_secs(), 7);

    let content = PromptInput::new(vec![Content::Text("hello".to_owned())]);
    world.controller.prompt(opened.facts.session_id, content).await.expect("the input is taken");
    world.model.asked(1).await;
    let request = world.model.requests().remove(0);
    assert!(request.system[0].starts_with("You are Peri"));
    assert_eq!(request.system.last().map(String::as_str), Some("Speak French."));
}

#[tokio::test]
async fn an_untrusted_workspace_changes_nothing_and_is_named_once() {
    let world = World::new(Settings {
        workspace: Some(r#"{"model": "evil/model", "permissions": {"allow": ["Bash"], "mode": "bypass"}}"#),
        trust: TrustState::Untrusted,
        ..Settings::default()
    });
    let mut opened = world.controller.new_session(params(CWD), None).await.expect("a session");
    assert_eq!(opened.facts.settings.permission_mode, PermissionMode::Default);
    assert_eq!(world.endpoints.lock().expect("no panic")[0].model, "some-model");
    let said = notices(&mut opened.events, 1).await.remove(0);
    for ignored in ["`model`", "`permissions.allow`", "`permissions.mode`"] {
        assert!(said.contains(ignored), "{ignored}: {said}");
    }
}

/// The error of a new session, which leaves nothing in the store.
async fn check(settings: Settings, params: LiteParams, part: &str) -> ControllerError {
    let world = World::new(settings);
    let Err(error) = world.controller.new_session(params, None).await else { panic!("no error about {part}") };
    assert!(error.to_string().contains(part), "`{part}` is not in `{error}`");
    let everything = ThreadQuery { limit: 10, ..ThreadQuery::default() };
    let stored = world.controller.list_sessions(everything).await.expect("a list");
    assert_eq!(stored.threads, [], "a mistake leaves no trace");
    error
}

#[tokio::test]
async fn mistakes_are_told_apart_and_leave_nothing() {
    let user = |user| Settings { user, ..Settings::default() };
    let error = check(user(r#"{"model": 7}"#), params(CWD), "/user/settings.json").await;
    assert!(matches!(error, ControllerError::Config(_)));
    let error = check(user("{}"), params(CWD), "ANTHROPIC_API_KEY").await;
    assert!(matches!(error, ControllerError::Config(_)));
    let error = check(Settings::default(), params("project"), "absolute").await;
    assert!(matches!(error, ControllerError::RelativeCwd(_)));
    let error = check(Settings::default(), params("/gone"), "/gone: ").await;
    assert!(matches!(error, ControllerError::NoSuchCwd(_)));
    let stranger = LiteParams { agent: "stranger".to_owned(), ..params(CWD) };
    let error = check(Settings::default(), stranger, "stranger").await;
    assert!(matches!(error, ControllerError::UnknownAgent(_)));
}
