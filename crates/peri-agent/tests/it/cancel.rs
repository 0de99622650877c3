//! Cancel: idempotent, exact, and history stays whole.

use peri_acp_types::*;
use peri_agent::{CancelAnswer, CancelTarget, QueueOnCancel};
use peri_testkit::fake_model::FakeAnswer;
use serde_json::json;

use crate::bench::{Bench, end};

async fn cancel(bench: &Bench) -> CancelAnswer {
    bench.handle.cancel(CancelTarget::Current, QueueOnCancel::Keep).await
}

#[tokio::test]
async fn during_the_stream_nothing_of_the_answer_is_kept_and_the_next_turn_works() {
    let mut bench = Bench::new([FakeAnswer::Hangs { text: "half".into() }, FakeAnswer::text("x")]).await;
    let turn = bench.accept("go").await;
    bench.until(|event| matches!(event, SessionEvent::TextDelta(_))).await;
    assert!(matches!(cancel(&bench).await, CancelAnswer::Cancelling(cancelling) if cancelling.key.turn_id == turn));
    let events = bench.until_end_of(turn).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Interrupted(TurnError::Cancelled));
    assert_eq!(cancel(&bench).await, CancelAnswer::Idle);
    bench.prompt("again").await;
    assert!(!format!("{:?}", bench.thread()).contains("half"));
    bench.model.check_invariants();
}

#[tokio::test]
async fn during_tools_every_call_gets_one_result() {
    let calls = FakeAnswer::calls(&[
        ("a", "echo", json!({"text": "done"})),
        ("b", "hang", json!({})),
        ("c", "write", json!({"text": "never"})),
    ]);
    let mut bench = Bench::new([calls, FakeAnswer::text("x")]).await;
    let turn = bench.accept("go").await;
    bench.tools.hanging.notified().await;
    cancel(&bench).await;
    let events = bench.until_end_of(turn).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Interrupted(TurnError::Cancelled));
    assert_eq!(
        bench.tools.log(),
        ["+echo", "-echo", "+hang", "-hang"],
        "the hook's future was dropped, the rest not run"
    );
    let results = format!("{:?}", bench.thread().messages);
    assert!(
        results.contains("Stopped: the user cancelled") && results.contains("Not run: the user cancelled"),
        "{results}"
    );
    bench.prompt("again").await;
    bench.model.check_invariants();
}

#[tokio::test]
async fn during_the_wait_for_another_attempt() {
    let setup = crate::bench::Setup { clock: peri_testkit::runtime::FakeClock::manual(), ..Default::default() };
    let mut bench = Bench::with(setup, [FakeAnswer::failure(ModelFailureKind::Overloaded, "")]).await;
    let turn = bench.accept("go").await;
    bench.until(|event| matches!(event, SessionEvent::AttemptFailed { .. })).await;
    cancel(&bench).await;
    let events = bench.until_end_of(turn).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Interrupted(TurnError::Cancelled));
}

#[tokio::test]
async fn a_cancel_of_an_older_attempt_does_nothing() {
    let script = [FakeAnswer::failure(ModelFailureKind::Cut, ""), FakeAnswer::Hangs { text: "x".into() }];
    let mut bench = Bench::new(script).await;
    let turn_id = bench.accept("go").await;
    let started = |event: &SessionEvent| matches!(event, SessionEvent::AttemptStarted);
    let older = bench.until(started).await.attempt_id.expect("an attempt");
    let newer = bench.until(started).await.attempt_id.expect("an attempt");
    let target = |attempt_id| CancelTarget::Attempt { turn_id, attempt_id };
    let stale = bench.handle.cancel(target(older), QueueOnCancel::Keep).await;
    assert!(matches!(stale, CancelAnswer::Stale { current: Some(key) } if key.attempt_id == newer), "{stale:?}");
    let right = bench.handle.cancel(target(newer), QueueOnCancel::Keep).await;
    assert!(matches!(right, CancelAnswer::Cancelling(_)));
    let again = bench.handle.cancel(target(newer), QueueOnCancel::Keep).await;
    assert!(matches!(again, CancelAnswer::Cancelling(_) | CancelAnswer::Stale { current: None }));
    bench.until_end_of(turn_id).await;
}

#[tokio::test]
async fn waiting_inputs_stay_unless_the_cancel_clears_them() {
    let script =
        [FakeAnswer::Hangs { text: "x".into() }, FakeAnswer::Hangs { text: "y".into() }, FakeAnswer::text("z")];
    let mut bench = Bench::new(script).await;
    let (first, second) = (bench.accept("1").await, bench.accept("2").await);
    bench.accept("3").await;
    bench.until(|event| matches!(event, SessionEvent::TextDelta(_))).await;
    cancel(&bench).await;
    bench.until_end_of(first).await;
    bench.until(|event| matches!(event, SessionEvent::TextDelta(_))).await;
    bench.handle.cancel(CancelTarget::Current, QueueOnCancel::Clear).await;
    bench.until_end_of(second).await;
    assert_eq!(cancel(&bench).await, CancelAnswer::Idle);
    assert_eq!(bench.thread().turns.len(), 2, "the third input was cleared");
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_keep_a_turn_from_being_cancelled() {
    let flood: Vec<AssistantPart> = (0..2000)
        .map(|n| match n % 2 {
            0 => AssistantPart::Text("x".repeat(1024)),
            _ => AssistantPart::Thought(Thought { text: "y".into(), ..Thought::default() }),
        })
        .collect();
    let answer = FakeAnswer::Says { parts: flood, stop: ModelStop::EndTurn };
    let mut bench = Bench::new([answer]).await;
    let turn = bench.accept("go").await;
    bench.model.asked(1).await;
    assert!(matches!(cancel(&bench).await, CancelAnswer::Cancelling(_)));
    let events = bench.until_end_of(turn).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Interrupted(TurnError::Cancelled));
}
