//! A question that an MCP server has for the person behind a session.

use serde_json::{Map, Value};

use crate::SessionId;

/// A form to be filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct ElicitationRequest {
    pub session_id: SessionId,
    /// Who asks: the server's configured name. What it writes into `message` is its own claim.
    pub server: String,
    pub message: String,
    /// A flat JSON schema of an object, as MCP's `requestedSchema`.
    pub schema: Value,
}

/// What came back.
#[derive(Clone, PartialEq, Debug)]
pub enum ElicitationAnswer {
    /// The fields that the person filled in.
    Accepted(Map<String, Value>),
    /// The person said no.
    Declined,
    /// The person gave no answer, the turn was cancelled, or nobody can be asked.
    Cancelled,
}
