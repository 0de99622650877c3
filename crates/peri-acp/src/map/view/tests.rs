//! Events in, JSON out.

use std::time::Duration;

use peri_acp_types::*;
use peri_controller::Persistence;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::negotiation::Asking;

const PLAIN: Negotiated =
    Negotiated { events: Gate::Shut, notices: Gate::Shut, forms: Gate::Shut, asking: Asking::Interactive };
const WITH_NOTICES: Negotiated = Negotiated { notices: Gate::Open, ..PLAIN };
const WITH_EVENTS: Negotiated = Negotiated { events: Gate::Open, ..PLAIN };

fn envelope(seq: u64, event: SessionEvent) -> Envelope {
    Envelope {
        session_id: SessionId(Uuid::from_u128(1)),
        session_epoch: SessionEpoch(2),
        session_seq: SessionSeq(seq),
        event: AgentEvent {
            agent_id: AgentId::main(),
            turn_id: Some(TurnId(Uuid::from_u128(3))),
            attempt_id: Some(AttemptId(Uuid::from_u128(4))),
            event,
        },
    }
}

fn facts() -> SessionFacts {
    SessionFacts {
        session_id: SessionId(Uuid::from_u128(1)),
        session_epoch: SessionEpoch(2),
        cwd: "/project".to_owned(),
        settings: settings(PermissionMode::Default),
        models: vec![ModelChoice { id: "mine/model".to_owned() }],
        commands: Vec::new(),
        tools: Vec::new(),
        persistence: Persistence::Kept,
    }
}

fn settings(permission_mode: PermissionMode) -> SessionSettings {
    SessionSettings { model: "mine/model".to_owned(), permission_mode, effort: None }
}

/// What the client is told, as JSON: an update by itself, an event without its address.
fn told(negotiated: Negotiated, events: Vec<SessionEvent>) -> Vec<Value> {
    let mut view = SessionView::new(negotiated, &facts());
    let numbered = events.into_iter().zip(1..).map(|(event, seq)| envelope(seq, event));
    numbered
        .flat_map(|envelope| view.tell(&envelope, 0))
        .map(|told| match told {
            Told::Update(update) => serde_json::to_value(update).expect("JSON"),
            Told::Event(event) => serde_json::to_value(event.body).expect("JSON"),
        })
        .collect()
}

fn call_id() -> ToolCallId {
    ToolCallId("c".to_owned())
}

fn announced() -> SessionEvent {
    SessionEvent::ToolCallAnnounced { id: call_id(), name: "Edit".to_owned(), kind: ToolKind::Edit }
}

fn call() -> ToolCall {
    let arguments = ToolArguments::Object(serde_json::Map::from_iter([("file_path".to_owned(), json!("/a"))]));
    ToolCall { id: call_id(), name: "Edit".to_owned(), arguments }
}

fn started() -> SessionEvent {
    let locations = vec![ToolLocation { path: "/a".to_owned(), line: Some(3) }];
    SessionEvent::ToolCallStarted { call: call(), kind: ToolKind::Edit, title: "Edit: a".to_owned(), locations }
}

fn finished() -> SessionEvent {
    let diffs = vec![FileDiff { path: "/a".to_owned(), old_text: Some("x".to_owned()), new_text: "y".to_owned() }];
    let details = ToolDetails { diffs, ..ToolDetails::default() };
    SessionEvent::ToolCallFinished { id: call_id(), output: ToolOutput { details, ..ToolOutput::text("edited") } }
}

fn failure() -> ModelFailure {
    ModelFailure {
        kind: ModelFailureKind::Overloaded,
        model: "mine/model".to_owned(),
        message: "busy".to_owned(),
        status: Some(529),
        retry_after: None,
        received_bytes: 7,
        elapsed: Duration::from_secs(1),
    }
}

fn touched() -> Value {
    json!({"sessionUpdate": "session_info_update", "updatedAt": "1970-01-01T00:00:00Z"})
}

fn turn_ended(outcome: TurnOutcome) -> SessionEvent {
    let usage = Usage { input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 };
    SessionEvent::TurnEnded(TurnEnd { outcome, usage, steps: 5, elapsed: Duration::from_millis(6) })
}

#[test]
fn a_call_from_beginning_to_end() {
    assert_eq!(
        told(PLAIN, vec![announced(), started(), finished()]),
        [
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit", "name": "Edit", "kind": "edit"}),
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit: a", "name": "Edit",
                "kind": "edit", "status": "in_progress", "locations": [{"path": "/a", "line": 3}],
                "rawInput": {"file_path": "/a"},
            }),
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
                "content": [
                    {"type": "diff", "path": "/a", "oldText": "x", "newText": "y"},
                    {"type": "content", "content": {"type": "text", "text": "edited"}},
                ],
                "rawOutput": {"isError": false, "text": "edited"},
            }),
        ]
    );
}

#[test]
fn a_call_that_was_not_announced_comes_whole() {
    let told = told(PLAIN, vec![started(), finished()]);
    assert_eq!(told[0]["sessionUpdate"], "tool_call");
    assert_eq!(told[0]["status"], "in_progress");
    assert_eq!(told[1]["sessionUpdate"], "tool_call_update");
}

/// Each way in which a call that was shown can be left over.
#[test]
fn every_call_that_was_shown_gets_its_end() {
    let result = ToolResult { call_id: call_id(), output: ToolOutput::error("cut off") };
    let message = AssistantMessage {
        model: "mine/model".to_owned(),
        parts: vec![AssistantPart::ToolCall(call())],
        stop: ModelStop::MaxTokens,
        usage: Usage::default(),
    };
    for leaving in [
        SessionEvent::AttemptFailed { failure: failure(), retry_in: None },
        SessionEvent::StepCommitted { message_id: MessageId(Uuid::nil()), message, results: vec![result] },
        turn_ended(TurnOutcome::Interrupted(TurnError::Cancelled)),
    ] {
        let told =
            told(PLAIN, vec![announced(), leaving.clone(), turn_ended(TurnOutcome::Completed(StopReason::EndTurn))]);
        let of_calls: Vec<&Value> = told.iter().filter(|update| update["toolCallId"] == "c").collect();
        assert_eq!(of_calls.len(), 2, "{leaving:?}: {told:?}");
        assert_eq!(of_calls[1]["status"], "failed", "{leaving:?}");
    }
}

#[test]
fn messages_are_told_apart_by_attempt_and_step() {
    let text = || SessionEvent::TextDelta("a".to_owned());
    let committed = || SessionEvent::StepCommitted {
        message_id: MessageId(Uuid::nil()),
        message: AssistantMessage {
            model: "mine/model".to_owned(),
            parts: Vec::new(),
            stop: ModelStop::EndTurn,
            usage: Usage::default(),
        },
        results: Vec::new(),
    };
    let failed = || SessionEvent::AttemptFailed { failure: failure(), retry_in: None };
    let started = || SessionEvent::AttemptStarted;
    let told =
        told(PLAIN, vec![started(), text(), text(), failed(), started(), text(), committed(), started(), text()]);
    let ids: Vec<&Value> = told.iter().map(|update| &update["messageId"]).collect();
    assert_eq!(ids[0], ids[1]);
    assert!(ids[1] != ids[2] && ids[2] != ids[3], "{ids:?}");
}

#[test]
fn a_notice_takes_the_path_that_was_negotiated_and_no_other() {
    let notice = |kind| vec![SessionEvent::Notice { kind, text: "note".to_owned() }];
    let plainly =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Peri: note\n\n"}});
    assert_eq!(told(PLAIN, notice(NoticeKind::Configuration)), [plainly]);
    assert_eq!(told(PLAIN, notice(NoticeKind::LoopGuard)), [] as [Value; 0]);
    assert_eq!(
        told(WITH_NOTICES, notice(NoticeKind::LoopGuard)),
        [json!({"sessionUpdate": "notice", "severity": "warning", "title": "note"})]
    );
    assert_eq!(
        told(WITH_EVENTS, notice(NoticeKind::LoopGuard)),
        [json!({"type": "notice", "kind": "loop_guard", "text": "note"})]
    );
}

#[test]
fn what_acp_has_no_place_for_comes_only_by_the_extension() {
    let events = vec![
        SessionEvent::TurnStarted,
        SessionEvent::AttemptFailed { failure: failure(), retry_in: Some(Duration::from_millis(8)) },
        SessionEvent::LlmCallEnd { model: "mine/model".to_owned(), usage: Usage::default() },
        turn_ended(TurnOutcome::Interrupted(TurnError::Model(failure()))),
    ];
    assert_eq!(told(PLAIN, events.clone()), [touched()], "the end of the turn touches the session");
    let nothing = json!({"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0});
    let message = failure().to_string();
    assert_eq!(
        told(WITH_EVENTS, events),
        [
            json!({"type": "turn_started"}),
            json!({
                "type": "attempt_failed", "retryInMs": 8,
                "failure": {"kind": "overloaded", "message": "busy", "model": "mine/model", "status": 529, "retryable": true},
            }),
            json!({"type": "llm_call_end", "model": "mine/model", "usage": nothing}),
            touched(),
            json!({
                "type": "turn_ended", "outcome": "interrupted", "steps": 5, "elapsedMs": 6,
                "error": {"kind": "model", "message": message, "failureKind": "overloaded"},
                "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4},
            }),
        ]
    );
}

#[test]
fn an_event_is_addressed_and_reads_back() {
    let mut view = SessionView::new(WITH_EVENTS, &facts());
    let told = view.tell(&envelope(9, SessionEvent::AttemptStarted), 0);
    let [Told::Event(event)] = told.as_slice() else { panic!("one event: {told:?}") };
    let json = serde_json::to_value(event).expect("JSON");
    assert_eq!(
        json,
        json!({
            "sessionId": "00000000-0000-0000-0000-000000000001", "epoch": 2, "seq": 9, "agentId": "main",
            "turnId": "00000000-0000-0000-0000-000000000003", "attemptId": "00000000-0000-0000-0000-000000000004",
            "type": "attempt_started",
        })
    );
    assert_eq!(serde_json::from_value::<Event>(json.clone()).expect("it reads back"), **event);

    let mut later = json;
    later["type"] = json!("of_a_later_version");
    later["more"] = json!([1]);
    let later: Event = serde_json::from_value(later).expect("a client passes over what it does not know");
    assert_eq!(later.body, EventBody::Unknown);
}

#[test]
fn a_title_comes_with_its_time() {
    assert_eq!(
        told(PLAIN, vec![SessionEvent::TitleChanged { title: "Fix it".to_owned() }]),
        [json!({"sessionUpdate": "session_info_update", "title": "Fix it", "updatedAt": "1970-01-01T00:00:00Z"})]
    );
}

#[test]
fn changed_settings_come_in_both_forms_and_the_mode_only_where_it_is_another() {
    let changed = |mode| SessionEvent::SettingsChanged(settings(mode));
    let told = told(
        PLAIN,
        vec![changed(PermissionMode::Default), changed(PermissionMode::Bypass), changed(PermissionMode::Bypass)],
    );
    let kinds: Vec<&Value> = told.iter().map(|update| &update["sessionUpdate"]).collect();
    assert_eq!(kinds, ["config_option_update", "config_option_update", "current_mode_update", "config_option_update"]);
    assert_eq!(told[1]["configOptions"][0]["currentValue"], "bypass");
    assert_eq!(told[1]["configOptions"].as_array().map(Vec::len), Some(3), "every option is there");
    assert_eq!(told[2]["currentModeId"], "bypass");
}
