//! Changing a session while it lives.

use std::sync::Arc;

use peri_acp_types::*;
use peri_agent::{SessionChange, SessionEnded};
use peri_model::{ModelLimits, ModelMessage, Thinking};
use peri_testkit::fake_model::{FakeAnswer, FakeModel, FakeStep};
use peri_testkit::fake_store::StoreOperation;
use peri_testkit::gate::Gate;
use serde_json::json;

use crate::bench::{Bench, PATIENCE, Setup, end};

const DEADLINE: std::time::Duration = std::time::Duration::from_secs(61);

fn model(model: &FakeModel) -> SessionChange {
    SessionChange::Model(Arc::new(model.clone()))
}

fn settings(model: &str, permission_mode: PermissionMode, effort: Option<Effort>) -> SessionSettings {
    SessionSettings { model: model.to_owned(), permission_mode, effort }
}

/// A thought and then a text, as a model says them that seals its thoughts.
fn thoughtful(text: &str) -> FakeAnswer {
    let thought = Thought { text: format!("on {text}"), signature: Some("seal".into()), redacted: false };
    let parts = vec![AssistantPart::Thought(thought), AssistantPart::Text(text.into())];
    FakeAnswer::Says { parts, stop: ModelStop::EndTurn }
}

/// An answer that is held back until the gate opens.
fn held(gate: &Gate, answer: FakeAnswer) -> FakeAnswer {
    let FakeAnswer::Says { parts, stop } = answer else { unreachable!("only whole answers are held") };
    let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
    let finished = peri_model::ModelStreamEvent::Finished(peri_model::ModelAnswer { parts, stop, usage });
    FakeAnswer::Steps(vec![FakeStep::Wait(gate.clone()), FakeStep::Event(finished)])
}

fn has_thought(messages: &[ModelMessage], text: &str) -> bool {
    messages.iter().any(|message| match message {
        ModelMessage::Assistant(parts) => {
            parts.iter().any(|part| matches!(part, AssistantPart::Thought(thought) if thought.text == text))
        }
        ModelMessage::User(_) | ModelMessage::ToolResults(_) => false,
    })
}

fn changes(events: &[SessionEvent]) -> Vec<SessionSettings> {
    events
        .iter()
        .filter_map(|event| match event {
            SessionEvent::SettingsChanged(settings) => Some(settings.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_session_says_what_it_was_opened_with() {
    let bench = Bench::new([]).await;
    assert_eq!(*bench.handle.opened_with(), settings("fake/model", PermissionMode::Default, None));
    assert_eq!(bench.handle.cwd(), "/workspace");
    let commands: Vec<&str> = bench.handle.commands().iter().map(|command| command.name.as_str()).collect();
    assert_eq!(commands, ["review", "silent", "fail", "slow"]);
    let tools: Vec<(&str, ToolKind)> =
        bench.handle.tools().iter().map(|tool| (tool.name.as_str(), tool.kind)).collect();
    let expected =
        [("echo", ToolKind::Read), ("write", ToolKind::Edit), ("hang", ToolKind::Execute), ("panic", ToolKind::Other)];
    assert_eq!(tools, expected);
}

#[tokio::test]
async fn another_model_gets_the_history_without_thoughts_that_are_not_its_own() {
    let mut bench = Bench::new([thoughtful("one"), thoughtful("three")]).await;
    let other = FakeModel::new([thoughtful("two")]).named("other/model");
    let first = bench.model.clone();
    bench.prompt("1").await;

    let changed = bench.handle.change(model(&other)).await;
    assert_eq!(changed, Ok(settings("other/model", PermissionMode::Default, None)));
    let events = bench.prompt("2").await;
    assert_eq!(changes(&events), [settings("other/model", PermissionMode::Default, None)]);
    assert!(
        events.iter().any(|event| matches!(event, SessionEvent::LlmCallEnd { model, .. } if model == "other/model"))
    );
    let asked = other.requests();
    assert!(!has_thought(&asked[0].messages, "on one") && asked[0].messages.len() == 3, "{:?}", asked[0].messages);

    bench.handle.change(model(&first)).await.expect("a session that lives");
    bench.prompt("3").await;
    let asked = first.requests();
    assert!(has_thought(&asked[1].messages, "on one") && !has_thought(&asked[1].messages, "on two"));
    let names: Vec<String> = bench
        .thread()
        .messages
        .iter()
        .filter_map(|message| match &message.body {
            MessageBody::Assistant(assistant) => Some(assistant.model.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["fake/model", "other/model", "fake/model"]);
    first.check_invariants();
    other.check_invariants();
}

#[tokio::test]
async fn a_turn_that_has_an_answer_stays_with_its_model_and_its_effort() {
    let calls = FakeAnswer::calls(&[("a", "echo", json!({"text": "x"}))]);
    let gate = Gate::shut();
    let mut bench = Bench::new([calls, held(&gate, FakeAnswer::text("done"))]).await;
    let other = FakeModel::new([FakeAnswer::text("next")]).named("other/model");
    let turn = bench.accept("1").await;
    gate.reached().await;
    bench.handle.change(model(&other)).await.expect("a session that lives");
    bench.handle.change(SessionChange::Effort(Some(Effort::High))).await.expect("a session that lives");
    gate.open();
    bench.until_end_of(turn).await;
    assert_eq!(other.requests().len(), 0);
    bench.prompt("2").await;
    let thinking = |model: &FakeModel| model.requests().iter().map(|request| request.thinking).collect::<Vec<_>>();
    assert_eq!(thinking(&bench.model), [Thinking::Unset, Thinking::Unset]);
    assert_eq!(thinking(&other), [Thinking::Effort(Effort::High)]);
}

#[tokio::test]
async fn a_turn_without_an_answer_goes_on_with_the_model_that_was_chosen_meanwhile() {
    let setup = Setup { clock: peri_testkit::runtime::FakeClock::manual(), ..Setup::default() };
    let mut bench = Bench::with(setup, [FakeAnswer::failure(ModelFailureKind::Overloaded, "")]).await;
    let other = FakeModel::new([FakeAnswer::text("here")]).named("other/model");
    let turn = bench.accept("1").await;
    bench.until(|event| matches!(event, SessionEvent::AttemptFailed { .. })).await;
    bench.handle.change(model(&other)).await.expect("a session that lives");
    bench.clock.advance(DEADLINE);
    let events = bench.until_end_of(turn).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
async fn effort_goes_into_requests_and_back_out_and_leaves_the_prefix_alone() {
    let limits = peri_agent::SessionLimits { thinking: Thinking::Budget(2048), ..Default::default() };
    let script = [FakeAnswer::text("1"), FakeAnswer::text("2"), FakeAnswer::text("3")];
    let mut bench = Bench::with(Setup { limits, ..Setup::default() }, script).await;
    for effort in [None, Some(Effort::Low), None] {
        bench.handle.change(SessionChange::Effort(effort)).await.expect("a session that lives");
        bench.prompt("go").await;
    }
    let asked: Vec<Thinking> = bench.model.requests().iter().map(|request| request.thinking).collect();
    assert_eq!(asked, [Thinking::Budget(2048), Thinking::Effort(Effort::Low), Thinking::Budget(2048)]);
    bench.model.check_invariants();
}

#[tokio::test]
async fn a_mode_reaches_the_chain_at_once_also_while_a_turn_runs() {
    let mut bench = Bench::new([FakeAnswer::calls(&[("a", "hang", json!({}))])]).await;
    let turn = bench.accept("go").await;
    bench.tools.hanging.notified().await;
    let changed = bench.handle.change(SessionChange::PermissionMode(PermissionMode::Bypass)).await;
    assert_eq!(changed, Ok(settings("fake/model", PermissionMode::Bypass, None)));
    assert_eq!(bench.tools.log(), ["+hang", "mode bypass"]);
    bench.handle.cancel(peri_agent::CancelTarget::Current, Default::default()).await;
    let events = bench.until_end_of(turn).await;
    assert_eq!(changes(&events).len(), 1, "told before the turn's end");
}

#[tokio::test]
async fn what_changes_nothing_is_not_told() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    for change in
        [SessionChange::PermissionMode(PermissionMode::Default), SessionChange::Effort(None), model(&bench.model)]
    {
        bench.handle.change(change).await.expect("a session that lives");
    }
    assert_eq!(changes(&bench.prompt("go").await), []);
}

#[tokio::test]
async fn changes_at_the_same_time_all_count_and_the_last_word_told_is_what_holds() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    let other = FakeModel::new([FakeAnswer::text("x")]).named("other/model");
    let mut askers = Vec::new();
    for round in 0..30 {
        let (handle, other) = (bench.handle.clone(), other.clone());
        askers.push(tokio::spawn(async move {
            let change = match round % 3 {
                0 => SessionChange::Model(Arc::new(other)),
                1 => SessionChange::PermissionMode(PermissionMode::AcceptEdits),
                _ => SessionChange::Effort(Some(Effort::Medium)),
            };
            handle.change(change).await
        }));
    }
    for asker in askers {
        asker.await.expect("no panic").expect("a session that lives");
    }
    let told = changes(&bench.prompt("go").await);
    let last = settings("other/model", PermissionMode::AcceptEdits, Some(Effort::Medium));
    assert_eq!(told.last(), Some(&last));
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_no_change_up_and_hears_the_last_one() {
    let flood: Vec<AssistantPart> = (0..2000)
        .map(|n| match n % 2 {
            0 => AssistantPart::Text("x".repeat(1024)),
            _ => AssistantPart::Thought(Thought { text: "y".into(), ..Thought::default() }),
        })
        .collect();
    let mut bench = Bench::new([FakeAnswer::Says { parts: flood, stop: ModelStop::EndTurn }]).await;
    let turn = bench.accept("go").await;
    bench.model.asked(1).await;
    for effort in [Effort::Low, Effort::Medium, Effort::High] {
        let change = bench.handle.change(SessionChange::Effort(Some(effort)));
        tokio::time::timeout(PATIENCE, change).await.expect("an answer in time").expect("a session that lives");
    }
    let told = changes(&bench.until_end_of(turn).await);
    assert_eq!(told.last().and_then(|settings| settings.effort), Some(Effort::High));
}

#[tokio::test]
async fn a_session_that_closes_or_is_closed_does_not_change() {
    let bench = Bench::new([]).await;
    bench.store.fail(StoreOperation::SettleClose, StoreError::Failed("x".into()));
    bench.handle.close(DEADLINE).await.expect_err("incomplete");
    let change = || bench.handle.change(SessionChange::PermissionMode(PermissionMode::Bypass));
    assert_eq!(change().await, Err(SessionEnded));
    bench.store.heal();
    bench.handle.close(DEADLINE).await.expect("closed");
    assert_eq!(change().await, Err(SessionEnded));
    assert_eq!(bench.tools.log(), ["closed"]);
}

#[tokio::test]
async fn limits_are_learned_beside_the_first_request_and_again_for_another_model() {
    let window = |events: &[SessionEvent]| {
        events.iter().find_map(|event| match event {
            SessionEvent::UsageUpdate { window_tokens, .. } => Some(*window_tokens),
            _ => None,
        })
    };
    let learned = |context_window| ModelLimits { context_window, max_output_tokens: None };
    let (gate, model_with_limits) = (Gate::shut(), FakeModel::default());
    model_with_limits.learns(&gate, learned(1_000));
    let setup = Setup { model: Some(model_with_limits), ..Setup::default() };
    let mut bench = Bench::with(setup, [FakeAnswer::text("x"), FakeAnswer::text("y")]).await;
    gate.reached().await;
    assert_eq!(window(&bench.prompt("1").await), Some(200_000), "nobody waited for the endpoint's word");
    gate.open();
    while peri_model::LanguageModel::limits(&bench.model).context_window != 1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(window(&bench.prompt("2").await), Some(1_000));

    let other = FakeModel::new([FakeAnswer::text("z")]).named("other/model");
    other.learns(&gate, learned(2_000));
    bench.handle.change(model(&other)).await.expect("a session that lives");
    while peri_model::LanguageModel::limits(&other).context_window != 2_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(window(&bench.prompt("3").await), Some(2_000));
}
