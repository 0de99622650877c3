//! The session map with real sessions in it.

#![cfg(test)]

use std::sync::Arc;

use peri_acp_types::ports::{ContextSource, NoFileHistory};
use peri_acp_types::{Content, ContextFacts, PermissionMode, PromptInput, SessionEpoch, SessionEvent, SessionId};
use peri_agent::{
    AgentDefinition, EventReceiver, Past, SessionConfig, SessionHandle, SessionLimits, SessionPorts, create_session,
};
use peri_runtime::{AlreadyOpen, Runtime};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use peri_testkit::fake_store::FakeStore;
use peri_testkit::runtime::{FakeClock, FakeIds, TokioSpawner};
use std::time::Duration;
use uuid::Uuid;

struct NoContext;

#[async_trait::async_trait]
impl ContextSource for NoContext {
    async fn pull(&self, _cwd: &str) -> (ContextFacts, Vec<String>) {
        (ContextFacts::default(), Vec::new())
    }
}

async fn session(id: SessionId, model: FakeModel) -> (SessionHandle, EventReceiver) {
    let config = SessionConfig {
        session_id: id,
        parent: None,
        cwd: "/project".to_owned(),
        roots: vec!["/project".to_owned()],
        definition: AgentDefinition {
            name: "main".to_owned(),
            system_prompt: "You are a test.".to_owned(),
            append_system_prompt: None,
        },
        limits: SessionLimits::default(),
        model: Arc::new(model),
        permission_mode: PermissionMode::Default,
        effort: None,
        middlewares: Vec::new(),
        notices: Vec::new(),
        hold: Arc::default(),
        past: Past::Own,
    };
    let ports = SessionPorts {
        clock: Arc::new(FakeClock::manual()),
        ids: Arc::new(FakeIds::default()),
        spawner: Arc::new(TokioSpawner),
        store: Arc::new(FakeStore::new()),
        context: Arc::new(NoContext),
        files: Arc::new(NoFileHistory),
    };
    create_session(config, ports).await.expect("a session")
}

fn id(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

#[tokio::test]
async fn an_open_session_is_found_until_its_mapping_is_removed() {
    let runtime = Runtime::default();
    let reservation = runtime.reserve(id(1)).expect("nobody has it");
    let (handle, lane) = session(id(1), FakeModel::default()).await;
    let events = reservation.register(handle, lane);

    assert_eq!(runtime.find(id(1)).map(|handle| handle.session_id()), Some(id(1)));
    assert_eq!(runtime.find(id(2)).map(|handle| handle.session_id()), None);
    assert_eq!(runtime.reserve(id(1)).map(|_| ()), Err(AlreadyOpen(id(1))));
    assert_eq!(runtime.open_sessions().len(), 1);

    runtime.remove(id(1), SessionEpoch(2));
    assert!(runtime.find(id(1)).is_some(), "another opening is not removed");
    runtime.remove(id(1), SessionEpoch(1));
    assert!(runtime.find(id(1)).is_none());
    assert!(runtime.reserve(id(1)).is_ok());
    drop(events);
}

#[tokio::test]
async fn a_turn_is_numbered_without_a_gap_and_drained_means_read_to_the_end() {
    let runtime = Runtime::default();
    let reservation = runtime.reserve(id(1)).expect("nobody has it");
    let (handle, lane) = session(id(1), FakeModel::new([FakeAnswer::text("Hello.")])).await;
    let mut events = reservation.register(handle.clone(), lane);
    handle.prompt(PromptInput::new(vec![Content::Text("hello".to_owned())])).await.expect("the input is taken");

    let mut numbers = Vec::new();
    loop {
        let envelope = events.next().await.expect("the turn has an end");
        numbers.push(envelope.session_seq.0);
        if matches!(envelope.event.event, SessionEvent::TurnEnded(_)) {
            break;
        }
    }
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());

    handle.close(Duration::from_secs(60)).await.expect("the session settles");
    let mut drained = std::pin::pin!(runtime.drained(id(1), SessionEpoch(1)));
    assert!(futures::poll!(&mut drained).is_pending(), "the end has not been read");
    // What became of the queue is told beside the turn.
    while let Some(envelope) = events.next().await {
        assert!(matches!(envelope.event.event, SessionEvent::QueueChanged(_)), "{envelope:?}");
        numbers.push(envelope.session_seq.0);
    }
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    drained.await;
    runtime.drained(id(2), SessionEpoch(1)).await;
}
