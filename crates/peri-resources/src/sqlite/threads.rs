//! The SQL of threads: one function per operation of the port, each inside a transaction of its caller.
//!
//! Must not: judge a change. That is [`super::commit`]'s question to the reducer.

use std::collections::BTreeMap;

use peri_acp_types::ports::{MessagePage, ThreadHead, ThreadPage, ThreadQuery};
use peri_acp_types::{
    FrozenBlob, Message, MessageBody, MessageId, Rewound, SessionEpoch, SessionId, StoreError, StoredTurn, Summary,
    Thread, ThreadMeta, TurnId,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::trouble::Trouble;
use crate::cursor::{Cursor, page_of, page_size};
use crate::record;

const HEAD_COLUMNS: &str =
    "id, parent_thread_id, cwd, title, created_at_ms, updated_at_ms, epoch, close_intent, open_turn";

/// A thread without what grows: one row.
pub(super) struct Head {
    pub meta: ThreadMeta,
    pub epoch: SessionEpoch,
    pub close_intent: Option<SessionEpoch>,
    pub open_turn: Option<TurnId>,
}

impl Head {
    /// The thread of this row, with no messages, turns or frozen context.
    pub(super) fn into_thread(self) -> Thread {
        let Head { meta, epoch, close_intent, open_turn } = self;
        Thread { epoch, close_intent, open_turn, ..Thread::new(meta) }
    }
}

pub(super) fn create(connection: &Connection, meta: &ThreadMeta) -> Result<(), Trouble> {
    if head(connection, meta.id)?.is_some() {
        return Err(StoreError::Exists(meta.id).into());
    }
    if let Some(parent) = meta.parent_thread_id {
        require_head(connection, parent)?;
    }
    insert_head(connection, &Thread::new(meta.clone()))
}

/// As far as a session needs it to go on.
pub(super) fn load(connection: &Connection, id: SessionId) -> Result<Thread, Trouble> {
    let mut thread = require_head(connection, id)?.into_thread();
    thread.frozen = frozen(connection, id)?;
    let start = first_seen(connection, id)?;
    thread.earlier = count(connection, id, start)?;
    let mut statement = connection.prepare_cached(
        "SELECT id, turn_id, created_at_ms, body FROM messages WHERE thread_id = ?1 AND rewound IS NULL AND position >= ?2 \
         ORDER BY position",
    )?;
    let mut rows = statement.query(params![id.to_string(), start])?;
    while let Some(row) = rows.next()? {
        thread.messages.push(message(row)?);
    }
    thread.turns = turns_between(connection, id, start, i64::MAX)?;
    Ok(thread)
}

/// All of it, with what was rewound.
pub(super) fn load_whole(connection: &Connection, id: SessionId) -> Result<Thread, Trouble> {
    let mut thread = require_head(connection, id)?.into_thread();
    thread.frozen = frozen(connection, id)?;
    let undoable_from: i64 =
        connection.query_row("SELECT undoable_from FROM threads WHERE id = ?1", [id.to_string()], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(
        "SELECT id, turn_id, created_at_ms, body, rewound FROM messages WHERE thread_id = ?1 ORDER BY position",
    )?;
    let mut rows = statement.query(params![id.to_string()])?;
    let mut rewound: BTreeMap<i64, Vec<Message>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        match row.get::<_, Option<i64>>(4)? {
            None => thread.messages.push(message(row)?),
            Some(number) => rewound.entry(number).or_default().push(message(row)?),
        }
    }
    let group = |(number, messages)| Rewound { messages, undoable: number >= undoable_from };
    thread.rewound = rewound.into_iter().map(group).collect();
    let mut statement =
        connection.prepare_cached("SELECT id, ended FROM turns WHERE thread_id = ?1 ORDER BY position")?;
    let mut rows = statement.query(params![id.to_string()])?;
    while let Some(row) = rows.next()? {
        thread.turns.push(turn(row)?);
    }
    Ok(thread)
}

pub(super) fn head_of(connection: &Connection, id: SessionId) -> Result<ThreadHead, Trouble> {
    let Head { meta, epoch, close_intent, open_turn } = require_head(connection, id)?;
    let messages = count(connection, id, i64::MAX)?;
    Ok(ThreadHead { meta, epoch, close_intent, open_turn, messages })
}

pub(super) fn page(connection: &Connection, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, Trouble> {
    require_head(connection, id)?;
    let (from, limit) = (i64::try_from(from).unwrap_or(i64::MAX), limit.max(1));
    let mut statement = connection.prepare_cached(
        "SELECT id, turn_id, created_at_ms, body, position FROM messages WHERE thread_id = ?1 AND rewound IS NULL \
         AND position >= ?2 ORDER BY position LIMIT ?3",
    )?;
    let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = statement.query(params![id.to_string(), from, one_more])?;
    let (mut messages, mut next) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        if messages.len() == limit {
            next = Some(row.get::<_, i64>(4)?);
            break;
        }
        messages.push(message(row)?);
    }
    let turns = turns_between(connection, id, from, next.unwrap_or(i64::MAX))?;
    Ok(MessagePage { messages, turns, next: next.and_then(|position| u64::try_from(position).ok()) })
}

/// Rows are copied as they are: bodies and frozen bytes stay the same bytes.
pub(super) fn fork(connection: &Connection, source: SessionId, meta: &ThreadMeta) -> Result<(), Trouble> {
    let from = require_head(connection, source)?;
    if head(connection, meta.id)?.is_some() {
        return Err(StoreError::Exists(meta.id).into());
    }
    if let Some(parent) = meta.parent_thread_id {
        require_head(connection, parent)?;
    }
    let title = meta.title.clone().or(from.meta.title);
    let copy = Thread { open_turn: from.open_turn, ..Thread::new(ThreadMeta { title, ..meta.clone() }) };
    insert_head(connection, &copy)?;
    let ids = params![meta.id.to_string(), source.to_string()];
    for sql in [
        "INSERT INTO frozen_contexts (thread_id, version, bytes) \
         SELECT ?1, version, bytes FROM frozen_contexts WHERE thread_id = ?2",
        "INSERT INTO messages (thread_id, position, id, turn_id, created_at_ms, body, is_summary) \
         SELECT ?1, position, id, turn_id, created_at_ms, body, is_summary FROM messages \
         WHERE thread_id = ?2 AND rewound IS NULL",
        "INSERT INTO turns (thread_id, position, id, ended) SELECT ?1, position, id, ended FROM turns \
         WHERE thread_id = ?2 AND id IN (SELECT turn_id FROM messages WHERE thread_id = ?2 AND rewound IS NULL)",
    ] {
        connection.execute(sql, ids)?;
    }
    Ok(())
}

/// Where the model's context begins: at the last summary, or at what it kept.
fn first_seen(connection: &Connection, id: SessionId) -> Result<i64, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT position, body FROM messages WHERE thread_id = ?1 AND is_summary = 1 AND rewound IS NULL \
         ORDER BY position DESC LIMIT 1",
    )?;
    let mut rows = statement.query(params![id.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(0) };
    let position: i64 = row.get(0)?;
    let MessageBody::Summary(Summary { first_kept: Some(kept), .. }) = record::decode_body(text(row, 1)?)? else {
        return Ok(position);
    };
    let kept: Option<i64> = connection
        .prepare_cached("SELECT position FROM messages WHERE thread_id = ?1 AND id = ?2 AND rewound IS NULL")?
        .query_row(params![id.to_string(), kept.to_string()], |row| row.get(0))
        .optional()?;
    Ok(kept.map_or(position, |kept| kept.min(position)))
}

/// Messages of the conversation before that position.
fn count(connection: &Connection, id: SessionId, before: i64) -> Result<u64, Trouble> {
    let mut statement = connection
        .prepare_cached("SELECT count(*) FROM messages WHERE thread_id = ?1 AND rewound IS NULL AND position < ?2")?;
    let count: i64 = statement.query_row(params![id.to_string(), before], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// The ended turns of the conversation's messages from one position to before another.
fn turns_between(connection: &Connection, id: SessionId, from: i64, to: i64) -> Result<Vec<StoredTurn>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, ended FROM turns WHERE thread_id = ?1 AND id IN (SELECT turn_id FROM messages WHERE thread_id = ?1 \
         AND rewound IS NULL AND position >= ?2 AND position < ?3) ORDER BY position",
    )?;
    let mut rows = statement.query(params![id.to_string(), from, to])?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        turns.push(turn(row)?);
    }
    Ok(turns)
}

/// What was rewound so far stays so.
pub(super) fn keep_rewinds(connection: &Connection, id: SessionId) -> Result<(), Trouble> {
    let mut statement = connection.prepare_cached(
        "UPDATE threads SET undoable_from = 1 + (SELECT coalesce(max(rewound), 0) FROM messages \
         WHERE thread_id = ?1 AND rewound IS NOT NULL) WHERE id = ?1",
    )?;
    statement.execute(params![id.to_string()])?;
    Ok(())
}

/// Marks messages as the thread has them, and adds those that are new.
pub(super) fn rewrite_rewinds(connection: &Connection, thread: &Thread) -> Result<(), Trouble> {
    let id = thread.meta.id;
    let new: Vec<Message> = {
        let all = thread.messages.iter().chain(thread.rewound.iter().flat_map(|rewound| &rewound.messages));
        let mut new = Vec::new();
        for message in all {
            if find_message(connection, id, message.id)?.is_none() {
                new.push(message.clone());
            }
        }
        new
    };
    append_messages(connection, id, &new)?;
    connection.execute("UPDATE messages SET rewound = NULL WHERE thread_id = ?1", [id.to_string()])?;
    let mut mark = connection.prepare_cached("UPDATE messages SET rewound = ?3 WHERE thread_id = ?1 AND id = ?2")?;
    for (number, rewound) in (1_i64..).zip(&thread.rewound) {
        for message in &rewound.messages {
            mark.execute(params![id.to_string(), message.id.to_string(), number])?;
        }
    }
    let kept = thread.rewound.iter().take_while(|rewound| !rewound.undoable).count();
    let undoable_from = i64::try_from(kept).unwrap_or(i64::MAX).saturating_add(1);
    connection
        .execute("UPDATE threads SET undoable_from = ?2 WHERE id = ?1", params![id.to_string(), undoable_from])?;
    Ok(())
}

/// The row of a thread that this epoch may change.
pub(super) fn owned_head(connection: &Connection, id: SessionId, epoch: SessionEpoch) -> Result<Head, Trouble> {
    let head = require_head(connection, id)?;
    if head.epoch != epoch {
        return Err(StoreError::Fenced { ours: epoch, current: head.epoch }.into());
    }
    Ok(head)
}

pub(super) fn take_epoch(
    connection: &Connection,
    id: SessionId,
    expected: SessionEpoch,
) -> Result<SessionEpoch, Trouble> {
    owned_head(connection, id, expected)?;
    let next = expected.next();
    let mut statement = connection.prepare_cached("UPDATE threads SET epoch = ?2 WHERE id = ?1")?;
    statement.execute(params![id.to_string(), epoch_column(next)])?;
    Ok(next)
}

pub(super) fn freeze(
    connection: &Connection,
    id: SessionId,
    epoch: SessionEpoch,
    blob: &FrozenBlob,
) -> Result<(), Trouble> {
    owned_head(connection, id, epoch)?;
    match frozen(connection, id)? {
        Some(_) => Err(StoreError::Exists(id).into()),
        None => insert_frozen(connection, id, blob),
    }
}

pub(super) fn set_close_intent(
    connection: &Connection,
    id: SessionId,
    epoch: SessionEpoch,
    intent: Option<SessionEpoch>,
) -> Result<(), Trouble> {
    owned_head(connection, id, epoch)?;
    let mut statement = connection.prepare_cached("UPDATE threads SET close_intent = ?2 WHERE id = ?1")?;
    statement.execute(params![id.to_string(), intent.map(epoch_column)])?;
    Ok(())
}

/// Children, messages, turns and the frozen context go with it: the tables cascade.
pub(super) fn delete(connection: &Connection, id: SessionId) -> Result<(), Trouble> {
    connection.prepare_cached("DELETE FROM threads WHERE id = ?1")?.execute(params![id.to_string()])?;
    Ok(())
}

const LIST_ALL: &str = "SELECT id, parent_thread_id, cwd, title, created_at_ms, updated_at_ms FROM threads \
     WHERE parent_thread_id IS NULL AND (updated_at_ms, id) < (?1, ?2) ORDER BY updated_at_ms DESC, id DESC LIMIT ?3";
const LIST_OF_CWD: &str = "SELECT id, parent_thread_id, cwd, title, created_at_ms, updated_at_ms FROM threads \
     WHERE parent_thread_id IS NULL AND (updated_at_ms, id) < (?1, ?2) AND cwd = ?4 \
     ORDER BY updated_at_ms DESC, id DESC LIMIT ?3";

pub(super) fn list(connection: &Connection, query: &ThreadQuery) -> Result<ThreadPage, Trouble> {
    let size = page_size(query);
    // Before the first page: later than any time, and after any UUID in the order of text.
    let (updated_at_ms, id) = match Cursor::of_query(query)? {
        Some(cursor) => (cursor.updated_at_ms, cursor.id.to_string()),
        None => (i64::MAX, "~".to_owned()),
    };
    let limit = i64::try_from(size + 1).unwrap_or(i64::MAX);
    let mut metas = Vec::new();
    match &query.cwd {
        None => {
            let mut statement = connection.prepare_cached(LIST_ALL)?;
            let mut rows = statement.query(params![updated_at_ms, id, limit])?;
            while let Some(row) = rows.next()? {
                metas.push(meta(row)?);
            }
        }
        Some(cwd) => {
            let mut statement = connection.prepare_cached(LIST_OF_CWD)?;
            let mut rows = statement.query(params![updated_at_ms, id, limit, cwd])?;
            while let Some(row) = rows.next()? {
                metas.push(meta(row)?);
            }
        }
    }
    Ok(page_of(metas, size))
}

/// Writes a thread as it is: for copying, not for changes.
pub(super) fn insert_whole(connection: &Connection, thread: &Thread) -> Result<(), Trouble> {
    let id = thread.meta.id;
    insert_head(connection, thread)?;
    if let Some(blob) = &thread.frozen {
        insert_frozen(connection, id, blob)?;
    }
    append_turns(connection, id, &thread.turns)?;
    // What a rewind took comes back behind the conversation, the last rewind first.
    append_messages(connection, id, &thread.messages)?;
    for rewound in thread.rewound.iter().rev() {
        append_messages(connection, id, &rewound.messages)?;
    }
    rewrite_rewinds(connection, thread)
}

pub(super) fn append_messages(connection: &Connection, id: SessionId, messages: &[Message]) -> Result<(), Trouble> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO messages (thread_id, position, id, turn_id, created_at_ms, body, is_summary) VALUES (?1, \
         (SELECT coalesce(max(position) + 1, 0) FROM messages WHERE thread_id = ?1), ?2, ?3, ?4, ?5, ?6)",
    )?;
    for message in messages {
        let Message { id: message_id, turn_id, created_at_ms, body } = message;
        let is_summary = matches!(body, MessageBody::Summary(_));
        let body = record::encode_body(body)?;
        let ids = (id.to_string(), message_id.to_string(), turn_id.to_string());
        statement.execute(params![ids.0, ids.1, ids.2, created_at_ms, body, is_summary])?;
    }
    Ok(())
}

pub(super) fn append_turns(connection: &Connection, id: SessionId, turns: &[StoredTurn]) -> Result<(), Trouble> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO turns (thread_id, position, id, ended) VALUES (?1, \
         (SELECT coalesce(max(position) + 1, 0) FROM turns WHERE thread_id = ?1), ?2, ?3)",
    )?;
    for StoredTurn { turn_id, end } in turns {
        statement.execute(params![id.to_string(), turn_id.to_string(), record::encode_turn_end(end)?])?;
    }
    Ok(())
}

pub(super) fn find_message(
    connection: &Connection,
    id: SessionId,
    message_id: MessageId,
) -> Result<Option<Message>, Trouble> {
    let mut statement = connection
        .prepare_cached("SELECT id, turn_id, created_at_ms, body FROM messages WHERE thread_id = ?1 AND id = ?2")?;
    let mut rows = statement.query(params![id.to_string(), message_id.to_string()])?;
    rows.next()?.map(message).transpose()
}

/// The same, unless it was rewound.
pub(super) fn find_in_conversation(
    connection: &Connection,
    id: SessionId,
    message_id: MessageId,
) -> Result<Option<Message>, Trouble> {
    let mut statement = connection.prepare_cached(
        "SELECT id, turn_id, created_at_ms, body FROM messages WHERE thread_id = ?1 AND id = ?2 AND rewound IS NULL",
    )?;
    let mut rows = statement.query(params![id.to_string(), message_id.to_string()])?;
    rows.next()?.map(message).transpose()
}

pub(super) fn find_turn(
    connection: &Connection,
    id: SessionId,
    turn_id: TurnId,
) -> Result<Option<StoredTurn>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT id, ended FROM turns WHERE thread_id = ?1 AND id = ?2")?;
    let mut rows = statement.query(params![id.to_string(), turn_id.to_string()])?;
    rows.next()?.map(turn).transpose()
}

fn require_head(connection: &Connection, id: SessionId) -> Result<Head, Trouble> {
    head(connection, id)?.ok_or(Trouble::Answer(StoreError::NotFound(id)))
}

fn head(connection: &Connection, id: SessionId) -> Result<Option<Head>, Trouble> {
    let mut statement = connection.prepare_cached(&format!("SELECT {HEAD_COLUMNS} FROM threads WHERE id = ?1"))?;
    let mut rows = statement.query(params![id.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let open_turn: Option<String> = row.get(8)?;
    Ok(Some(Head {
        meta: meta(row)?,
        epoch: read_epoch(row.get(6)?)?,
        close_intent: row.get::<_, Option<i64>>(7)?.map(read_epoch).transpose()?,
        open_turn: open_turn.map(|text| read_id(&text)).transpose()?,
    }))
}

fn insert_head(connection: &Connection, thread: &Thread) -> Result<(), Trouble> {
    let ThreadMeta { id, parent_thread_id, cwd, title, created_at_ms, updated_at_ms } = &thread.meta;
    let mut statement = connection
        .prepare_cached(&format!("INSERT INTO threads ({HEAD_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"))?;
    statement.execute(params![
        id.to_string(),
        parent_thread_id.map(|parent| parent.to_string()),
        cwd,
        title,
        created_at_ms,
        updated_at_ms,
        epoch_column(thread.epoch),
        thread.close_intent.map(epoch_column),
        thread.open_turn.map(|turn| turn.to_string()),
    ])?;
    Ok(())
}

fn frozen(connection: &Connection, id: SessionId) -> Result<Option<FrozenBlob>, Trouble> {
    let mut statement = connection.prepare_cached("SELECT version, bytes FROM frozen_contexts WHERE thread_id = ?1")?;
    let blob = statement
        .query_row(params![id.to_string()], |row| Ok(FrozenBlob { version: row.get(0)?, bytes: row.get(1)? }))
        .optional()?;
    Ok(blob)
}

fn insert_frozen(connection: &Connection, id: SessionId, blob: &FrozenBlob) -> Result<(), Trouble> {
    let mut statement =
        connection.prepare_cached("INSERT INTO frozen_contexts (thread_id, version, bytes) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![id.to_string(), blob.version, blob.bytes])?;
    Ok(())
}

/// Columns in the order of the lists.
fn meta(row: &Row<'_>) -> Result<ThreadMeta, Trouble> {
    let parent: Option<String> = row.get(1)?;
    Ok(ThreadMeta {
        id: read_id(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?,
        parent_thread_id: parent.map(|text| read_id(&text)).transpose()?,
        cwd: row.get(2)?,
        title: row.get(3)?,
        created_at_ms: row.get(4)?,
        updated_at_ms: row.get(5)?,
    })
}

/// Columns: id, turn_id, created_at_ms, body.
fn message(row: &Row<'_>) -> Result<Message, Trouble> {
    Ok(Message {
        id: read_id(text(row, 0)?)?,
        turn_id: read_id(text(row, 1)?)?,
        created_at_ms: row.get(2)?,
        body: record::decode_body(text(row, 3)?)?,
    })
}

/// Columns: id, ended.
fn turn(row: &Row<'_>) -> Result<StoredTurn, Trouble> {
    Ok(StoredTurn { turn_id: read_id(text(row, 0)?)?, end: record::decode_turn_end(text(row, 1)?)? })
}

/// The text where it lies, without a copy: bodies are large.
fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str, Trouble> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}

fn read_id<Id: std::str::FromStr>(text: &str) -> Result<Id, Trouble> {
    text.parse().map_err(|_| StoreError::Unreadable(format!("`{text}` stands where an id should be")).into())
}

/// Epochs are counted, never chosen: none comes near the limit.
fn epoch_column(epoch: SessionEpoch) -> i64 {
    i64::try_from(epoch.0).unwrap_or(i64::MAX)
}

fn read_epoch(column: i64) -> Result<SessionEpoch, Trouble> {
    match u64::try_from(column) {
        Ok(epoch) => Ok(SessionEpoch(epoch)),
        Err(_) => Err(StoreError::Unreadable(format!("{column} stands where an epoch should be")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    /// What SQLite means to do for a statement, in its own words.
    fn plan(sql: &str) -> String {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = rusqlite::params_from_iter((0..statement.parameter_count()).map(|_| rusqlite::types::Null));
        let lines: Vec<String> =
            statement.query_map(parameters, |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
        lines.join("; ")
    }

    #[test]
    fn lists_walk_an_index_in_its_order() {
        for (sql, index) in [(LIST_ALL, "threads_by_change"), (LIST_OF_CWD, "threads_by_cwd")] {
            let plan = plan(sql);
            assert!(plan.contains(&format!("USING INDEX {index}")), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            assert!(plan.starts_with("SEARCH"), "the cursor is not sought: {plan}");
        }
    }

    #[test]
    fn what_a_commit_looks_up_is_sought_and_not_scanned() {
        for sql in [
            "SELECT body FROM messages WHERE thread_id = ?1 AND id = ?2",
            "SELECT ended FROM turns WHERE thread_id = ?1 AND id = ?2",
            "SELECT max(position) FROM messages WHERE thread_id = ?1",
            "SELECT body FROM messages WHERE thread_id = ?1 ORDER BY position",
            "DELETE FROM threads WHERE parent_thread_id = ?1",
        ] {
            let plan = plan(sql);
            assert!(plan.starts_with("SEARCH") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }
}
