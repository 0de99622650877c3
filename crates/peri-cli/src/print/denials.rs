//! Calls that permission refused.
//!
//! Owns: telling a refusal from another failed call. ACP has no word for it, so it is told by how the result begins; a test
//! with the real agent holds both ends to that.

use peri_acp::extension::{StepContent, StepMessage, StepPart, StepResult};
use serde_json::{Value, json};

use super::happening::Happening;

/// How the result of a call begins that was refused.
const REFUSAL: &str = "Refused: ";

/// A call that was not run because nothing allowed it, or a rule denied it.
#[derive(Clone, PartialEq, Debug)]
pub struct Denial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Value,
}

/// The refused calls of a run, in their order.
#[derive(Default)]
pub struct Denials(Vec<Denial>);

impl Denials {
    pub fn observe(&mut self, happening: &Happening) {
        if let Happening::StepCommitted { message, results, .. } = happening {
            let refused = results.iter().filter(|result| is_refusal(result));
            self.0.extend(refused.filter_map(|result| call(message, &result.call_id)));
        }
    }

    pub fn all(&self) -> &[Denial] {
        &self.0
    }
}

/// What was refused in this step and what would allow it, a line each, for whoever runs Peri.
pub fn refusals(happening: &Happening) -> Vec<&str> {
    match happening {
        Happening::StepCommitted { results, .. } => results.iter().filter_map(refusal).collect(),
        _ => Vec::new(),
    }
}

fn is_refusal(result: &StepResult) -> bool {
    refusal(result).is_some()
}

fn refusal(result: &StepResult) -> Option<&str> {
    match result.content.first() {
        Some(StepContent::Text { text }) if result.is_error && text.starts_with(REFUSAL) => Some(text),
        _ => None,
    }
}

fn call(message: &StepMessage, call_id: &str) -> Option<Denial> {
    message.parts.iter().find_map(|part| match part {
        StepPart::ToolCall { id, name, arguments } if id == call_id => {
            Some(Denial { tool_name: name.clone(), tool_use_id: id.clone(), tool_input: arguments.clone() })
        }
        _ => None,
    })
}

impl Denial {
    pub fn to_json(&self) -> Value {
        json!({"tool_name": self.tool_name, "tool_use_id": self.tool_use_id, "tool_input": self.tool_input})
    }
}
