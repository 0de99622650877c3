//! The stored form of messages and turn ends: JSON, each record with the number of its form.
//!
//! Owns the twins of the domain types and both directions between them. Must not know tables or files. Invariant: a
//! record that was once written stays readable (the golden files in `fixtures/store` see to it), and a form that this
//! version does not know is refused by name, never guessed at.

mod content;
mod message;
mod tool;
mod turn;

use peri_acp_types::{MessageBody, StoreError, StoredTurnEnd};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use message::BodyRecord;
use turn::TurnEndRecord;

/// The form of every record that needs nothing newer. A change that an older reader would not understand, or would lose when
/// it copies, is a new form; only the records that need it are written in it.
const FORM: u32 = 1;
/// Form 1 and summaries.
const FORM_OF_SUMMARIES: u32 = 2;

/// The newest form of each kind of record that this version reads.
const NEWEST_BODY: u32 = FORM_OF_SUMMARIES;
const NEWEST_TURN_END: u32 = FORM;

/// Gives the record of a message's body.
///
/// # Errors
/// [`StoreError::Failed`] where a value cannot be put in JSON.
pub fn encode_body(body: &MessageBody) -> Result<String, StoreError> {
    let form = match body {
        MessageBody::Summary(_) => FORM_OF_SUMMARIES,
        MessageBody::User(_) | MessageBody::Assistant(_) | MessageBody::ToolResults(_) | MessageBody::Notice(_) => FORM,
    };
    encode(form, BodyRecord::from(body))
}

/// Reads what [`encode_body`] gave, now or in an earlier version.
///
/// # Errors
/// [`StoreError::Unreadable`], naming the form or the damage.
pub fn decode_body(record: &str) -> Result<MessageBody, StoreError> {
    let (form, body) = decode::<BodyRecord<'static>>("message", NEWEST_BODY, record)?;
    match (form, body) {
        (FORM, BodyRecord::Summary(_)) => Err(StoreError::Unreadable(format!(
            "a message record of form {FORM} is a summary, which that form does not have"
        ))),
        (_, body) => Ok(MessageBody::from(body)),
    }
}

/// Gives the record of a turn's end.
///
/// # Errors
/// [`StoreError::Failed`] where a value cannot be put in JSON.
pub fn encode_turn_end(end: &StoredTurnEnd) -> Result<String, StoreError> {
    encode(FORM, TurnEndRecord::from(end))
}

/// Reads what [`encode_turn_end`] gave, now or in an earlier version.
///
/// # Errors
/// [`StoreError::Unreadable`], naming the form or the damage.
pub fn decode_turn_end(record: &str) -> Result<StoredTurnEnd, StoreError> {
    decode::<TurnEndRecord<'static>>("turn", NEWEST_TURN_END, record).map(|(_, end)| StoredTurnEnd::from(end))
}

/// A record: the number of its form, then the thing itself.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Versioned<T> {
    v: u32,
    body: T,
}

/// What every form has in common.
#[derive(Deserialize)]
struct FormNumber {
    v: u32,
}

fn encode(form: u32, body: impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(&Versioned { v: form, body })
        .map_err(|error| StoreError::Failed(format!("a record cannot be written: {error}")))
}

/// The record's form and what is in it.
fn decode<T: DeserializeOwned>(what: &str, newest: u32, record: &str) -> Result<(u32, T), StoreError> {
    let known = FORM..=newest;
    let error = match serde_json::from_str::<Versioned<T>>(record) {
        Ok(Versioned { v, body }) if known.contains(&v) => return Ok((v, body)),
        Ok(Versioned { v, .. }) => return Err(unknown_form(what, newest, v)),
        Err(error) => error,
    };
    // Looked at only now: nearly every record is of a form of ours, and is then read once.
    match serde_json::from_str::<FormNumber>(record) {
        Ok(FormNumber { v }) if !known.contains(&v) => Err(unknown_form(what, newest, v)),
        Ok(FormNumber { v }) => Err(StoreError::Unreadable(format!("a {what} record is not of form {v}: {error}"))),
        Err(_) => Err(StoreError::Unreadable(format!("a {what} record is of no form: {error}"))),
    }
}

fn unknown_form(what: &str, newest: u32, form: u32) -> StoreError {
    StoreError::Unreadable(format!(
        "a {what} record has form {form}; this version of Peri reads up to form {newest}. A newer version can read it."
    ))
}
