//! A session as `peri sessions show` gives it, each turn checked in itself.
//!
//! Owns: the meaning of "once, in order, whole, and marked where it was interrupted". Faults are words, so that the caller
//! can add the seed and the run.

use std::collections::HashMap;

use serde_json::Value;

use super::scripted::{self, Place, STEPS};

/// A session.
pub struct History {
    pub messages: Vec<Value>,
    pub turns: Vec<Turn>,
}

/// A turn of it.
pub struct Turn {
    id: String,
    pub run: usize,
    pub steps: Vec<Step>,
    pub notice: Option<String>,
    pub end: TurnEnd,
}

/// An answer, and the results of its calls.
pub struct Step {
    pub assistant: Value,
    pub results: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnEnd {
    Open,
    Completed,
    Interrupted,
}

impl History {
    /// Reads the JSON of `peri sessions show`, and checks each turn in itself.
    ///
    /// # Errors
    /// Words for a turn that is half there, out of order, or not marked as it should be.
    pub fn read(shown: &Value) -> Result<History, String> {
        let messages = shown["messages"].as_array().ok_or("no messages are shown")?.clone();
        let ends = read_ends(shown)?;
        let mut turns: Vec<Turn> = Vec::new();
        for message in &messages {
            let id = message["turn_id"].as_str().ok_or("a message without a turn")?;
            match turns.last_mut().filter(|turn| turn.id == id) {
                Some(turn) => turn.take(message)?,
                None => turns.push(Turn::begin(id, message, &ends)?),
            }
        }
        let history = History { messages, turns };
        history.check(ends.len())?;
        Ok(history)
    }

    /// Turns that ended so.
    pub fn count(&self, end: TurnEnd) -> usize {
        self.turns.iter().filter(|turn| turn.end == end).count()
    }

    pub fn turn(&self, run: usize) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.run == run)
    }

    pub fn has_open_turn(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.end == TurnEnd::Open)
    }

    fn check(&self, ends: usize) -> Result<(), String> {
        // Ascending runs are turns in order, each there once.
        if !self.turns.is_sorted_by(|turn, next| turn.run < next.run) {
            let runs: Vec<usize> = self.turns.iter().map(|turn| turn.run).collect();
            return Err(format!("the turns are of the runs {runs:?}"));
        }
        if ends != self.turns.len() {
            return Err(format!("{ends} turns are listed, and {} have messages", self.turns.len()));
        }
        let past = self.turns.split_last().map_or(&[][..], |(_, past)| past);
        if let Some(turn) = past.iter().find(|turn| turn.end == TurnEnd::Open) {
            return Err(format!("the turn of run {} was followed by another and has no end", turn.run));
        }
        self.turns
            .iter()
            .try_for_each(|turn| turn.check().map_err(|fault| format!("the turn of run {}: {fault}", turn.run)))
    }
}

impl Turn {
    fn begin(id: &str, message: &Value, ends: &HashMap<String, TurnEnd>) -> Result<Turn, String> {
        let words = message["content"][0]["text"].as_str().unwrap_or_default();
        let run = scripted::run_of(words).filter(|run| message["role"] == "user" && words == scripted::prompt(*run));
        let run = run.ok_or_else(|| format!("a turn begins with {message}"))?;
        let end = ends.get(id).copied().ok_or_else(|| format!("the turn of run {run} is not listed"))?;
        Ok(Turn { id: id.to_owned(), run, steps: Vec::new(), notice: None, end })
    }

    /// The next message of the turn.
    fn take(&mut self, message: &Value) -> Result<(), String> {
        let out_of_place = || format!("in the turn of run {} is out of place: {message}", self.run);
        if self.notice.is_some() {
            return Err(out_of_place());
        }
        match message["role"].as_str() {
            Some("assistant") => self.steps.push(Step { assistant: message.clone(), results: None }),
            Some("user") => {
                let step = self.steps.last_mut().filter(|step| step.results.is_none()).ok_or_else(out_of_place)?;
                step.results = Some(message.clone());
            }
            Some("notice") => {
                self.notice = Some(message["content"][0]["text"].as_str().ok_or_else(out_of_place)?.to_owned());
            }
            _ => return Err(out_of_place()),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for (step, stored) in self.steps.iter().enumerate() {
            stored.check(Place { run: self.run, step }).map_err(|fault| format!("step {step}: {fault}"))?;
        }
        let says_so =
            self.notice.as_ref().is_some_and(|notice| notice.contains("interrupted") && notice.contains("unknown"));
        match self.end {
            TurnEnd::Completed if self.steps.len() == STEPS && self.notice.is_none() => Ok(()),
            TurnEnd::Interrupted if self.steps.len() <= STEPS && says_so => Ok(()),
            TurnEnd::Open if self.steps.len() <= STEPS && self.notice.is_none() => Ok(()),
            end => Err(format!("it is {end:?} after {} steps, with the notice {:?}", self.steps.len(), self.notice)),
        }
    }
}

impl Step {
    /// Whole: what the model said, and one result for each call, in order.
    fn check(&self, place: Place) -> Result<(), String> {
        let said = place.said();
        if self.assistant["content"] != said.content() {
            return Err(format!("stored is {}, said was {}", self.assistant["content"], said.content()));
        }
        let results = self.results.as_ref().map(results_of).unwrap_or_default();
        if results.len() != said.calls.len() {
            return Err(format!("{} calls have {} results", said.calls.len(), results.len()));
        }
        for (call, result) in said.calls.iter().zip(results) {
            if call.id != result.call_id || result.is_error || !result.text.contains(&call.result) {
                return Err(format!("{} {} was to give {:?} and has {result:?}", call.name, call.id, call.result));
            }
        }
        Ok(())
    }
}

/// A result in either of the two forms: of the session's JSON, and of the stream.
#[derive(PartialEq, Eq, Debug)]
pub struct ShownResult {
    call_id: String,
    text: String,
    is_error: bool,
}

/// The results in a message.
pub fn results_of(message: &Value) -> Vec<ShownResult> {
    let blocks = message["content"].as_array().into_iter().flatten();
    let shown = |block: &Value| ShownResult {
        call_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
        text: match &block["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
        },
        is_error: block["is_error"] == true,
    };
    blocks.map(shown).collect()
}

fn read_ends(shown: &Value) -> Result<HashMap<String, TurnEnd>, String> {
    let turns = shown["turns"].as_array().ok_or("no turns are shown")?;
    let mut ends = HashMap::new();
    for turn in turns {
        let id = turn["turn_id"].as_str().ok_or("a turn without an id")?;
        let end = match (turn["end"].as_str(), turn["stop_reason"].as_str(), turn["reason"].as_str()) {
            (None, None, None) => TurnEnd::Open,
            (Some("completed"), Some("end_turn"), None) => TurnEnd::Completed,
            (Some("interrupted"), None, Some(reason)) if reason.contains("unknown") => TurnEnd::Interrupted,
            _ => return Err(format!("a turn ended as it cannot have: {turn}")),
        };
        if ends.insert(id.to_owned(), end).is_some() {
            return Err(format!("turn {id} is listed twice"));
        }
    }
    Ok(ends)
}
