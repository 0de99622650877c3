//! Turns: what a prompt leads to.

use std::time::Duration;

use peri_acp_types::*;
use peri_agent::{RetryPolicy, SessionLimits};
use peri_model::ModelMessage;
use peri_testkit::fake_model::FakeAnswer;
use serde_json::json;

use crate::bench::{Bench, Setup, end};

#[tokio::test]
async fn a_text_turn_is_committed_and_ends_once_and_last() {
    let mut bench = Bench::new([FakeAnswer::text("Hello.")]).await;
    let events = bench.prompt("hi").await;
    let ends = events.iter().filter(|event| matches!(event, SessionEvent::TurnEnded(_))).count();
    assert_eq!(ends, 1);
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    assert_eq!((end(&events).steps, end(&events).usage.output_tokens), (1, 10));
    assert!(events.contains(&SessionEvent::TextDelta("Hello.".into())));
    let thread = bench.thread();
    assert_eq!((thread.messages.len(), thread.turns.len(), thread.open_turn), (2, 1, None));
    bench.model.check_invariants();
}

#[tokio::test]
async fn the_system_prompt_holds_definition_surroundings_instructions_and_the_users_addition() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    bench.prompt("hi").await;
    let requests = bench.model.requests();
    let system = requests.first().expect("a request").system.join("\n");
    let order = ["You are a test.", "Tools are fake.", "/workspace", "2026-01-02", "Use tabs.", "Be brief."];
    let positions: Vec<_> = order.iter().map(|words| system.find(words)).collect();
    assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{positions:?} in {system}");
}

#[tokio::test]
async fn calls_get_their_results_in_the_order_of_the_calls() {
    let calls = FakeAnswer::calls(&[
        ("a", "echo", json!({"text": "one"})),
        ("b", "echo", json!({"text": "two"})),
        ("c", "write", json!({"text": "three"})),
        ("d", "nothing-like-that", json!({})),
        ("e", "echo", json!("no object")),
    ]);
    let mut bench = Bench::new([calls, FakeAnswer::text("Done.")]).await;
    let events = bench.prompt("go").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    let thread = bench.thread();
    let results = thread.messages.iter().find_map(|message| match &message.body {
        MessageBody::ToolResults(results) => Some(results.clone()),
        _ => None,
    });
    let told: Vec<(String, bool)> =
        results.expect("results").iter().map(|result| (result.output.joined_text(), result.output.is_error)).collect();
    let expected =
        [("one", false), ("two", false), ("three", false), ("There is no tool", true), ("not a JSON object", true)];
    for ((text, is_error), (words, expected_error)) in told.iter().zip(expected) {
        assert!(text.contains(words) && *is_error == expected_error, "{told:?}");
    }
    // Both reads ran side by side, the write alone after them.
    assert_eq!(bench.tools.log(), ["+echo", "+echo", "-echo", "-echo", "+write", "-write"]);
    bench.model.check_invariants();
}

#[tokio::test]
async fn a_refused_call_is_a_result_and_the_turn_goes_on() {
    let mut bench = Bench::new([FakeAnswer::calls(&[("a", "write", json!({}))]), FakeAnswer::text("Well.")]).await;
    *bench.tools.refuse.lock().expect("a refusal") = Some("not allowed".into());
    let events = bench.prompt("go").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    assert!(bench.tools.log().is_empty(), "the call was not run");
    bench.model.check_invariants();
}

#[tokio::test]
async fn a_failed_attempt_leaves_no_text_and_no_call_behind() {
    for kind in [ModelFailureKind::Overloaded, ModelFailureKind::Cut, ModelFailureKind::IdleTimeout] {
        let script = [
            FakeAnswer::failure(kind, "half a"),
            FakeAnswer::EndsSilently { text: "another half".into() },
            FakeAnswer::calls(&[("a", "write", json!({"text": "x"}))]),
            FakeAnswer::text("whole"),
        ];
        let mut bench = Bench::new(script).await;
        let events = bench.prompt("go").await;
        assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn), "{kind:?}");
        let failed =
            events.iter().filter(|event| matches!(event, SessionEvent::AttemptFailed { retry_in: Some(_), .. }));
        assert_eq!(failed.count(), 2);
        assert_eq!(bench.tools.log(), ["+write", "-write"], "no tool runs twice");
        let stored = format!("{:?}", bench.thread());
        assert!(!stored.contains("half"), "{stored}");
        bench.model.check_invariants();
    }
}

#[tokio::test]
async fn attempts_have_ids_of_their_own() {
    let mut bench = Bench::new([FakeAnswer::failure(ModelFailureKind::Cut, ""), FakeAnswer::text("x")]).await;
    bench.accept("go").await;
    let first = bench.until(|event| matches!(event, SessionEvent::AttemptStarted)).await;
    let second = bench.until(|event| matches!(event, SessionEvent::AttemptStarted)).await;
    assert!(first.attempt_id.is_some() && first.attempt_id != second.attempt_id);
    assert_eq!(first.turn_id, second.turn_id);
}

#[tokio::test]
async fn when_attempts_are_exhausted_the_turn_is_interrupted_with_the_failure() {
    let limits =
        SessionLimits { retry: RetryPolicy { max_attempts: 3, ..RetryPolicy::default() }, ..SessionLimits::default() };
    let script = (0..5).map(|_| FakeAnswer::failure(ModelFailureKind::Overloaded, "x"));
    let mut bench = Bench::with(Setup { limits, ..Setup::default() }, script).await;
    let events = bench.prompt("go").await;
    let outcome = &end(&events).outcome;
    assert!(
        matches!(outcome, TurnOutcome::Interrupted(TurnError::Model(failure)) if failure.kind == ModelFailureKind::Overloaded)
    );
    assert_eq!(bench.model.requests().len(), 3);
    // The input stays, and the next turn goes on from it.
    bench.model.then([FakeAnswer::text("again")]);
    bench.model.then([]);
    assert_eq!(bench.thread().open_turn, None);
}

#[tokio::test]
async fn what_would_fail_again_is_not_tried_again() {
    let mut bench = Bench::new([FakeAnswer::failure(ModelFailureKind::Auth, "")]).await;
    let events = bench.prompt("go").await;
    assert!(matches!(end(&events).outcome, TurnOutcome::Interrupted(TurnError::Model(_))));
    assert_eq!(bench.model.requests().len(), 1);
}

#[tokio::test]
async fn max_turns_stops_between_two_requests_with_all_results_stored() {
    let limits = SessionLimits { max_turn_requests: Some(2), ..SessionLimits::default() };
    let script = (0..5).map(|n| FakeAnswer::calls(&[(&format!("c{n}"), "echo", json!({"text": n.to_string()}))]));
    let mut bench = Bench::with(Setup { limits, ..Setup::default() }, script).await;
    let events = bench.prompt("go").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::MaxTurnRequests));
    assert_eq!(bench.model.requests().len(), 2);
    bench.model.then([FakeAnswer::text("on")]);
    bench.model.check_invariants();
}

#[tokio::test]
async fn a_loop_is_told_to_the_model_and_then_stopped() {
    let limits = SessionLimits { loop_guard: 3, ..SessionLimits::default() };
    let script = (0..20).map(|n| FakeAnswer::calls(&[(&format!("c{n}"), "echo", json!({"text": "same"}))]));
    let mut bench = Bench::with(Setup { limits, ..Setup::default() }, script).await;
    let events = bench.prompt("go").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::MaxTurnRequests));
    assert_eq!(bench.model.requests().len(), 6);
    let told = |index: usize| {
        let requests = bench.model.requests();
        let messages = &requests.get(index).expect("a request").messages;
        messages
            .iter()
            .any(|message| matches!(message, ModelMessage::User(content) if format!("{content:?}").contains("3 times")))
    };
    assert!(!told(2) && told(3), "told after the third repetition");
    bench.model.check_invariants();
}

#[tokio::test]
async fn an_answer_cut_at_the_output_limit_runs_no_call() {
    let FakeAnswer::Says { parts, .. } = FakeAnswer::calls(&[("a", "write", json!({}))]) else { unreachable!() };
    let cut = FakeAnswer::Says { parts, stop: ModelStop::MaxTokens };
    let mut bench = Bench::new([cut, FakeAnswer::text("ok")]).await;
    let events = bench.prompt("go").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    assert!(bench.tools.log().is_empty());
    let text = FakeAnswer::Says { parts: vec![AssistantPart::Text("long".into())], stop: ModelStop::MaxTokens };
    bench.model.then([text]);
    let events = bench.prompt("more").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::MaxTokens));
    bench.model.check_invariants();
}

#[tokio::test]
async fn an_empty_answer_does_not_spoil_the_next_request() {
    let empty = FakeAnswer::Says { parts: vec![], stop: ModelStop::EndTurn };
    let mut bench = Bench::new([empty, FakeAnswer::text("x")]).await;
    bench.prompt("one").await;
    bench.prompt("two").await;
    let requests = bench.model.requests();
    let last = requests.last().expect("a request");
    assert!(!last.messages.iter().any(|message| matches!(message, ModelMessage::Assistant(parts) if parts.is_empty())));
}

#[tokio::test]
async fn inputs_that_come_while_a_turn_runs_start_the_next_turns_in_order() {
    let mut bench = Bench::new([FakeAnswer::text("1"), FakeAnswer::text("2"), FakeAnswer::text("3")]).await;
    let turns = [bench.accept("a").await, bench.accept("b").await, bench.accept("c").await];
    for turn in turns {
        let events = bench.until_end_of(turn).await;
        assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    }
    let thread = bench.thread();
    assert_eq!(thread.turns.iter().map(|turn| turn.turn_id).collect::<Vec<_>>(), turns);
    bench.model.check_invariants();
}

#[tokio::test]
async fn the_wait_between_attempts_follows_the_provider() {
    let FakeAnswer::Fails { text, mut failure } = FakeAnswer::failure(ModelFailureKind::RateLimited, "") else {
        unreachable!()
    };
    failure.retry_after = Some(Duration::from_secs(7));
    let mut bench = Bench::new([FakeAnswer::Fails { text, failure }, FakeAnswer::text("x")]).await;
    bench.prompt("go").await;
    let longest = bench.clock.sleeps().into_iter().max().expect("a wait");
    assert!((7.0..8.0).contains(&longest.as_secs_f64()), "{longest:?}");
}

#[tokio::test]
async fn a_full_window_lowers_the_limit_of_the_answer_and_warns_once() {
    let window_tokens = 200_000;
    let limits = SessionLimits { max_output_tokens: Some(32_000), ..SessionLimits::default() };
    let mut bench =
        Bench::with(Setup { limits, ..Setup::default() }, [FakeAnswer::text("x"), FakeAnswer::text("y")]).await;
    bench.prompt("short").await;
    // Four bytes a token: some 190,000 tokens.
    let events = bench.prompt(&"word".repeat(190_000)).await;
    let asked: Vec<u32> = bench.model.requests().iter().map(|request| request.output_tokens()).collect();
    assert!(matches!(asked.as_slice(), [32_000, lowered] if *lowered < 10_000), "{asked:?} of {window_tokens}");
    let warnings = events.iter().filter(|event| matches!(event, SessionEvent::Notice { .. }));
    assert_eq!(warnings.count(), 1);
}
