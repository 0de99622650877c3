//! The reducer: whatever changes are tried in whatever order, a thread keeps its invariants.

use std::collections::HashSet;

use peri_acp_types::*;
use proptest::prelude::*;
use uuid::Uuid;

fn turn(n: u8) -> TurnId {
    TurnId(Uuid::from_u128(1000 + u128::from(n)))
}

fn message(id: u8, turn_id: TurnId, body: MessageBody) -> Message {
    Message { id: MessageId(Uuid::from_u128(u128::from(id))), turn_id, created_at_ms: 0, body }
}

fn input(id: u8, turn_id: TurnId, text: &str) -> ThreadChange {
    ThreadChange::InputAccepted { message: message(id, turn_id, MessageBody::User(vec![Content::Text(text.into())])) }
}

fn step(id: u8, turn_id: TurnId, calls: &[&str], answered: &[&str]) -> ThreadChange {
    let parts = calls.iter().map(|call| {
        let id = ToolCallId((*call).into());
        AssistantPart::ToolCall(ToolCall {
            id,
            name: "Read".into(),
            arguments: ToolArguments::Object(Default::default()),
        })
    });
    let assistant = AssistantMessage {
        model: "mine/model".into(),
        parts: parts.collect(),
        stop: ModelStop::ToolUse,
        usage: Usage::default(),
    };
    let results =
        answered.iter().map(|call| ToolResult { call_id: ToolCallId((*call).into()), output: ToolOutput::text("x") });
    let results: Vec<ToolResult> = results.collect();
    ThreadChange::StepCommitted {
        assistant: message(id, turn_id, MessageBody::Assistant(assistant)),
        results: (!results.is_empty()).then(|| message(id + 100, turn_id, MessageBody::ToolResults(results))),
    }
}

fn ended(turn_id: TurnId) -> ThreadChange {
    ThreadChange::TurnEnded { turn_id, end: StoredTurnEnd::Completed(StopReason::EndTurn) }
}

fn thread() -> Thread {
    Thread::new(ThreadMeta {
        id: SessionId(Uuid::nil()),
        parent_thread_id: None,
        cwd: "/workspace".into(),
        title: None,
        created_at_ms: 0,
        updated_at_ms: 0,
    })
}

#[test]
fn a_turn_goes_from_input_through_steps_to_its_end() {
    let mut thread = thread();
    let changes = [
        input(1, turn(1), "hello\nworld"),
        step(2, turn(1), &["a", "b"], &["a", "b"]),
        step(3, turn(1), &[], &[]),
        ended(turn(1)),
    ];
    assert_eq!(thread.apply_all(&changes), Ok(()));
    assert_eq!((thread.messages.len(), thread.turns.len(), thread.open_turn), (4, 1, None));
    assert_eq!(thread.meta.title.as_deref(), Some("hello"));
}

#[test]
fn each_rule_refuses_its_kind_of_change() {
    let open = [input(1, turn(1), "x")];
    let done = [input(1, turn(1), "x"), ended(turn(1))];
    let mismatch = |calls: &[&str], answered: &[&str]| step(5, turn(1), calls, answered);
    let check = |before: &[ThreadChange], change: ThreadChange, expected: fn(&ThreadRuleError) -> bool| {
        let mut thread = thread();
        thread.apply_all(before).expect("a valid beginning");
        let untouched = thread.clone();
        let error = thread.apply_all(&[change]).expect_err("a refusal");
        assert!(expected(&error), "{error}");
        assert_eq!(thread, untouched);
    };
    check(&open, input(2, turn(2), "y"), |error| matches!(error, ThreadRuleError::TurnOpen(_)));
    check(&done, input(2, turn(1), "y"), |error| matches!(error, ThreadRuleError::TurnReused(_)));
    check(&done, input(1, turn(2), "y"), |error| matches!(error, ThreadRuleError::MessageReused(_)));
    check(&done, ended(turn(1)), |error| matches!(error, ThreadRuleError::TurnNotOpen(_)));
    check(&done, step(5, turn(1), &[], &[]), |error| matches!(error, ThreadRuleError::TurnNotOpen(_)));
    check(&open, mismatch(&["a"], &[]), |error| matches!(error, ThreadRuleError::ResultsMismatch(_)));
    check(&open, mismatch(&[], &["a"]), |error| matches!(error, ThreadRuleError::ResultsMismatch(_)));
    check(&open, mismatch(&["a", "b"], &["b", "a"]), |error| matches!(error, ThreadRuleError::ResultsMismatch(_)));
    check(&open, mismatch(&["a", "a"], &["a", "a"]), |error| matches!(error, ThreadRuleError::ResultsMismatch(_)));
    let wrong = message(9, turn(1), MessageBody::Notice("n".into()));
    check(&[], ThreadChange::InputAccepted { message: wrong }, |error| matches!(error, ThreadRuleError::WrongBody(_)));
}

#[test]
fn a_refused_list_of_changes_leaves_nothing_behind() {
    let mut thread = thread();
    let changes = [input(1, turn(1), "x"), step(2, turn(1), &["a"], &["a"]), ended(turn(2))];
    assert!(thread.apply_all(&changes).is_err());
    assert_eq!(thread, self::thread());
}

#[test]
fn a_title_is_the_first_line_that_says_something_and_bounded() {
    let title = |text: &str| {
        let mut thread = thread();
        thread.apply_all(&[input(1, turn(1), text)]).expect("an input");
        thread.meta.title
    };
    assert_eq!(title("\n  \n  fix \u{1b}[31mit \n more").as_deref(), Some("fix [31mit"));
    assert_eq!(title(&"界".repeat(200)).expect("a title").chars().count(), 81);
    assert_eq!(title("   "), None);
}

fn any_change() -> impl Strategy<Value = ThreadChange> {
    let calls = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3);
    prop_oneof![
        (1u8..20, 1u8..4).prop_map(|(id, n)| input(id, turn(n), "x")),
        (1u8..20, 1u8..4, calls.clone(), calls).prop_map(|(id, n, calls, answered)| step(
            id,
            turn(n),
            &calls,
            &answered
        )),
        (1u8..20, 1u8..4, prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..3))
            .prop_map(|(id, n, calls)| step(id, turn(n), &calls, &calls)),
        (1u8..4).prop_map(|n| ended(turn(n))),
        (1u8..20, 1u8..4).prop_map(|(id, n)| ThreadChange::NoticeAdded {
            message: message(id, turn(n), MessageBody::Notice("n".into()))
        }),
    ]
}

proptest! {
    #[test]
    fn invariants_hold_after_any_changes(commits in prop::collection::vec(prop::collection::vec(any_change(), 1..4), 0..40)) {
        let mut thread = thread();
        for commit in &commits {
            let before = thread.clone();
            if thread.apply_all(commit).is_err() {
                prop_assert_eq!(&thread, &before);
            }
        }
        let ids: HashSet<MessageId> = thread.messages.iter().map(|message| message.id).collect();
        prop_assert_eq!(ids.len(), thread.messages.len());
        let turns: HashSet<TurnId> = thread.turns.iter().map(|turn| turn.turn_id).collect();
        prop_assert_eq!(turns.len(), thread.turns.len());
        for (index, message) in thread.messages.iter().enumerate() {
            if let MessageBody::Assistant(assistant) = &message.body {
                let calls: Vec<&ToolCallId> = assistant.calls().map(|call| &call.id).collect();
                let answered: Vec<&ToolCallId> = match thread.messages.get(index + 1).map(|next| &next.body) {
                    Some(MessageBody::ToolResults(results)) => results.iter().map(|result| &result.call_id).collect(),
                    _ => Vec::new(),
                };
                prop_assert_eq!(calls, answered);
            }
        }
    }
}
