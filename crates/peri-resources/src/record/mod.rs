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

/// The form that this version writes, and the only one that it reads. A change that an older reader would not understand,
/// or would lose when it copies, is a new form.
pub const RECORD_VERSION: u32 = 1;

/// Gives the record of a message's body.
///
/// # Errors
/// [`StoreError::Failed`] where a value cannot be put in JSON.
pub fn encode_body(body: &MessageBody) -> Result<String, StoreError> {
    encode(BodyRecord::from(body))
}

/// Reads what [`encode_body`] gave, now or in an earlier version.
///
/// # Errors
/// [`StoreError::Unreadable`], naming the form or the damage.
pub fn decode_body(record: &str) -> Result<MessageBody, StoreError> {
    decode::<BodyRecord<'static>>("message", record).map(MessageBody::from)
}

/// Gives the record of a turn's end.
///
/// # Errors
/// [`StoreError::Failed`] where a value cannot be put in JSON.
pub fn encode_turn_end(end: &StoredTurnEnd) -> Result<String, StoreError> {
    encode(TurnEndRecord::from(end))
}

/// Reads what [`encode_turn_end`] gave, now or in an earlier version.
///
/// # Errors
/// [`StoreError::Unreadable`], naming the form or the damage.
pub fn decode_turn_end(record: &str) -> Result<StoredTurnEnd, StoreError> {
    decode::<TurnEndRecord<'static>>("turn", record).map(StoredTurnEnd::from)
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

fn encode(body: impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(&Versioned { v: RECORD_VERSION, body })
        .map_err(|error| StoreError::Failed(format!("a record cannot be written: {error}")))
}

fn decode<T: DeserializeOwned>(what: &str, record: &str) -> Result<T, StoreError> {
    let error = match serde_json::from_str::<Versioned<T>>(record) {
        Ok(versioned) if versioned.v == RECORD_VERSION => return Ok(versioned.body),
        Ok(versioned) => return Err(unknown_form(what, versioned.v)),
        Err(error) => error,
    };
    // Looked at only now: nearly every record is of our form, and is then read once.
    match serde_json::from_str::<FormNumber>(record) {
        Ok(FormNumber { v }) if v != RECORD_VERSION => Err(unknown_form(what, v)),
        Ok(_) | Err(_) => {
            Err(StoreError::Unreadable(format!("a {what} record is not of form {RECORD_VERSION}: {error}")))
        }
    }
}

fn unknown_form(what: &str, form: u32) -> StoreError {
    StoreError::Unreadable(format!(
        "a {what} record has form {form}; this version of Peri reads form {RECORD_VERSION}. A newer version can read it."
    ))
}
