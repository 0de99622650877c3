//! `peri sessions list|show`: stored sessions, read and never opened.
//!
//! Owns: how a list and a transcript look, and how a session is found by the beginning of its id. Must not: open a
//! session: that takes it away from a process that runs it, and would want a model. Invariants: nothing here writes to the
//! store; no secret that the settings know is shown with a transcript.

use peri_acp_types::ports::{ThreadQuery, ThreadStore};
use peri_acp_types::{SessionId, StoreError, StoredTurn, Thread, ThreadMeta};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::redaction::Redaction;
use super::transcript;
use crate::args::ReportFormat;
use crate::console::one_line;
use crate::exit::Failure;

/// Sessions that are asked of the store at a time.
const PAGE: usize = 200;

/// The newest sessions, of one directory or (None) of all.
///
/// # Errors
/// A [`Failure`] where the store cannot be read.
pub async fn list(
    store: &dyn ThreadStore,
    cwd: Option<&str>,
    limit: usize,
    format: ReportFormat,
) -> Result<String, Failure> {
    let sessions = newest(store, cwd, limit).await?;
    Ok(match format {
        ReportFormat::Json => pretty(&sessions.iter().map(describe).collect()),
        ReportFormat::Text if sessions.is_empty() => match cwd {
            Some(cwd) => format!("no sessions of {cwd}; --all lists those of every directory"),
            None => "no sessions".to_owned(),
        },
        ReportFormat::Text => sessions.iter().map(|session| list_line(session, cwd.is_none())).collect(),
    })
}

/// The messages of a session.
pub fn show(thread: &Thread, format: ReportFormat, redaction: &Redaction) -> String {
    match format {
        ReportFormat::Text => redaction.text(&transcript::text(thread, &describe_lines(thread))),
        ReportFormat::Json => pretty(&redaction.value(whole(thread))),
    }
}

/// Everything of a thread.
pub fn whole(thread: &Thread) -> Value {
    let mut shown = describe(&thread.meta);
    shown["messages"] = transcript::json(thread);
    shown["turns"] = transcript::turns_json(thread);
    shown
}

/// The session whose id begins so.
///
/// # Errors
/// A [`Failure`] where there is no such session, more than one, or it cannot be read.
pub async fn resolve(store: &dyn ThreadStore, id: &str) -> Result<Thread, Failure> {
    let named = async {
        match id.trim().parse() {
            Ok(id) => load(store, id).await,
            Err(_) => load(store, find(store, id).await?).await,
        }
    };
    named.await.map_err(|not_found| match not_found {
        NotFound::Unknown => {
            Failure::run(format!("there is no session {id}")).hint("peri sessions list --all shows those there are")
        }
        NotFound::Failed(failure) => failure,
    })
}

/// Why a session was not found.
enum NotFound {
    Unknown,
    Failed(Failure),
}

async fn load(store: &dyn ThreadStore, id: SessionId) -> Result<Thread, NotFound> {
    load_all(store, id).await.map_err(|error| match error {
        StoreError::NotFound(_) => NotFound::Unknown,
        other => NotFound::Failed(store_failure(&other)),
    })
}

/// The thread with all of its conversation, also what a compaction took out of the model's sight.
async fn load_all(store: &dyn ThreadStore, id: SessionId) -> Result<Thread, StoreError> {
    let mut thread = store.load(id).await?;
    if thread.earlier == 0 {
        return Ok(thread);
    }
    let (mut messages, mut turns) = (Vec::new(), Vec::new());
    let mut from = Some(0);
    while let Some(place) = from {
        let page = store.page(id, place, PAGE).await?;
        messages.extend(page.messages);
        // A turn whose messages are on two pages is named by both.
        for turn in page.turns {
            if !known(&turns, &turn) {
                turns.push(turn);
            }
        }
        from = page.next;
    }
    (thread.earlier, thread.messages, thread.turns) = (0, messages, turns);
    Ok(thread)
}

fn known(turns: &[StoredTurn], turn: &StoredTurn) -> bool {
    turns.iter().rev().any(|known| known.turn_id == turn.turn_id)
}

async fn find(store: &dyn ThreadStore, id: &str) -> Result<SessionId, NotFound> {
    let wanted = id.trim().to_ascii_lowercase();
    let mut found = newest(store, None, usize::MAX).await.map_err(NotFound::Failed)?;
    found.retain(|session| session.id.to_string().starts_with(&wanted));
    match found.as_slice() {
        [only] => Ok(only.id),
        [] => Err(NotFound::Unknown),
        several => Err(NotFound::Failed(
            Failure::usage(format!("{} sessions have an id that begins with {id}", several.len()))
                .hint("give more of the id; peri sessions list --all shows them"),
        )),
    }
}

async fn newest(store: &dyn ThreadStore, cwd: Option<&str>, limit: usize) -> Result<Vec<ThreadMeta>, Failure> {
    let mut sessions = Vec::new();
    let mut cursor = None;
    while sessions.len() < limit {
        let query = ThreadQuery { cwd: cwd.map(str::to_owned), cursor, limit: PAGE.min(limit - sessions.len()) };
        let page = store.list(&query).await.map_err(|error| store_failure(&error))?;
        sessions.extend(page.threads);
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok(sessions)
}

/// A store that failed, and where to look.
pub fn store_failure(error: &StoreError) -> Failure {
    Failure::run(error.to_string()).hint("peri config path names the file; --db-path chooses another")
}

fn describe(session: &ThreadMeta) -> Value {
    json!({
        "session_id": session.id.to_string(),
        "cwd": session.cwd,
        "title": session.title,
        "created_at": when(session.created_at_ms),
        "updated_at": when(session.updated_at_ms),
    })
}

fn describe_lines(thread: &Thread) -> String {
    let meta = &thread.meta;
    let (created, updated) = (when(meta.created_at_ms), when(meta.updated_at_ms));
    format!("session {}\n  in {}\n  begun {created}, last changed {updated}\n", meta.id, meta.cwd)
}

/// One session in one line.
pub fn list_line(session: &ThreadMeta, with_cwd: bool) -> String {
    let title = one_line(session.title.as_deref().unwrap_or("(no prompt yet)"));
    let place = if with_cwd { format!("  {}", session.cwd) } else { String::new() };
    format!("{}  {}{place}  {title}\n", session.id, when(session.updated_at_ms))
}

/// To the second, in UTC.
pub fn when(unix_ms: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(&Rfc3339).unwrap_or_default()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
