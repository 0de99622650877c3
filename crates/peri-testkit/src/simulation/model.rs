//! A model that answers, calls tools, fails, breaks off or hangs as chance says, and waits at gates in between.

use std::sync::{Arc, Mutex, PoisonError};

use peri_acp_types::{AssistantPart, ModelFailureKind, ModelStop, ToolArguments, ToolCall, ToolCallId, Usage};
use peri_model::{ModelAnswer, ModelStreamEvent};
use serde_json::json;

use super::Chance;
use crate::fake_model::{FakeAnswer, FakeModel, FakeStep};
use crate::gate::Gate;

/// Where something waits until the run lets it go on. Clones share the gates.
#[derive(Clone, Default)]
pub struct Gates(Arc<Mutex<Vec<Gate>>>);

impl Gates {
    pub fn add(&self) -> Gate {
        let gate = Gate::shut();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(gate.clone());
        gate
    }

    /// Opens one of those that are shut.
    pub fn open_one(&self, chance: &Chance) {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !gates.is_empty() {
            let place = chance.below(gates.len());
            gates.remove(place).open();
        }
    }

    pub fn open_all(&self) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).iter().for_each(Gate::open);
    }
}

/// How the model of one process behaves. Clones share it.
#[derive(Clone)]
pub struct SimulatedModel {
    chance: Chance,
    gates: Gates,
    /// Calls that models made so far: outlives the process, so that an id is never used twice.
    calls: Arc<Mutex<u64>>,
    tame: Arc<Mutex<bool>>,
}

impl SimulatedModel {
    pub fn new(chance: &Chance, gates: &Gates, calls: &Arc<Mutex<u64>>) -> SimulatedModel {
        let (chance, gates, calls) = (chance.clone(), gates.clone(), Arc::clone(calls));
        SimulatedModel { chance, gates, calls, tame: Arc::default() }
    }

    /// From now on it answers at once, in one piece.
    pub fn set_tame(&self) {
        *self.tame.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub fn model(&self) -> FakeModel {
        let this = self.clone();
        FakeModel::computed(move |_| this.answer())
    }

    fn answer(&self) -> FakeAnswer {
        let (chance, gates) = (&self.chance, &self.gates);
        if *self.tame.lock().unwrap_or_else(PoisonError::into_inner) {
            return FakeAnswer::text("done");
        }
        let mut steps = Vec::new();
        if chance.percent(50) {
            steps.push(FakeStep::Wait(gates.add()));
        }
        match chance.weighted(&[40, 35, 10, 3, 5, 7]) {
            0 => says(chance, gates, &mut steps),
            1 => calls_tools(chance, &self.calls, &mut steps),
            2 => return FakeAnswer::failure(ModelFailureKind::Overloaded, "half a"),
            3 => return FakeAnswer::failure(ModelFailureKind::BadRequest, ""),
            4 => return FakeAnswer::Hangs { text: "never".to_owned() },
            _ => return FakeAnswer::EndsSilently { text: "cut".to_owned() },
        }
        FakeAnswer::Steps(steps)
    }
}

fn says(chance: &Chance, gates: &Gates, steps: &mut Vec<FakeStep>) {
    let mut whole = String::new();
    for piece in 0..=chance.below(3) {
        let text = format!("piece {piece} ");
        whole.push_str(&text);
        steps.push(FakeStep::Event(ModelStreamEvent::TextDelta(text)));
        if chance.percent(40) {
            steps.push(FakeStep::Wait(gates.add()));
        }
    }
    steps.push(finished(vec![AssistantPart::Text(whole)], ModelStop::EndTurn));
}

fn calls_tools(chance: &Chance, calls: &Mutex<u64>, steps: &mut Vec<FakeStep>) {
    let mut parts = Vec::new();
    for _ in 0..=chance.below(3) {
        let id = {
            let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
            *calls += 1;
            ToolCallId(format!("call-{calls}"))
        };
        let (name, arguments) = match chance.below(4) {
            0 => ("Bash", json!({"command": format!("make {}", id.0)})),
            1 => ("Bash", json!({"command": "hang"})),
            2 => ("Read", json!({"file_path": format!("/project/{}", id.0)})),
            _ => ("Missing", json!({})),
        };
        let arguments = ToolArguments::Object(arguments.as_object().expect("an object").clone());
        steps.push(FakeStep::Event(ModelStreamEvent::ToolCallStarted { id: id.clone(), name: name.to_owned() }));
        parts.push(AssistantPart::ToolCall(ToolCall { id, name: name.to_owned(), arguments }));
    }
    steps.push(finished(parts, ModelStop::ToolUse));
}

fn finished(parts: Vec<AssistantPart>, stop: ModelStop) -> FakeStep {
    let usage = Usage { input_tokens: 100, output_tokens: 10, cache_read_tokens: 0, cache_write_tokens: 0 };
    FakeStep::Event(ModelStreamEvent::Finished(ModelAnswer { parts, stop, usage }))
}
