//! JSON-RPC by lines: one message a line, in both directions.
//!
//! Invariants: what a server writes is held up to a bound, however long its line is; a line that is no message is passed
//! on as a JSON string, which no message is, so that the client can count and name it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::channel::mpsc;
use futures::io::{AsyncRead, AsyncWrite};
use futures::{AsyncReadExt, SinkExt, Stream};
use serde_json::Value;

use super::super::link::Outstanding;
use super::super::redaction::Redaction;

/// The longest message of a server, in bytes.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Bytes of messages that may wait for a server to read them.
pub(super) const MAX_WAITING: usize = 64 * 1024 * 1024;
/// What is kept of a line that is no message, in bytes.
const MAX_RUBBISH: usize = 200;
const CHUNK: usize = 64 * 1024;

/// Why no more is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ReadEnd {
    /// The server's output has ended, or cannot be read.
    Closed,
    /// A message is longer than [`MAX_MESSAGE`].
    TooLong,
    /// Nobody takes the messages any more.
    ClientLeft,
}

/// Why no more is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WriteEnd {
    /// The client has closed its end.
    ClientLeft,
    /// The server's input is closed.
    Closed,
    /// More than [`MAX_WAITING`] bytes wait.
    Deaf,
}

/// Passes the server's messages on, until one side ends.
pub(super) async fn read_messages(
    output: impl AsyncRead + Unpin,
    redaction: &Redaction,
    mut client: mpsc::Sender<Value>,
    outstanding: &Mutex<Outstanding>,
) -> ReadEnd {
    let mut lines = Lines::new(output);
    loop {
        let messages = match lines.next().await {
            Ok(Some(Line::Json(Value::Array(batch)))) => batch,
            Ok(Some(Line::Json(message))) => vec![message],
            Ok(Some(Line::Rubbish(beginning))) => vec![Value::String(redaction.beginning(&beginning))],
            Ok(None) => return ReadEnd::Closed,
            Err(TooLong) => return ReadEnd::TooLong,
        };
        for message in messages {
            outstanding.lock().unwrap_or_else(PoisonError::into_inner).received(&message);
            if client.send(message).await.is_err() {
                return ReadEnd::ClientLeft;
            }
        }
    }
}

/// One line of a server's.
#[derive(PartialEq, Debug)]
enum Line {
    Json(Value),
    /// Its beginning.
    Rubbish(String),
}

#[derive(PartialEq, Eq, Debug)]
struct TooLong;

struct Lines<R> {
    output: R,
    chunk: Vec<u8>,
    /// The part of `chunk` that is yet to be looked at.
    unread: std::ops::Range<usize>,
    /// The line so far; of one that is no message only the beginning.
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(output: R) -> Lines<R> {
        Lines { output, chunk: vec![0; CHUNK], unread: 0..0, line: Vec::new() }
    }

    /// The next line that is not blank; None at the end.
    async fn next(&mut self) -> Result<Option<Line>, TooLong> {
        loop {
            if self.unread.is_empty() {
                match self.output.read(&mut self.chunk).await {
                    Ok(read) if read > 0 => self.unread = 0..read,
                    // An output that cannot be read is one that has ended.
                    Ok(_) | Err(_) => return Ok(self.finish_line()),
                }
            }
            let unread = self.chunk.get(self.unread.clone()).unwrap_or_default();
            let newline = unread.iter().position(|byte| *byte == b'\n');
            let part = unread.get(..newline.unwrap_or(unread.len())).unwrap_or_default();
            extend_line(&mut self.line, part)?;
            self.unread.start += part.len() + usize::from(newline.is_some());
            if newline.is_some()
                && let Some(line) = self.finish_line()
            {
                return Ok(Some(line));
            }
        }
    }

    fn finish_line(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if text.is_empty() {
            return None;
        }
        match serde_json::from_slice(text) {
            Ok(message @ (Value::Object(_) | Value::Array(_))) => Some(Line::Json(message)),
            _ => {
                let beginning = text.get(..MAX_RUBBISH).unwrap_or(text);
                Some(Line::Rubbish(String::from_utf8_lossy(beginning).into_owned()))
            }
        }
    }
}

fn extend_line(line: &mut Vec<u8>, part: &[u8]) -> Result<(), TooLong> {
    line.extend_from_slice(part);
    let beginning = line.trim_ascii_start();
    match beginning.first() {
        // Leading blanks are not counted, and not kept.
        None => line.clear(),
        Some(b'{' | b'[') if line.len() > MAX_MESSAGE => return Err(TooLong),
        Some(b'{' | b'[') => {}
        Some(_) => line.truncate(line.len() - beginning.len() + MAX_RUBBISH),
    }
    Ok(())
}

/// Writes the client's messages. Takes them in although the server does not read, so that a client that leaves is noticed.
pub(super) struct Outbox<W> {
    pub(super) input: W,
    pub(super) client: mpsc::Receiver<Value>,
    /// Bytes that wait for the server.
    pub(super) waiting: VecDeque<u8>,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    /// To be polled until it is ready.
    pub(super) fn poll_end(&mut self, outstanding: &Mutex<Outstanding>, cx: &mut Context<'_>) -> Poll<WriteEnd> {
        loop {
            if let Poll::Ready(false) = self.poll_write(cx) {
                return Poll::Ready(WriteEnd::Closed);
            }
            match Pin::new(&mut self.client).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(WriteEnd::ClientLeft),
                Poll::Ready(Some(message)) => {
                    outstanding.lock().unwrap_or_else(PoisonError::into_inner).sent(&message);
                    self.waiting.extend(message.to_string().as_bytes());
                    self.waiting.push_back(b'\n');
                    if self.waiting.len() > MAX_WAITING {
                        return Poll::Ready(WriteEnd::Deaf);
                    }
                }
            }
        }
    }

    /// True once all is written, false if it cannot be.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while !self.waiting.is_empty() {
            match Pin::new(&mut self.input).poll_write(cx, self.waiting.as_slices().0) {
                Poll::Ready(Ok(written)) if written > 0 => drop(self.waiting.drain(..written)),
                Poll::Ready(Ok(_) | Err(_)) => return Poll::Ready(false),
                Poll::Pending => return Poll::Pending,
            }
        }
        Pin::new(&mut self.input).poll_flush(cx).map(|flushed| flushed.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::io::Cursor;
    use serde_json::json;

    #[track_caller]
    fn check(output: &[u8], expect: &[Line]) {
        // One byte at a time, then all at once: where a read ends must not matter.
        for chunk in [1, CHUNK] {
            let mut lines = Lines::new(Cursor::new(output));
            lines.chunk.truncate(chunk);
            let mut seen = Vec::new();
            while let Some(line) = lines.next().now_or_never().expect("no wait").expect("no breach") {
                seen.push(line);
            }
            assert_eq!(seen, expect, "{}", String::from_utf8_lossy(output));
        }
    }

    fn rubbish(text: &str) -> Line {
        Line::Rubbish(text.to_owned())
    }

    #[test]
    fn lines_of_all_kinds() {
        check(b"", &[]);
        check(b"\n\r\n  \n", &[]);
        check(b"{\"a\":1}\n", &[Line::Json(json!({"a": 1}))]);
        check(b"  {\"a\":1}\r\n{\"b\":2}", &[Line::Json(json!({"a": 1})), Line::Json(json!({"b": 2}))]);
        check(
            b"starting...\n{\"a\":1}\n{\"cut",
            &[rubbish("starting..."), Line::Json(json!({"a": 1})), rubbish("{\"cut")],
        );
        check(b"[{\"a\":1},2]\n7\n\"x\"\n", &[Line::Json(json!([{"a": 1}, 2])), rubbish("7"), rubbish("\"x\"")]);
        check("\u{feff}{}\n\u{1b}[0m\n".as_bytes(), &[rubbish("\u{feff}{}"), rubbish("\u{1b}[0m")]);
        check(b"[info] up\n", &[rubbish("[info] up")]);
        check(&[0xff, b'\n'], &[rubbish("\u{fffd}")]);
    }

    #[test]
    fn a_long_line_is_kept_only_if_it_may_be_a_message() {
        let mut endless = vec![b'x'; 3 * CHUNK];
        endless.extend(b"\n{}\n");
        let mut lines = Lines::new(Cursor::new(endless));
        assert_eq!(lines.next().now_or_never(), Some(Ok(Some(rubbish(&"x".repeat(MAX_RUBBISH))))));
        assert_eq!(lines.next().now_or_never(), Some(Ok(Some(Line::Json(json!({}))))));

        let mut message = b"{\"a\":\"".to_vec();
        message.extend(vec![b'x'; MAX_MESSAGE]);
        assert_eq!(Lines::new(Cursor::new(message)).next().now_or_never(), Some(Err(TooLong)));
    }
}
