//! Threads for tests, by number: the same number gives the same content, in every process.

use peri_acp_types::ports::ThreadStore;
use peri_acp_types::{
    AssistantMessage, AssistantPart, Content, Message, MessageBody, MessageId, ModelStop, SessionEpoch, SessionId,
    StopReason, StoreError, StoredTurnEnd, ThreadChange, ThreadMeta, ToolArguments, ToolCall, ToolCallId, ToolOutput,
    ToolResult, TurnId, Usage,
};
use uuid::Uuid;

/// Messages of a turn of [`commits_of_turn`]: input, answer, results, notice.
pub const MESSAGES_PER_TURN: u64 = 4;

pub fn session(number: u64) -> SessionId {
    SessionId(Uuid::from_u128(u128::from(number)))
}

pub fn meta(number: u64) -> ThreadMeta {
    ThreadMeta {
        id: session(number),
        parent_thread_id: None,
        cwd: "/home/dev/project".to_owned(),
        title: None,
        created_at_ms: 1_700_000_000_000,
        updated_at_ms: 1_700_000_000_000,
    }
}

/// The commits of a whole turn, in their order.
pub fn commits_of_turn(turn: u64) -> [Vec<ThreadChange>; 3] {
    let message = |part| message(turn * MESSAGES_PER_TURN + part);
    [
        vec![ThreadChange::InputAccepted { message: message(0) }],
        vec![ThreadChange::StepCommitted { assistant: message(1), results: Some(message(2)) }],
        vec![
            ThreadChange::NoticeAdded { message: message(3) },
            ThreadChange::TurnEnded { turn_id: turn_id(turn), end: StoredTurnEnd::Completed(StopReason::EndTurn) },
        ],
    ]
}

pub fn turn_id(turn: u64) -> TurnId {
    TurnId(Uuid::from_u128(u128::from(turn)))
}

/// The message of that number; the number tells its kind.
pub fn message(number: u64) -> Message {
    let call = ToolCallId(format!("call_{number}"));
    let body = match number % MESSAGES_PER_TURN {
        0 => MessageBody::User(vec![Content::Text(format!("Input {number}"))]),
        1 => MessageBody::Assistant(AssistantMessage {
            model: "provider/model".to_owned(),
            parts: vec![AssistantPart::ToolCall(ToolCall {
                id: ToolCallId(format!("call_{}", number + 1)),
                name: "read".to_owned(),
                arguments: ToolArguments::Object(serde_json::Map::new()),
            })],
            stop: ModelStop::ToolUse,
            usage: Usage::default(),
        }),
        // Of several pages, and of a length that varies.
        2 => MessageBody::ToolResults(vec![ToolResult {
            call_id: call,
            output: ToolOutput::text(format!("{number} ").repeat(1000 + usize::try_from(number % 4000).unwrap())),
        }]),
        _ => MessageBody::Notice(format!("Notice {number}")),
    };
    Message {
        id: MessageId(Uuid::from_u128(u128::from(number))),
        turn_id: turn_id(number / MESSAGES_PER_TURN),
        created_at_ms: 1_700_000_000_000,
        body,
    }
}

/// Adds the session of that number, with whole turns.
pub async fn add_session(store: &dyn ThreadStore, number: u64, turns: u64) -> Result<SessionEpoch, StoreError> {
    let id = session(number);
    store.create(&meta(number)).await?;
    let epoch = store.take_epoch(id, SessionEpoch::UNOPENED).await?;
    for turn in 0..turns {
        for changes in commits_of_turn(turn) {
            store.commit(id, epoch, &changes, 1_700_000_000_001).await?;
        }
    }
    Ok(epoch)
}
