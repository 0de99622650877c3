//! Creation, resume, close, takeover: the life of a session beyond its turns.

use std::time::Duration;

use peri_acp_types::*;
use peri_agent::{CloseReason, PromptRefused, SessionOpenError};
use peri_model::ModelMessage;
use peri_testkit::fake_model::FakeAnswer;
use peri_testkit::fake_store::StoreOperation;
use peri_testkit::gate::Gate;
use peri_testkit::runtime::FakeClock;
use serde_json::json;

use crate::bench::{Bench, Setup, end, session_id};

const DEADLINE: Duration = Duration::from_secs(61);

fn resume(store: &std::sync::Arc<peri_testkit::fake_store::FakeStore>) -> Setup {
    Setup { store: store.clone(), ..Setup::default() }
}

#[tokio::test]
async fn a_resumed_session_goes_on_with_the_same_prefix_and_the_next_epoch() {
    let mut first = Bench::new([FakeAnswer::calls(&[("a", "echo", json!({}))]), FakeAnswer::text("one")]).await;
    first.prompt("1").await;
    first.handle.close(DEADLINE).await.expect("closed");
    let mut second = Bench::with(resume(&first.store), [FakeAnswer::text("two")]).await;
    assert_eq!(second.handle.session_epoch(), SessionEpoch(2));
    second.prompt("2").await;
    let mut requests = first.model.requests();
    requests.extend(second.model.requests());
    peri_testkit::invariants::check_requests(&requests);
}

#[tokio::test]
async fn a_turn_found_without_an_end_is_marked_for_user_and_model() {
    let mut first = Bench::new([FakeAnswer::Hangs { text: "x".into() }]).await;
    first.accept("do it").await;
    first.until(|event| matches!(event, SessionEvent::TextDelta(_))).await;
    // The first process is gone without a word: its store is as it was.
    let mut second = Bench::with(resume(&first.store), [FakeAnswer::text("I see.")]).await;
    let notice = second.until(|event| matches!(event, SessionEvent::Notice { .. })).await;
    assert!(matches!(notice.event, SessionEvent::Notice { kind: NoticeKind::Interrupted, .. }));
    second.prompt("go on").await;
    let requests = second.model.requests();
    let messages = &requests.first().expect("a request").messages;
    assert!(
        matches!(messages.as_slice(), [ModelMessage::User(_), ModelMessage::User(note), ModelMessage::User(_)]
            if format!("{note:?}").contains("unknown")),
        "{messages:?}"
    );
    let thread = second.thread();
    assert!(matches!(thread.turns.first().map(|turn| &turn.end), Some(StoredTurnEnd::Interrupted(_))));
    second.model.check_invariants();
}

#[tokio::test]
async fn a_second_writer_ends_the_first_ones_turn_with_a_clear_word() {
    let mut bench = Bench::new([FakeAnswer::text("x"), FakeAnswer::text("y")]).await;
    bench.prompt("1").await;
    bench.store.take_over(session_id());
    let events = bench.prompt("2").await;
    assert!(
        matches!(&end(&events).outcome, TurnOutcome::Interrupted(TurnError::Store(StoreError::Fenced { .. }))),
        "{:?}",
        end(&events)
    );
    assert!(bench.next().await.is_none(), "the session has ended");
    let refused = bench.handle.prompt(PromptInput::new(vec![Content::Text("3".into())])).await;
    assert_eq!(refused, Err(PromptRefused::Closed));
}

#[tokio::test]
async fn a_store_that_fails_interrupts_the_turn_and_the_session_goes_on() {
    let mut bench = Bench::new([FakeAnswer::text("x"), FakeAnswer::text("y")]).await;
    bench.store.fail(StoreOperation::Commit, StoreError::Failed("disk full".into()));
    let events = bench.prompt("1").await;
    assert!(matches!(&end(&events).outcome, TurnOutcome::Interrupted(TurnError::Store(StoreError::Failed(_)))));
    assert!(bench.model.requests().is_empty(), "no request before the input is stored");
    bench.store.heal();
    let events = bench.prompt("2").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
}

#[tokio::test]
async fn a_turn_whose_end_could_not_be_stored_does_not_stand_in_the_way_of_the_next() {
    let gate = Gate::shut();
    let answer = FakeAnswer::gated_text([(&gate, "x")]);
    let mut bench = Bench::new([answer, FakeAnswer::text("y")]).await;
    let turn = bench.accept("1").await;
    gate.reached().await;
    bench.store.fail(StoreOperation::Commit, StoreError::Failed("disk full".into()));
    gate.open();
    let events = bench.until_end_of(turn).await;
    assert!(matches!(&end(&events).outcome, TurnOutcome::Interrupted(TurnError::Store(StoreError::Failed(_)))));
    assert_eq!(bench.thread().open_turn, Some(turn), "its end is not stored");
    bench.store.heal();
    let events = bench.prompt("2").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    let thread = bench.thread();
    let ends: Vec<bool> = thread.turns.iter().map(|turn| matches!(turn.end, StoredTurnEnd::Interrupted(_))).collect();
    assert_eq!((ends, thread.open_turn), (vec![true, false], None));
    bench.model.check_invariants();
}

#[tokio::test]
async fn close_settles_and_may_be_repeated() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    bench.prompt("1").await;
    bench.handle.close(DEADLINE).await.expect("closed");
    assert!(bench.next().await.is_none(), "no event after the close");
    assert_eq!(bench.tools.log(), ["closed"]);
    assert_eq!(bench.thread().close_intent, None);
    bench.handle.close(DEADLINE).await.expect("closed again");
}

#[tokio::test]
async fn close_during_a_turn_is_refused_and_the_turn_goes_on() {
    let mut bench = Bench::new([FakeAnswer::calls(&[("a", "hang", json!({}))])]).await;
    let turn = bench.accept("go").await;
    bench.tools.hanging.notified().await;
    let refused = bench.handle.close(DEADLINE).await.expect_err("a turn runs");
    assert_eq!(refused.reasons, [CloseReason::PromptActive]);
    bench.handle.cancel(peri_agent::CancelTarget::Current, Default::default()).await;
    bench.until_end_of(turn).await;
    bench.handle.close(DEADLINE).await.expect("closed");
}

#[tokio::test]
async fn what_stands_in_the_way_of_a_close_is_named_and_it_may_be_tried_again() {
    let setup = Setup { clock: FakeClock::manual(), ..Setup::default() };
    let bench = Bench::with(setup, []).await;
    let refused = |reasons: &'static [CloseReason]| {
        let handle = bench.handle.clone();
        async move { assert_eq!(handle.close(DEADLINE).await.expect_err("incomplete").reasons, reasons) }
    };
    bench.store.fail(StoreOperation::PutCloseIntent, StoreError::Failed("x".into()));
    refused(&[CloseReason::CloseIntentUnconfirmed, CloseReason::StoreUnsettled]).await;
    bench.store.heal();
    *bench.tools.unconfirmed.lock().expect("a list") = vec!["a process".into()];
    refused(&[CloseReason::TasksActive]).await;
    assert!(bench.thread().close_intent.is_some());
    bench.tools.unconfirmed.lock().expect("a list").clear();
    bench.store.fail(StoreOperation::SettleClose, StoreError::Failed("x".into()));
    refused(&[CloseReason::StoreUnsettled]).await;
    let late = bench.handle.prompt(PromptInput::new(vec![Content::Text("late".into())])).await;
    assert_eq!(late, Err(PromptRefused::Closed));
    bench.store.heal();
    bench.handle.close(DEADLINE).await.expect("closed");
}

#[tokio::test]
async fn a_store_that_stalls_makes_a_close_incomplete_at_its_deadline() {
    let setup = Setup { clock: FakeClock::manual(), ..Setup::default() };
    let bench = Bench::with(setup, []).await;
    bench.store.stall();
    let handle = bench.handle.clone();
    let closing = tokio::spawn(async move { handle.close(DEADLINE).await });
    while !bench.clock.sleeps().contains(&DEADLINE) {
        tokio::task::yield_now().await;
    }
    bench.clock.advance(DEADLINE);
    let refused = closing.await.expect("no panic").expect_err("incomplete");
    assert_eq!(refused.reasons, [CloseReason::CloseIntentUnconfirmed, CloseReason::StoreUnsettled]);
    bench.store.resume();
    bench.handle.close(DEADLINE).await.expect("closed");
}

#[tokio::test]
async fn an_unknown_frozen_form_is_refused_and_nothing_is_rewritten() {
    let first = Bench::new([]).await;
    first.handle.close(DEADLINE).await.expect("closed");
    let strange = std::sync::Arc::new(peri_testkit::fake_store::FakeStore::new());
    let mut thread = first.thread();
    thread.frozen = Some(FrozenBlob { version: 99, bytes: vec![1, 2, 3] });
    strange.put(thread.clone());
    let refused = Bench::start(resume(&strange), []).await.err();
    assert_eq!(refused, Some(SessionOpenError::UnknownContext { version: 99 }));
    assert_eq!(strange.thread(session_id()), Some(thread));
}

#[tokio::test]
async fn an_empty_input_is_refused() {
    let bench = Bench::new([]).await;
    for content in [vec![], vec![Content::Text("  \n".into())]] {
        assert_eq!(bench.handle.prompt(PromptInput::new(content)).await, Err(PromptRefused::Empty));
    }
}

#[tokio::test]
async fn a_bug_in_a_middleware_ends_the_turn_and_not_the_session() {
    let mut bench = Bench::new([FakeAnswer::calls(&[("a", "panic", json!({}))]), FakeAnswer::text("x")]).await;
    let events = bench.prompt("1").await;
    assert!(
        matches!(&end(&events).outcome, TurnOutcome::Interrupted(TurnError::Internal(text)) if text.contains("bug"))
    );
    let events = bench.prompt("2").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
}

#[tokio::test]
async fn a_session_that_nobody_can_reach_ends() {
    let bench = Bench::new([FakeAnswer::calls(&[("a", "hang", json!({}))])]).await;
    bench.accept("go").await;
    bench.tools.hanging.notified().await;
    let Bench { handle, mut events, tools, .. } = bench;
    drop(handle);
    let ended = async { while events.recv().await.is_some() {} };
    tokio::time::timeout(crate::bench::PATIENCE, ended).await.expect("the events end");
    assert_eq!(tools.log(), ["+hang", "-hang", "closed"]);
}

#[tokio::test]
async fn notices_of_the_opening_come_first_and_once() {
    let notices = vec![(NoticeKind::Configuration, "unknown key".to_owned())];
    let mut bench = Bench::with(Setup { notices, ..Setup::default() }, [FakeAnswer::text("x")]).await;
    let events = bench.prompt("1").await;
    let told = |event: &&SessionEvent| matches!(event, SessionEvent::Notice { .. });
    assert!(events.first().is_some_and(|event| told(&event)));
    assert_eq!(events.iter().filter(told).count(), 1);
}
