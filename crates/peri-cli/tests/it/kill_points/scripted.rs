//! The model's side: what it says to each run at each step, and how slowly.
//!
//! Invariants: an answer depends on the conversation alone, so that it does not matter how often a request is sent; no
//! text and no call id occurs twice in a session.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use peri_testkit::gate::Gate;
use peri_testkit::model_server::{Answer, CapturedRequest, FakeModelServer, Reply, Rest, Script};
use serde_json::{Value, json};

/// Requests of a whole turn.
pub const STEPS: usize = 4;
/// Lines of stream-json of a whole turn that does not follow an interrupted one: the beginning, the steps but the last with
/// their results, the last, the result.
pub const LINES: usize = 2 * STEPS + 1;
/// Before the head of an answer and again in the middle of its body, so that there is time to die in.
const PAUSE: Duration = Duration::from_millis(15);

/// What a run asks.
pub fn prompt(run: usize) -> String {
    format!("Run {run}: write it down, change it, look at it. 走 🦀")
}

/// The run that asks so.
pub fn run_of(prompt: &str) -> Option<usize> {
    prompt.strip_prefix("Run ")?.split_once(':')?.0.parse().ok()
}

/// A step of a run: the answer to its request of that number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub run: usize,
    pub step: usize,
}

/// What the model says at a place.
pub struct Said {
    pub text: String,
    pub calls: Vec<Call>,
}

/// A tool call, and what its result must say.
pub struct Call {
    pub id: String,
    pub name: &'static str,
    pub input: Value,
    pub result: String,
}

impl Place {
    /// Where the conversation has come to.
    pub fn of(request: &CapturedRequest) -> Option<Place> {
        let messages = request.messages();
        let run_at = |message: &Value| spoken(message).into_iter().find_map(run_of);
        let (asked_at, run) =
            messages.iter().enumerate().rev().find_map(|(index, message)| Some((index, run_at(message)?)))?;
        let step = messages[asked_at..].iter().filter(|message| message["role"] == "assistant").count();
        Some(Place { run, step })
    }

    pub fn said(self) -> Said {
        let Place { run, step } = self;
        let file = format!("run-{run}.txt");
        let calls = match step {
            0 => vec![("Write", json!({"file_path": file, "content": written(run)}), format!("Created {file}"))],
            1 => vec![
                (
                    "Edit",
                    json!({"file_path": file, "old_string": "written", "new_string": "changed"}),
                    format!("Edited {file}"),
                ),
                ("Bash", json!({"command": command(run)}), "begun\nended".to_owned()),
            ],
            2 => vec![
                ("Read", json!({"file_path": file}), changed(run).trim_end().to_owned()),
                ("Glob", json!({"pattern": format!("run-{run}.*")}), file.clone()),
            ],
            _ => Vec::new(),
        };
        let calls = calls.into_iter().enumerate().map(|(index, (name, input, result))| {
            let id = format!("toolu_{run}_{step}_{index}");
            Call { id, name, input, result }
        });
        Said { text: format!("Run {run} has come to step {step}. 走 🦀"), calls: calls.collect() }
    }
}

impl Said {
    /// As the content of a message.
    pub fn content(&self) -> Value {
        let calls = self.calls.iter();
        let calls =
            calls.map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}));
        std::iter::once(json!({"type": "text", "text": self.text})).chain(calls).collect()
    }

    fn answer(&self) -> Answer {
        let pieces: Vec<&str> = self.text.split_inclusive(' ').collect();
        let answer = Answer::new().text_deltas(pieces);
        self.calls.iter().fold(answer, |answer, call| answer.tool_use(&call.id, call.name, &call.input))
    }
}

fn written(run: usize) -> String {
    format!("written by run {run}\n")
}

fn changed(run: usize) -> String {
    format!("changed by run {run}\n")
}

/// Takes a little time, and leaves a daemon behind: in its own session, without a parent, without our pipes.
fn command(run: usize) -> String {
    format!(
        "echo begun >> effects-{run}; (setsid sleep 300 > /dev/null 2>&1 < /dev/null &); sleep 0.05; \
         echo ended >> effects-{run}; cat effects-{run}"
    )
}

/// What the files of a run hold after so many committed steps, and perhaps the effects of the next one.
///
/// # Errors
/// Words for a file that is half written, changed twice, or lacks what a committed step did to it.
pub fn check_files(folder: &Path, run: usize, committed_steps: usize) -> Result<(), String> {
    let effects = ["", "begun\n", "begun\nended\n"].map(str::to_owned);
    let texts = [String::new(), written(run), changed(run)];
    for (name, states, least) in [
        (format!("run-{run}.txt"), texts, committed_steps.min(2)),
        (format!("effects-{run}"), effects, if committed_steps >= 2 { 2 } else { 0 }),
    ] {
        let content = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        match states.iter().position(|state| *state == content) {
            Some(state) if state >= least => {}
            _ => return Err(format!("{name} holds {content:?} after {committed_steps} committed steps")),
        }
    }
    Ok(())
}

/// The texts of a message that are not the model's and no results.
pub fn spoken(message: &Value) -> Vec<&str> {
    let blocks = message["content"].as_array().filter(|_| message["role"] == "user");
    blocks
        .into_iter()
        .flatten()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect()
}

/// The endpoint of one session.
pub struct Endpoint {
    server: FakeModelServer,
    /// Answers whose last piece was let go.
    sent: Arc<Mutex<Vec<Place>>>,
}

/// How far a run has come, seen from the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub requests: usize,
    pub answers_sent: usize,
}

impl Endpoint {
    pub fn start() -> Endpoint {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&sent);
        let script = Script::computed(move |request| match Place::of(request) {
            Some(place) => slow_reply(place, Arc::clone(&noted)),
            None => Reply::status(400).error_body("invalid_request_error", "nobody asked for anything"),
        });
        Endpoint { server: FakeModelServer::start(script), sent }
    }

    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    pub fn requests(&self) -> Vec<CapturedRequest> {
        self.server.requests()
    }

    pub fn progress(&self, run: usize) -> Progress {
        let requests = self.requests();
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        Progress {
            requests: requests.iter().filter_map(Place::of).filter(|place| place.run == run).count(),
            answers_sent: sent.iter().filter(|place| place.run == run).count(),
        }
    }
}

fn slow_reply(place: Place, sent: Arc<Mutex<Vec<Place>>>) -> Reply {
    let (head, rest) = (Gate::shut(), Gate::shut());
    let reply = Reply::from(place.said().answer());
    let half = reply.body_bytes() / 2;
    let reply = reply.before_head(&head).after(half, Rest::Stall(rest.clone()));
    // It ends by itself; a client that is dead by then finds no answer, as it should.
    thread::spawn(move || {
        thread::sleep(PAUSE);
        head.open();
        thread::sleep(PAUSE);
        sent.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        rest.open();
    });
    reply
}
