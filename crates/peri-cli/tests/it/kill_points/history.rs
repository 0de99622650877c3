//! What is stored, held against what was acknowledged and against what the model was told.
//!
//! Owns: the meaning of "there, once, in order, and whole". Faults are words, so that the caller can add the seed and the
//! run. Invariant: nothing is taken for granted that a killed process did not say, and nothing is let off that it did.

use std::collections::HashMap;

use peri_testkit::model_server::CapturedRequest;
use peri_testkit::wire_invariants;
use serde_json::Value;

use super::scripted::{self, Place, STEPS};

/// How our words to the model begin.
const PERI_SAYS: &str = "[peri] ";

/// A session as `peri sessions show` gives it.
#[derive(Clone)]
pub struct History {
    messages: Vec<Value>,
    turns: Vec<Turn>,
}

/// A turn of it.
#[derive(Clone)]
struct Turn {
    id: String,
    run: usize,
    steps: Vec<Step>,
    notice: Option<String>,
    end: TurnEnd,
}

/// An answer, and the results of its calls.
#[derive(Clone)]
struct Step {
    assistant: Value,
    results: Option<Value>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum TurnEnd {
    Open,
    Completed,
    Interrupted,
}

/// What a run printed before it ended: every whole line of it is an acknowledgement.
pub struct Printed {
    pub run: usize,
    session_opened: bool,
    told_of_an_interruption: bool,
    assistants: Vec<Value>,
    results: Vec<Value>,
    /// The turn was said to be done.
    pub finished: bool,
}

impl Printed {
    /// Reads standard output; a last line that was cut off says nothing.
    ///
    /// # Errors
    /// Words for a line that is not of the format.
    pub fn read(run: usize, stdout: &str) -> Result<Printed, String> {
        let mut printed = Printed {
            run,
            session_opened: false,
            told_of_an_interruption: false,
            assistants: Vec::new(),
            results: Vec::new(),
            finished: false,
        };
        for line in stdout.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let mut line: Value =
                serde_json::from_str(line).map_err(|error| format!("a line is not JSON ({error}): {line}"))?;
            match (line["type"].as_str(), line["subtype"].as_str()) {
                (Some("system"), Some("init")) => printed.session_opened = true,
                (Some("system"), Some("notice")) if line["kind"] == "interrupted" => {
                    printed.told_of_an_interruption = true;
                }
                (Some("assistant"), _) => printed.assistants.push(line["message"].take()),
                (Some("user"), _) => printed.results.push(line["message"].take()),
                (Some("result"), Some("success")) => printed.finished = true,
                _ => return Err(format!("an unexpected line: {line}")),
            }
        }
        Ok(printed)
    }

    fn acknowledges_something(&self) -> bool {
        self.session_opened
    }
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

    /// Turns that ended in each way: completed, interrupted.
    pub fn ended(&self) -> (usize, usize) {
        let count = |end| self.turns.iter().filter(|turn| turn.end == end).count();
        (count(TurnEnd::Completed), count(TurnEnd::Interrupted))
    }

    /// Steps of the run that are stored; None where not even its input is.
    pub fn committed_steps(&self, run: usize) -> Option<usize> {
        self.turn(run).map(|turn| turn.steps.len())
    }

    fn turn(&self, run: usize) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.run == run)
    }

    fn has_open_turn(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.end == TurnEnd::Open)
    }

    fn check(&self, ends: usize) -> Result<(), String> {
        if ends != self.turns.len() {
            return Err(format!("{ends} turns are listed, and {} have messages", self.turns.len()));
        }
        // Ascending runs are turns in order, each there once.
        if !self.turns.is_sorted_by(|turn, next| turn.run < next.run) {
            let runs: Vec<usize> = self.turns.iter().map(|turn| turn.run).collect();
            return Err(format!("the turns are of the runs {runs:?}"));
        }
        let past = self.turns.split_last().map_or(&[][..], |(_, past)| past);
        if let Some(turn) = past.iter().find(|turn| turn.end == TurnEnd::Open) {
            return Err(format!("the turn of run {} was followed by another and has no end", turn.run));
        }
        self.turns.iter().try_for_each(|turn| turn.check().map_err(|fault| format!("the turn of run {}: {fault}", turn.run)))
    }

    /// Stored once is stored for good.
    fn check_extends(&self, earlier: &History) -> Result<(), String> {
        match self.messages.starts_with(&earlier.messages) {
            true => Ok(()),
            false => Err("messages that had been stored are gone or changed".to_owned()),
        }
    }

    /// Everything that the run printed is there.
    fn check_acknowledged(&self, printed: &Printed) -> Result<(), String> {
        let Some(turn) = self.turn(printed.run) else {
            return match printed.assistants.is_empty() && !printed.finished {
                true => Ok(()),
                false => Err("its steps were acknowledged, and its turn is not there".to_owned()),
            };
        };
        if printed.finished && turn.end != TurnEnd::Completed {
            return Err(format!("it was acknowledged whole, and its turn is {:?}", turn.end));
        }
        let mut results = printed.results.iter();
        for (index, assistant) in printed.assistants.iter().enumerate() {
            let stored = turn.steps.get(index).ok_or_else(|| format!("its step {index} was acknowledged and is gone"))?;
            if stored.assistant["id"] != assistant["id"] || stored.assistant["content"] != assistant["content"] {
                return Err(format!("its step {index} was acknowledged as {assistant}, stored is {}", stored.assistant));
            }
            if let (Some(stored), Some(results)) = (&stored.results, results.next())
                && results_of(stored) != results_of(results)
            {
                return Err(format!("the results of its step {index} were acknowledged as {results}, stored is {stored}"));
            }
        }
        match results.next() {
            Some(left_over) => Err(format!("results were acknowledged, and no answer before them: {left_over}")),
            None => Ok(()),
        }
    }

    /// The request shows the stored past, with every interruption, and what it asks is stored.
    fn check_request(&self, request: &CapturedRequest) -> Result<(), String> {
        let Place { run, step } = Place::of(request).ok_or("a request that asks for nothing")?;
        let turn = self.turn(run).ok_or_else(|| format!("run {run} asked the model, and its input is not stored"))?;
        let past = self.turns.iter().filter(|turn| turn.run < run);
        let notices = |turn: &Turn| turn.notice.as_ref().map(|notice| format!("{PERI_SAYS}{notice}"));
        let mut expected: Vec<String> =
            past.flat_map(|turn| std::iter::once(scripted::prompt(turn.run)).chain(notices(turn))).collect();
        expected.push(scripted::prompt(turn.run));
        let heard: Vec<&str> = request.messages().iter().flat_map(scripted::spoken).collect();
        if heard != expected {
            return Err(format!("at step {step} of run {run} the model heard {heard:?}, stored is {expected:?}"));
        }
        Ok(())
    }
}

impl Turn {
    fn begin(id: &str, message: &Value, ends: &HashMap<String, TurnEnd>) -> Result<Turn, String> {
        let words = message["content"][0]["text"].as_str().unwrap_or_default();
        let run = scripted::run_of(words).filter(|run| message["role"] == "user" && words == scripted::prompt(*run));
        let run = run.ok_or_else(|| format!("a turn begins with {message}"))?;
        let end = ends.get(id).cloned().ok_or_else(|| format!("the turn of run {run} is not listed"))?;
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
        let says_so = self.notice.as_ref().is_some_and(|notice| notice.contains("interrupted") && notice.contains("unknown"));
        match &self.end {
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
struct ShownResult {
    call_id: String,
    text: String,
    is_error: bool,
}

fn results_of(message: &Value) -> Vec<ShownResult> {
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

/// Everything that is known of a session from outside.
#[derive(Default)]
pub struct Witness {
    pub printed: Vec<Printed>,
    /// As it was after the run before.
    history: Option<History>,
}

impl Witness {
    pub fn is_stored(&self) -> bool {
        self.history.is_some()
    }

    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// Holds what is stored now against everything that was said before, by the newest run too.
    ///
    /// # Errors
    /// Words for what was acknowledged and is not there, and for what the model was not told.
    pub fn check(&mut self, shown: Option<&Value>, requests: &[CapturedRequest]) -> Result<(), String> {
        let history = shown.map(History::read).transpose()?;
        match &history {
            Some(history) => self.check_stored(history, requests)?,
            None if self.is_stored() || self.printed.iter().any(Printed::acknowledges_something) => {
                return Err("the session was there, and is gone".to_owned());
            }
            None if !requests.is_empty() => return Err("the model was asked before the session was stored".to_owned()),
            None => {}
        }
        self.history = history;
        Ok(())
    }

    fn check_stored(&self, history: &History, requests: &[CapturedRequest]) -> Result<(), String> {
        if let Some(earlier) = &self.history {
            history.check_extends(earlier)?;
        }
        for printed in &self.printed {
            history.check_acknowledged(printed).map_err(|fault| format!("run {}: {fault}", printed.run))?;
        }
        let was_open = self.history.as_ref().is_some_and(History::has_open_turn);
        if let Some(newest) = self.printed.last().filter(|newest| newest.finished && was_open)
            && !newest.told_of_an_interruption
        {
            return Err(format!("run {} went on after an interrupted turn and did not say so", newest.run));
        }
        requests.iter().try_for_each(|request| history.check_request(request))?;
        let bodies: Vec<Value> = requests.iter().map(|request| request.json.clone()).collect();
        wire_invariants::find_fault(&bodies)
    }
}
