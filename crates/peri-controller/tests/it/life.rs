//! Finding sessions, and ending them.

use std::time::Duration;

use peri_acp_types::{Content, PromptInput, SessionId, StoreError, StoredTurnEnd};
use peri_controller::{CancelAnswer, CancelTarget, CloseReason, ControllerError, OpenedSession, QueueOnCancel};
use peri_testkit::fake_model::FakeAnswer;
use peri_testkit::fake_store::StoreOperation;

use crate::world::{CWD, Settings, World, params};

/// Far more than any step here takes.
const DEADLINE: Duration = Duration::from_secs(60);

fn hello() -> PromptInput {
    PromptInput::new(vec![Content::Text("hello".to_owned())])
}

async fn open(world: &World) -> OpenedSession {
    world.controller.new_session(params(CWD), None).await.expect("a session")
}

/// A session in the middle of a turn that hangs, whose events nobody reads.
async fn hanging(world: &World) -> SessionId {
    world.model.then([FakeAnswer::Hangs { text: String::new() }]);
    let OpenedSession { facts, events } = open(world).await;
    drop(events);
    let asked = world.model.requests().len();
    world.controller.prompt(facts.session_id, hello()).await.expect("the input is taken");
    world.model.asked(asked + 1).await;
    facts.session_id
}

#[tokio::test]
async fn of_two_openings_of_one_session_one_wins() {
    let world = World::new(Settings::default());
    let OpenedSession { facts, events } = open(&world).await;
    let again = world.controller.load_session(params(CWD), facts.session_id).await;
    assert!(matches!(again.map(|_| ()), Err(ControllerError::AlreadyOpen(_))));

    drop(events);
    world.controller.close_session(facts.session_id, DEADLINE).await.expect("it closes");
    let (left, right) = futures::join!(
        world.controller.load_session(params(CWD), facts.session_id),
        world.controller.load_session(params(CWD), facts.session_id),
    );
    assert!(left.is_ok() != right.is_ok(), "one and only one");
}

#[tokio::test]
async fn what_is_not_open_is_not_found() {
    let world = World::new(Settings::default());
    let OpenedSession { facts, events } = open(&world).await;
    drop(events);
    world.controller.close_session(facts.session_id, DEADLINE).await.expect("it closes");
    let id = facts.session_id;
    let prompt = world.controller.prompt(id, hello()).await;
    assert!(matches!(prompt, Err(ControllerError::NotFound(_))));
    let cancel = world.controller.cancel(id, CancelTarget::Current, QueueOnCancel::Keep).await;
    assert!(matches!(cancel, Err(ControllerError::NotFound(_))));
    world.controller.close_session(id, DEADLINE).await.expect("closing a closed session succeeds");
}

#[tokio::test]
async fn a_session_is_opened_in_its_own_directory() {
    let world = World::new(Settings::default());
    let OpenedSession { facts, events } = open(&world).await;
    drop(events);
    world.controller.close_session(facts.session_id, DEADLINE).await.expect("it closes");
    let elsewhere = world.controller.load_session(params("/elsewhere"), facts.session_id).await;
    assert!(matches!(elsewhere.map(|_| ()), Err(ControllerError::OtherCwd { .. })));
    let gone = world.controller.load_session(params("/gone"), facts.session_id).await;
    assert!(matches!(gone.map(|_| ()), Err(ControllerError::NoSuchCwd(path)) if path == "/gone"));
    let by_link = world.controller.load_session(params("/link"), facts.session_id).await.expect("the same directory");
    assert_eq!(by_link.opened.facts.session_epoch.0, 2);
}

#[tokio::test]
async fn a_cancel_is_passed_on_and_its_verdict_comes_back() {
    let world = World::new(Settings::default());
    let id = hanging(&world).await;
    let verdict = world.controller.cancel(id, CancelTarget::Current, QueueOnCancel::Keep).await;
    assert!(
        matches!(&verdict, Ok(CancelAnswer::Cancelling(cancelling)) if cancelling.key.session_id == id),
        "{verdict:?}"
    );
}

#[tokio::test]
async fn a_close_waits_for_the_reader_of_events_but_not_beyond_its_deadline() {
    let world = World::new(Settings::default());
    let OpenedSession { facts, mut events } = open(&world).await;
    let short = Duration::from_millis(50);
    let Err(ControllerError::Close(incomplete)) = world.controller.close_session(facts.session_id, short).await else {
        panic!("nobody has read the events");
    };
    assert_eq!(incomplete.reasons, [CloseReason::EventsUndelivered]);
    while events.next().await.is_some() {}
    world.controller.close_session(facts.session_id, DEADLINE).await.expect("now they are read");
}

#[tokio::test]
async fn a_session_whose_close_is_under_way_cannot_be_opened_yet() {
    let world = World::new(Settings::default());
    let OpenedSession { facts, events } = open(&world).await;
    drop(events);
    world.store.fail(StoreOperation::SettleClose, StoreError::Failed("the disk is full".to_owned()));
    let close = world.controller.close_session(facts.session_id, DEADLINE).await;
    assert!(
        matches!(&close, Err(ControllerError::Close(it)) if it.reasons == [CloseReason::StoreUnsettled]),
        "{close:?}"
    );
    let load = world.controller.load_session(params(CWD), facts.session_id).await.map(|_| ());
    assert!(matches!(load, Err(ControllerError::Close(_))), "{load:?}");

    world.store.heal();
    world.controller.close_session(facts.session_id, DEADLINE).await.expect("it settles now");
    world.controller.load_session(params(CWD), facts.session_id).await.expect("a closed session can go on");
}

#[tokio::test]
async fn shutting_down_cancels_turns_and_closes_every_session() {
    let world = World::new(Settings::default());
    let busy = [hanging(&world).await, hanging(&world).await];
    let OpenedSession { facts: idle, events } = open(&world).await;
    drop(events);
    assert_eq!(world.controller.shutdown(DEADLINE).await, Vec::<String>::new());
    for id in busy {
        let thread = world.store.thread(id).expect("a stored session");
        assert!(matches!(thread.turns[0].end, StoredTurnEnd::Interrupted(_)));
        assert_eq!((thread.open_turn, thread.close_intent), (None, None));
    }
    let prompt = world.controller.prompt(idle.session_id, hello()).await;
    assert!(matches!(prompt, Err(ControllerError::NotFound(_))));
}

#[tokio::test]
async fn shutting_down_reports_what_it_could_not_confirm() {
    let world = World::new(Settings::default());
    let id = hanging(&world).await;
    world.store.fail(StoreOperation::PutCloseIntent, StoreError::Failed("the disk is full".to_owned()));
    let report = world.controller.shutdown(Duration::from_millis(300)).await;
    assert_eq!(report.len(), 1, "{report:?}");
    assert!(report[0].contains(&id.to_string()) && report[0].contains("close-intent-unconfirmed"), "{report:?}");
}

#[tokio::test]
async fn ending_one_clients_sessions_leaves_those_of_others() {
    let world = World::new(Settings::default());
    let (ours, theirs) = (hanging(&world).await, hanging(&world).await);
    assert_eq!(world.controller.end_sessions(&[ours], DEADLINE).await, Vec::<String>::new());
    let verdict = world.controller.cancel(theirs, CancelTarget::Current, QueueOnCancel::Keep).await;
    assert!(matches!(verdict, Ok(CancelAnswer::Cancelling(_))));
}
