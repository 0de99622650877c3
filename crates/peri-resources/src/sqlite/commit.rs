//! Committing changes: the reducer decides, SQL writes down what it decided.
//!
//! A thread may hold ten thousand messages, and a commit adds two; reading them all to ask the reducer would make each
//! commit slower than the last. So the reducer gets a *lean* thread: the thread's row, and of its messages and turns only
//! those that the changes name. That is all that [`Thread::apply`] looks at (whether an id is known, which turn is open,
//! whether there is a title), so its verdict is the one that it would give on the whole thread. The rules are written once,
//! there; a test drives this and the whole thread with the same random changes and compares every answer.

use peri_acp_types::{MessageBody, MessageId, SessionEpoch, SessionId, Summary, Thread, ThreadChange, TurnId};
use rusqlite::{Connection, params};

use super::threads;
use super::trouble::Trouble;

/// Applies the changes inside the caller's transaction.
pub(super) fn commit(
    connection: &Connection,
    id: SessionId,
    epoch: SessionEpoch,
    changes: &[ThreadChange],
    now_ms: i64,
) -> Result<(), Trouble> {
    let mut thread = threads::owned_head(connection, id, epoch)?.into_thread();
    if changes.iter().any(ThreadChange::reaches_back) {
        return commit_to_whole(connection, id, changes, now_ms);
    }
    read_what_is_named(connection, &mut thread, changes)?;
    let (known_messages, known_turns) = (thread.messages.len(), thread.turns.len());
    thread.apply_all(changes)?;

    threads::append_messages(connection, id, thread.messages.get(known_messages..).unwrap_or_default())?;
    threads::append_turns(connection, id, thread.turns.get(known_turns..).unwrap_or_default())?;
    if changes.iter().any(|change| matches!(change, ThreadChange::InputAccepted { .. })) {
        threads::keep_rewinds(connection, id)?;
    }
    update_row(connection, &thread, now_ms)
}

/// A rewind may concern any message, and comes seldom: the reducer gets the whole thread.
fn commit_to_whole(
    connection: &Connection,
    id: SessionId,
    changes: &[ThreadChange],
    now_ms: i64,
) -> Result<(), Trouble> {
    let mut thread = threads::load_whole(connection, id)?;
    let known_turns = thread.turns.len();
    thread.apply_all(changes)?;
    threads::append_turns(connection, id, thread.turns.get(known_turns..).unwrap_or_default())?;
    threads::rewrite_rewinds(connection, &thread)?;
    update_row(connection, &thread, now_ms)
}

fn update_row(connection: &Connection, thread: &Thread, now_ms: i64) -> Result<(), Trouble> {
    let mut statement =
        connection.prepare_cached("UPDATE threads SET title = ?2, open_turn = ?3, updated_at_ms = ?4 WHERE id = ?1")?;
    let open_turn = thread.open_turn.map(|turn| turn.to_string());
    statement.execute(params![thread.meta.id.to_string(), thread.meta.title, open_turn, now_ms])?;
    Ok(())
}

/// Gives the lean thread those of its messages and turns that the changes could collide with.
fn read_what_is_named(connection: &Connection, thread: &mut Thread, changes: &[ThreadChange]) -> Result<(), Trouble> {
    let id = thread.meta.id;
    for change in changes {
        let (messages, turn): (Vec<MessageId>, Option<TurnId>) = match change {
            ThreadChange::InputAccepted { message } => (vec![message.id], Some(message.turn_id)),
            ThreadChange::StepCommitted { assistant, results } => {
                (std::iter::once(assistant).chain(results).map(|message| message.id).collect(), None)
            }
            ThreadChange::NoticeAdded { message } | ThreadChange::InputSteered { message } => (vec![message.id], None),
            ThreadChange::Compacted { summary } => {
                if let MessageBody::Summary(Summary { first_kept: Some(kept), .. }) = &summary.body {
                    thread.messages.extend(threads::find_in_conversation(connection, id, *kept)?);
                }
                (vec![summary.id], None)
            }
            ThreadChange::Rewound { .. } | ThreadChange::RewindUndone => (Vec::new(), None),
            ThreadChange::TurnEnded { turn_id, end: _ } => (Vec::new(), Some(*turn_id)),
            ThreadChange::TitleSet { title: _ } => (Vec::new(), None),
        };
        for message in messages {
            thread.messages.extend(threads::find_message(connection, id, message)?);
        }
        if let Some(turn) = turn {
            thread.turns.extend(threads::find_turn(connection, id, turn)?);
        }
    }
    Ok(())
}
