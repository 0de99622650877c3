//! The lean thread of a commit against the whole thread: the same changes, the same answers, the same history.

use futures::executor::block_on;
use peri_acp_types::ports::ThreadStore;
use peri_acp_types::{
    AssistantMessage, AssistantPart, Content, Message, MessageBody, MessageId, ModelStop, SessionEpoch, SessionId,
    StopReason, StoredTurnEnd, ThreadChange, ToolArguments, ToolCall, ToolCallId, ToolOutput, ToolResult, TurnId,
    Usage,
};
use peri_resources::{MemoryStore, SqliteConfig, SqliteStore};
use proptest::collection;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use uuid::Uuid;

use crate::sample;

#[test]
fn a_lean_thread_gets_the_verdict_of_the_whole_one() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(SqliteConfig::at(directory.path().join("peri.db"))).unwrap();
    let memory = MemoryStore::new();
    let sessions = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let commits = collection::vec(collection::vec(change(), 0..4), 1..14);
    runner
        .run(&commits, |commits| {
            sessions.set(sessions.get() + 1);
            block_on(both_agree(&memory, &sqlite, sessions.get(), &commits))
        })
        .unwrap();
}

async fn both_agree(
    memory: &MemoryStore,
    sqlite: &SqliteStore,
    number: u64,
    commits: &[Vec<ThreadChange>],
) -> Result<(), TestCaseError> {
    let id: SessionId = sample::session(number);
    for store in [memory as &dyn ThreadStore, sqlite] {
        store.create(&sample::meta(number)).await.unwrap();
        store.take_epoch(id, SessionEpoch::UNOPENED).await.unwrap();
    }
    for (now_ms, changes) in (0..).zip(commits) {
        let expected = memory.commit(id, SessionEpoch(1), changes, now_ms).await;
        let found = sqlite.commit(id, SessionEpoch(1), changes, now_ms).await;
        prop_assert_eq!(found, expected);
    }
    prop_assert_eq!(sqlite.load(id).await.unwrap(), memory.load(id).await.unwrap());
    Ok(())
}

/// Changes with ids from so small a choice that most of them collide with something.
fn change() -> impl Strategy<Value = ThreadChange> {
    let calls = || collection::vec(prop_oneof![Just("a"), Just("b")], 0..3);
    prop_oneof![
        4 => (0..4_u64, 0..30_u64).prop_map(|(turn, id)| ThreadChange::InputAccepted {
            message: message(turn, id, MessageBody::User(vec![Content::Text(format!("input {id}"))])),
        }),
        4 => (0..4_u64, 0..30_u64, calls(), calls(), any::<bool>()).prop_map(|(turn, id, calls, other, answers)| {
            let answered = if answers { calls.clone() } else { other };
            let results = (!answered.is_empty()).then(|| message(turn, id + 1, results(&answered)));
            ThreadChange::StepCommitted { assistant: message(turn, id, assistant(&calls)), results }
        }),
        2 => (0..4_u64, 0..30_u64).prop_map(|(turn, id)| ThreadChange::NoticeAdded {
            message: message(turn, id, MessageBody::Notice(format!("notice {id}"))),
        }),
        4 => (0..4_u64).prop_map(|turn| ThreadChange::TurnEnded {
            turn_id: sample::turn_id(turn),
            end: StoredTurnEnd::Completed(StopReason::EndTurn),
        }),
        1 => "[a-z]{0,5}".prop_map(|title| ThreadChange::TitleSet { title }),
    ]
}

fn message(turn: u64, id: u64, body: MessageBody) -> Message {
    let turn_id: TurnId = sample::turn_id(turn);
    Message { id: MessageId(Uuid::from_u128(u128::from(id))), turn_id, created_at_ms: 5, body }
}

fn assistant(calls: &[&str]) -> MessageBody {
    let call = |id: &&str| {
        let arguments = ToolArguments::Object(serde_json::Map::new());
        AssistantPart::ToolCall(ToolCall { id: ToolCallId((*id).to_owned()), name: "read".to_owned(), arguments })
    };
    MessageBody::Assistant(AssistantMessage {
        model: "provider/model".to_owned(),
        parts: calls.iter().map(call).collect(),
        stop: ModelStop::ToolUse,
        usage: Usage::default(),
    })
}

fn results(calls: &[&str]) -> MessageBody {
    let result = |id: &&str| ToolResult { call_id: ToolCallId((*id).to_owned()), output: ToolOutput::text("done") };
    MessageBody::ToolResults(calls.iter().map(result).collect())
}
