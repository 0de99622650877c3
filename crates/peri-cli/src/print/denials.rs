//! Calls that permission refused.
//!
//! Owns: telling a refusal from another failed call.

use serde_json::{Value, json};

use super::happening::Happening;

/// A call that was not run because nothing allowed it.
#[derive(Clone, PartialEq, Debug)]
pub struct Denial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Value,
}

/// The refused calls of a run.
#[derive(Default)]
pub struct Denials(Vec<Denial>);

impl Denials {
    pub fn observe(&mut self, _happening: &Happening) {}

    pub fn all(&self) -> &[Denial] {
        &self.0
    }
}

impl Denial {
    pub fn to_json(&self) -> Value {
        json!({"tool_name": self.tool_name, "tool_use_id": self.tool_use_id, "tool_input": self.tool_input})
    }
}
