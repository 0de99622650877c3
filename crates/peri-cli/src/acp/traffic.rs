//! What goes over the wire, a line of words for each message: `--verbose`.
//!
//! Owns: which parts of a message are told: its method, its id, its size, an error's text. Must not: tell contents, which
//! are the user's, or hold a message up: what nobody takes in time is counted and left out.

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

/// Lines that wait to be written; more are left out.
const WAITING_LINES: usize = 1024;
/// The largest message that is looked into.
const LARGEST_READ: usize = 1 << 20;

/// Sees the bytes of one direction go by.
pub struct Tap {
    direction: Direction,
    /// The message under way, up to the largest that is looked into.
    line: Vec<u8>,
    /// All of its bytes.
    length: usize,
    left_out: u64,
    lines: mpsc::Sender<String>,
}

#[derive(Clone, Copy)]
enum Direction {
    FromClient,
    ToClient,
}

/// A tap on what comes from the client, one on what goes to it, and the lines that they tell.
pub fn taps() -> (Tap, Tap, mpsc::Receiver<String>) {
    let (tx, rx) = mpsc::channel(WAITING_LINES);
    let tap = |direction| Tap { direction, line: Vec::new(), length: 0, left_out: 0, lines: tx.clone() };
    (tap(Direction::FromClient), tap(Direction::ToClient), rx)
}

impl Tap {
    pub fn passed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LARGEST_READ.saturating_sub(self.line.len());
            self.line.extend_from_slice(piece.get(..room).unwrap_or(piece));
            self.length += piece.len();
            if piece.ends_with(b"\n") {
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        let arrow = match self.direction {
            Direction::FromClient => "client →",
            Direction::ToClient => "client ←",
        };
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!(" ({count} lines of this log were left out before)"),
        };
        let words = describe(&self.line, self.length);
        match self.lines.try_send(format!("{arrow} {words}, {} bytes{left_out}", self.length)) {
            Ok(()) => self.left_out = 0,
            Err(_) => self.left_out += 1,
        }
        self.line.clear();
        self.length = 0;
    }
}

#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    message: String,
}

fn describe(line: &[u8], length: usize) -> String {
    if length > line.len() {
        return "a long message".to_owned();
    }
    let Ok(message) = serde_json::from_slice::<Message>(line) else { return "no message of JSON-RPC".to_owned() };
    let id = message.id.map(|id| format!(" {id}")).unwrap_or_default();
    match (message.method, message.error) {
        (Some(method), _) => format!("{method}{id}"),
        (None, Some(error)) => format!("error{id}: {} ({})", error.message, error.code),
        (None, None) if !id.is_empty() => format!("result{id}"),
        (None, None) => "no message of JSON-RPC".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_without_its_contents() {
        let check = |line: &str, expect: &str| {
            let (mut tap, _, mut lines) = taps();
            let (start, end) = line.split_at(line.len() / 2);
            tap.passed(start.as_bytes());
            tap.passed(format!("{end}\n").as_bytes());
            assert_eq!(lines.try_recv().expect("a line"), format!("client → {expect}, {} bytes", line.len() + 1));
        };
        check(r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"secret":1}}"#, "session/prompt 3");
        check(r#"{"jsonrpc":"2.0","method":"session/cancel"}"#, "session/cancel");
        check(r#"{"jsonrpc":"2.0","id":"a","result":{"x":1}}"#, r#"result "a""#);
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#, "error 1: no (-32602)");
        check("hello", "no message of JSON-RPC");
        check(&format!("\"{}\"", "x".repeat(LARGEST_READ)), "a long message");
    }

    #[test]
    fn a_log_that_nobody_takes_holds_nothing_up() {
        let (mut tap, _, mut lines) = taps();
        for _ in 0..WAITING_LINES + 5 {
            tap.passed(b"{}\n");
        }
        while lines.try_recv().is_ok() {}
        tap.passed(b"{}\n");
        assert!(lines.try_recv().expect("a line").contains("5 lines"));
    }
}
