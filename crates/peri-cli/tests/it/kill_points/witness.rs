//! What is stored, held against everything that was acknowledged and against what the model was told.
//!
//! Invariant: nothing is taken for granted that a killed process did not say, and nothing is let off that it did.

use peri_testkit::model_server::CapturedRequest;
use peri_testkit::wire_invariants;
use serde_json::Value;

use super::history::{History, Turn, TurnEnd, results_of};
use super::printed::Printed;
use super::scripted::{self, Place};

/// How our words to the model begin.
const PERI_SAYS: &str = "[peri] ";

/// Everything that is known of a session from outside.
#[derive(Default)]
pub struct Witness {
    pub printed: Vec<Printed>,
    /// As it was after the run before the newest.
    history: Option<History>,
}

impl Witness {
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
            None if self.history.is_some() || self.printed.iter().any(|printed| printed.session_opened) => {
                return Err("the session was there, and is gone".to_owned());
            }
            None if !requests.is_empty() => return Err("the model was asked before the session was stored".to_owned()),
            None => {}
        }
        self.history = history;
        Ok(())
    }

    fn check_stored(&self, history: &History, requests: &[CapturedRequest]) -> Result<(), String> {
        if self.history.as_ref().is_some_and(|earlier| !history.messages.starts_with(&earlier.messages)) {
            return Err("messages that had been stored are gone or changed".to_owned());
        }
        for printed in &self.printed {
            check_acknowledged(history, printed).map_err(|fault| format!("run {}: {fault}", printed.run))?;
        }
        let was_open = self.history.as_ref().is_some_and(History::has_open_turn);
        if let Some(newest) = self.printed.last().filter(|newest| newest.finished && was_open)
            && !newest.told_of_an_interruption
        {
            return Err(format!("run {} went on after an interrupted turn and did not say so", newest.run));
        }
        requests.iter().try_for_each(|request| check_request(history, request))?;
        let bodies: Vec<Value> = requests.iter().map(|request| request.json.clone()).collect();
        wire_invariants::find_fault(&bodies)
    }
}

/// Everything that the run printed is there.
fn check_acknowledged(history: &History, printed: &Printed) -> Result<(), String> {
    let Some(turn) = history.turn(printed.run) else {
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
        if let Some(stored) = &stored.results
            && let Some(results) = results.next()
            && results_of(stored) != results_of(results)
        {
            return Err(format!("its results {index} were acknowledged as {results}, stored are {stored}"));
        }
    }
    match results.next() {
        Some(more) => Err(format!("results were acknowledged without their calls: {more}")),
        None => Ok(()),
    }
}

/// The input is stored, and the model was shown the stored past, with every interruption.
fn check_request(history: &History, request: &CapturedRequest) -> Result<(), String> {
    let Place { run, step } = Place::of(request).ok_or("a request that asks for nothing")?;
    let turn = history.turn(run).ok_or_else(|| format!("run {run} asked the model, and its input is not stored"))?;
    let in_words = |turn: &Turn| {
        let notice = turn.notice.as_ref().map(|notice| format!("{PERI_SAYS}{notice}"));
        std::iter::once(scripted::prompt(turn.run)).chain(notice)
    };
    let past = history.turns.iter().filter(|turn| turn.run < run);
    // What became of its own turn came later.
    let expected: Vec<String> = past.flat_map(in_words).chain([scripted::prompt(turn.run)]).collect();
    let heard: Vec<&str> = request.messages().iter().flat_map(scripted::spoken).collect();
    match heard == expected {
        true => Ok(()),
        false => Err(format!("at step {step} of run {run} the model heard {heard:?}, stored is {expected:?}")),
    }
}
