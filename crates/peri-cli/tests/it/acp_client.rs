//! An ACP client of the real binary, over pipes.
//!
//! Invariant: each line that the binary writes to standard output is looked at, and is a JSON-RPC 2.0 message.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::ChildStdin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Finished, Invocation, Running};

const PATIENCE: Duration = Duration::from_secs(90);

/// A client of a binary that runs.
pub struct Client<'a> {
    pub running: Running<'a>,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    /// Everything that was heard and was no answer.
    pub heard: Vec<Value>,
    /// The kind of the option that is chosen whenever permission is asked for.
    pub permission: &'static str,
    last_id: u64,
}

impl<'a> Client<'a> {
    /// Starts the binary; nothing has been said yet.
    pub fn start(invocation: Invocation<'a>) -> Client<'a> {
        let mut running = invocation.stdout_stuck().start();
        let stdin = running.child.stdin.take();
        let stdout = running.unread.take().expect("a pipe");
        // Bounded: a client that takes no message leaves the pipe full.
        let (tx, lines) = mpsc::sync_channel(1);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if tx.send(line.expect("lines are UTF-8")).is_err() {
                    break;
                }
            }
        });
        Client { running, stdin, lines, heard: Vec::new(), permission: "allow_once", last_id: 0 }
    }

    /// Starts the binary and initialises it.
    pub fn initialized(invocation: Invocation<'a>) -> Client<'a> {
        let mut client = Client::start(invocation);
        let answer = client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        client
    }

    /// Opens a session; gives its id.
    pub fn new_session(&mut self, cwd: &str) -> String {
        let answer = self.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("a session: {answer}")).to_owned()
    }

    /// Sends a prompt and waits for its answer.
    pub fn prompt(&mut self, session: &str, text: &str) -> Value {
        let id = self.send_prompt(session, text);
        self.answer(&json!(id))
    }

    pub fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(&json!(id))
    }

    /// Sends a request; gives its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
        id
    }

    /// Sends a line as it is.
    pub fn write(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(&[line, b"\n"].concat()).expect("the binary reads");
        stdin.flush().expect("the binary reads");
    }

    /// The next answer to that id. What comes before it is heard, and requests for permission are answered.
    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next().expect("the binary answers before it ends");
            if message.get("method").is_none() && message["id"] == *id {
                return message;
            }
            self.hear(message);
        }
    }

    fn hear(&mut self, message: Value) {
        if message["method"] == "session/request_permission" {
            let options = message["params"]["options"].as_array().expect("options");
            let chosen = options.iter().find(|option| option["kind"] == self.permission).expect("the option is there");
            let outcome = json!({"outcome": "selected", "optionId": chosen["optionId"]});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}});
            self.write(answer.to_string().as_bytes());
        }
        self.heard.push(message);
    }

    /// The text of the answers that were heard.
    pub fn text(&self) -> String {
        let updates = self.heard.iter().map(|message| &message["params"]["update"]);
        let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// The next message, or None at the end of the output.
    fn next(&mut self) -> Option<Value> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no message in {PATIENCE:?}; heard {:#?}", self.heard),
        };
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON: {error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        let is_message = message.get("method").is_some() || message.get("id").is_some();
        assert!(is_message, "a request, a notification or an answer: {line}");
        Some(message)
    }

    /// Closes the binary's standard input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end and reads nothing more.
    pub fn finish_unread(self) -> Finished<'a> {
        self.running.finish()
    }

    /// Waits for its end; what is said until then is heard.
    pub fn finish(mut self) -> (Finished<'a>, Vec<Value>) {
        while let Some(message) = self.next() {
            self.heard.push(message);
        }
        (self.running.finish(), self.heard)
    }
}
