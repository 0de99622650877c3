//! A client that a test drives: plain JSON-RPC over any pair of a sink and a stream of messages.
//!
//! It shares no code with the agent's side, so that it sees what is on the wire and nothing else. Nothing runs in the
//! background: messages are read while the test waits for one. Invariant: every message is kept, in the order in which it
//! was sent or read, and a test that waits in vain fails with all of them.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures::{Sink, SinkExt, Stream, StreamExt};
use serde_json::{Map, Value, json};

/// How long a message may take. Generous: it only ever passes where a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A scripted ACP client.
pub struct AcpDriver {
    /// None once the client has stopped sending.
    outgoing: Option<Pin<Box<dyn Sink<Value, Error = String> + Send>>>,
    incoming: Pin<Box<dyn Stream<Item = Value> + Send>>,
    frames: Vec<Frame>,
    next_id: u64,
    /// The session that was opened last.
    session: Option<String>,
    permissions: VecDeque<Permission>,
    forms: VecDeque<FormAnswer>,
}

/// A message on the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct Frame {
    pub direction: Direction,
    pub message: Value,
}

/// Whose message it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Sent,
    Received,
}

/// A request that was sent and whose answer was not awaited yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    id: u64,
    /// Frames from here on belong to it.
    from: usize,
}

/// What the client does when it is asked for permission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Chooses the first option of that kind: `allow_once`, `allow_always`, `reject_once`, `reject_always`.
    Choose(&'static str),
    /// Chooses this id, offered or not.
    ChooseId(&'static str),
    /// Says that the turn was cancelled.
    Cancelled,
    /// Answers with a JSON-RPC error.
    Fail,
    /// Never answers.
    Silence,
}

/// What the client does when it is to show a form.
#[derive(Clone, PartialEq, Debug)]
pub enum FormAnswer {
    /// The fields that were filled in.
    Accept(Value),
    Decline,
    /// Never answers.
    Silence,
}

/// An error that came as an answer.
#[derive(Clone, PartialEq, Debug)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

/// A prompt and everything of its session that came until it was answered.
#[derive(Clone, PartialEq, Debug)]
pub struct Prompted {
    /// The `update` of each `session/update`.
    pub updates: Vec<Value>,
    /// The params of each `_peri/event`.
    pub events: Vec<Value>,
    pub answer: Result<Value, RpcError>,
}

impl Prompted {
    /// The stop reason.
    ///
    /// # Panics
    /// Where the prompt failed.
    #[track_caller]
    pub fn stop_reason(&self) -> &str {
        match &self.answer {
            Ok(answer) => answer["stopReason"].as_str().unwrap_or_default(),
            Err(error) => panic!("the prompt failed: {error:?}"),
        }
    }

    /// The error.
    ///
    /// # Panics
    /// Where there is none.
    #[track_caller]
    pub fn error(&self) -> &RpcError {
        match &self.answer {
            Ok(answer) => panic!("the prompt did not fail: {answer}"),
            Err(error) => error,
        }
    }

    /// All text of the agent's messages, joined.
    pub fn text(&self) -> String {
        let chunks = self.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// The kinds of the updates, in order.
    pub fn kinds(&self) -> Vec<&str> {
        self.updates.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect()
    }

    /// The types of the extension events, in order.
    pub fn event_types(&self) -> Vec<&str> {
        self.events.iter().filter_map(|event| event["type"].as_str()).collect()
    }
}

impl AcpDriver {
    /// A client over these two halves.
    pub fn new<S>(outgoing: S, incoming: impl Stream<Item = Value> + Send + 'static) -> AcpDriver
    where
        S: Sink<Value> + Send + 'static,
        S::Error: fmt::Display,
    {
        AcpDriver {
            outgoing: Some(Box::pin(outgoing.sink_map_err(|error| error.to_string()))),
            incoming: Box::pin(incoming),
            frames: Vec::new(),
            next_id: 1,
            session: None,
            permissions: VecDeque::new(),
            forms: VecDeque::new(),
        }
    }

    /// Initializes as a plain ACP client. Returns the answer.
    pub async fn initialize(&mut self) -> Value {
        self.initialize_with(json!({})).await
    }

    /// Initializes as a client that takes Peri's events.
    pub async fn initialize_with_events(&mut self) -> Value {
        self.initialize_with(json!({"_meta": {"peri": {"events": 1}}})).await
    }

    /// Initializes with more params than the protocol version.
    pub async fn initialize_with(&mut self, more: Value) -> Value {
        let mut params = object(more);
        params.insert("protocolVersion".to_owned(), json!(1));
        self.must("initialize", Value::Object(params)).await
    }

    /// Opens a new session, which is the current one from then on. Returns its id.
    pub async fn new_session(&mut self, cwd: &str) -> String {
        let answer = self.must("session/new", json!({"cwd": cwd, "mcpServers": []})).await;
        let id = answer["sessionId"].as_str().unwrap_or_default().to_owned();
        self.session = Some(id.clone());
        id
    }

    /// Makes a session the current one.
    pub fn use_session(&mut self, id: &str) {
        self.session = Some(id.to_owned());
    }

    /// Prompts the current session with a text and waits for the answer.
    pub async fn prompt(&mut self, text: &str) -> Prompted {
        let pending = self.start_prompt(text).await;
        self.finish(pending).await
    }

    /// Prompts the current session and does not wait.
    pub async fn start_prompt(&mut self, text: &str) -> Pending {
        let session = self.current();
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.start("session/prompt", params).await
    }

    /// Waits for a prompt's answer.
    pub async fn finish(&mut self, pending: Pending) -> Prompted {
        let answer = self.answer(pending).await;
        let session = self.session_of(pending);
        let until = self.position_of_answer(pending.id).unwrap_or(self.frames.len());
        let told: Vec<&Value> =
            self.frames.get(pending.from..until).unwrap_or_default().iter().map(|frame| &frame.message).collect();
        let of_session = |method: &str| -> Vec<Value> {
            told.iter()
                .filter(|message| message["method"] == method && message["params"]["sessionId"] == session)
                .map(|message| message["params"].clone())
                .collect()
        };
        let updates = of_session("session/update").into_iter().map(|params| params["update"].clone()).collect();
        Prompted { updates, events: of_session("_peri/event"), answer }
    }

    /// Cancels the current session's turn.
    pub async fn cancel(&mut self) {
        let session = self.current();
        self.notify("session/cancel", json!({"sessionId": session})).await;
    }

    /// Withdraws a request.
    pub async fn withdraw(&mut self, pending: Pending) {
        self.notify("$/cancel_request", json!({"requestId": pending.id})).await;
    }

    /// Adds to the script of answers to permission requests. One that is not scripted fails the test.
    pub fn on_permission(&mut self, answers: impl IntoIterator<Item = Permission>) {
        self.permissions.extend(answers);
    }

    /// The same for forms.
    pub fn on_form(&mut self, answers: impl IntoIterator<Item = FormAnswer>) {
        self.forms.extend(answers);
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        let pending = self.start(method, params).await;
        self.answer(pending).await
    }

    /// The same, where only success will do.
    ///
    /// # Panics
    /// Where the answer is an error.
    pub async fn must(&mut self, method: &str, params: Value) -> Value {
        match self.request(method, params).await {
            Ok(answer) => answer,
            Err(error) => self.fail(&format!("{method} failed: {error:?}")),
        }
    }

    /// Sends a request and does not wait.
    pub async fn start(&mut self, method: &str, params: Value) -> Pending {
        let pending = Pending { id: self.next_id, from: self.frames.len() };
        self.next_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": pending.id, "method": method, "params": params})).await;
        pending
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Waits for the answer to a request.
    pub async fn answer(&mut self, pending: Pending) -> Result<Value, RpcError> {
        let position = loop {
            match self.position_of_answer(pending.id) {
                Some(position) => break position,
                None => self.read(&format!("the answer to request {}", pending.id)).await,
            }
        };
        let message = self.frames.get(position).map(|frame| frame.message.clone()).unwrap_or_default();
        match message.get("error") {
            None => Ok(message["result"].clone()),
            Some(error) => Err(RpcError {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].clone(),
            }),
        }
    }

    /// Waits for a message of the agent that fits, among those of the past too.
    pub async fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut seen = 0;
        loop {
            let found = self
                .frames
                .iter()
                .skip(seen)
                .find(|frame| frame.direction == Direction::Received && fits(&frame.message));
            if let Some(frame) = found {
                return frame.message.clone();
            }
            seen = self.frames.len();
            self.read(what).await;
        }
    }

    /// Sends a message as it is.
    pub async fn send(&mut self, message: Value) {
        self.frames.push(Frame { direction: Direction::Sent, message: message.clone() });
        let Some(outgoing) = self.outgoing.as_mut() else { self.fail("the client has stopped sending") };
        if let Err(error) = outgoing.send(message).await {
            self.fail(&format!("nothing can be sent: {error}"));
        }
    }

    /// Stops sending, as a client does that closes its end. What the agent still says can be read.
    pub fn stop_sending(&mut self) {
        self.outgoing = None;
    }

    /// Reads what the agent still says, to its end.
    pub async fn read_to_end(&mut self) {
        while self.read_if_any("the end").await {}
    }

    /// Every message so far.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    async fn read(&mut self, what: &str) {
        if !self.read_if_any(what).await {
            self.fail(&format!("the agent closed its end while the test waited for {what}"));
        }
    }

    async fn read_if_any(&mut self, what: &str) -> bool {
        match tokio::time::timeout(PATIENCE, self.incoming.next()).await {
            Err(_) => self.fail(&format!("nothing came while the test waited for {what}")),
            Ok(None) => false,
            Ok(Some(message)) => {
                self.frames.push(Frame { direction: Direction::Received, message: message.clone() });
                match message["method"].as_str() {
                    Some("session/request_permission") => self.answer_permission(&message).await,
                    Some("elicitation/create") => self.answer_form(&message).await,
                    _ => {}
                }
                true
            }
        }
    }

    async fn answer_permission(&mut self, request: &Value) {
        let selected = |id: &Value| json!({"outcome": {"outcome": "selected", "optionId": id}});
        let options = request["params"]["options"].as_array().cloned().unwrap_or_default();
        let result = match self.permissions.pop_front() {
            None => self.fail("permission was asked for, and the test has no answer"),
            Some(Permission::Silence) => return,
            Some(Permission::Fail) => {
                let error = json!({"code": -32603, "message": "the client cannot ask"});
                return self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
            }
            Some(Permission::Cancelled) => json!({"outcome": {"outcome": "cancelled"}}),
            Some(Permission::ChooseId(id)) => selected(&json!(id)),
            Some(Permission::Choose(kind)) => match options.iter().find(|option| option["kind"] == kind) {
                Some(option) => selected(&option["optionId"]),
                None => self.fail(&format!("no option of kind {kind} is offered")),
            },
        };
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn answer_form(&mut self, request: &Value) {
        let result = match self.forms.pop_front() {
            None => self.fail("a form came, and the test has no answer"),
            Some(FormAnswer::Silence) => return,
            Some(FormAnswer::Accept(content)) => json!({"action": "accept", "content": content}),
            Some(FormAnswer::Decline) => json!({"action": "decline"}),
        };
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    fn position_of_answer(&self, id: u64) -> Option<usize> {
        self.frames.iter().position(|frame| {
            let message = &frame.message;
            frame.direction == Direction::Received && message["id"] == id && message.get("method").is_none()
        })
    }

    /// The session that a request named.
    fn session_of(&self, pending: Pending) -> Value {
        let sent = self.frames.get(pending.from).map(|frame| &frame.message);
        sent.map(|message| message["params"]["sessionId"].clone()).unwrap_or_default()
    }

    fn current(&self) -> String {
        self.session.clone().unwrap_or_else(|| self.fail("no session was opened"))
    }

    fn fail(&self, why: &str) -> ! {
        let told: Vec<String> =
            self.frames.iter().map(|frame| format!("{:?} {}", frame.direction, frame.message)).collect();
        panic!("{why}\n{}", told.join("\n"))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
