//! The contract, checked on what the client knows and what the store holds.

use std::collections::{BTreeMap, BTreeSet};

use peri_acp_types::{AssistantPart, Content, InputState, Message, MessageBody, MessageId, Thread, ToolCallId};

use crate::client::Ledger;

/// What is stored agrees with what was told. `quiet` where everything was settled before: then nothing may be open.
pub fn check(ledger: &Ledger, thread: &Thread, quiet: bool) {
    let messages: Vec<&Message> =
        thread.messages.iter().chain(thread.rewound.iter().flat_map(|rewound| &rewound.messages)).collect();
    inputs_are_where_they_are_said_to_be(ledger, &messages);
    calls_have_one_result(&thread.messages);
    let ids: BTreeSet<MessageId> = messages.iter().map(|message| message.id).collect();
    assert_eq!(ids.len(), messages.len(), "a message is stored twice");
    let lost: Vec<_> = ledger.committed.union(&ledger.stored).filter(|id| !ids.contains(id)).collect();
    assert!(lost.is_empty(), "committed and lost: {lost:?}");
    let mut ends = BTreeMap::new();
    for turn in &thread.turns {
        *ends.entry(turn.turn_id).or_insert(0) += 1;
    }
    assert!(ends.values().all(|count| *count == 1), "a turn ended twice: {ends:?}");
    if quiet {
        assert_eq!((thread.open_turn, thread.close_intent), (None, None), "something is left open");
        for (turn_id, turn) in ledger.turns.iter().filter(|(_, turn)| turn.life == ledger.life && turn.started) {
            assert!(turn.ended, "{turn_id} has no end");
        }
    }
}

fn inputs_are_where_they_are_said_to_be(ledger: &Ledger, messages: &[&Message]) {
    for input in &ledger.inputs {
        let times = messages.iter().filter(|message| says(message, &input.text)).count();
        assert!(times <= 1, "{} is in the transcript {times} times", input.text);
        if input.taken_back {
            assert_eq!(times, 0, "{} was taken back and is in the transcript", input.text);
        }
        match input.state {
            Some(InputState::Delivered) => assert_eq!(times, 1, "{} is said to be delivered", input.text),
            Some(InputState::Withdrawn) => assert_eq!(times, 0, "{} is said to be withdrawn", input.text),
            _ => {}
        }
    }
}

fn says(message: &Message, words: &str) -> bool {
    match &message.body {
        MessageBody::User(content) => {
            content.iter().any(|content| matches!(content, Content::Text(text) if text == words))
        }
        _ => false,
    }
}

fn calls_have_one_result(messages: &[Message]) {
    let mut seen: BTreeSet<ToolCallId> = BTreeSet::new();
    for (place, message) in messages.iter().enumerate() {
        let MessageBody::Assistant(assistant) = &message.body else { continue };
        let calls: Vec<ToolCallId> = assistant
            .parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::ToolCall(call) => Some(call.id.clone()),
                AssistantPart::Text(_) | AssistantPart::Thought(_) => None,
            })
            .collect();
        let answered: Vec<ToolCallId> = match messages.get(place + 1).map(|next| &next.body) {
            Some(MessageBody::ToolResults(results)) => results.iter().map(|result| result.call_id.clone()).collect(),
            _ => Vec::new(),
        };
        assert_eq!(calls, answered, "calls and results of message {place}");
        for call in calls {
            assert!(seen.insert(call.clone()), "{call} is in the transcript twice");
        }
    }
}
