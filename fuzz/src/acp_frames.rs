//! Bytes from a client, served as on standard input.
//!
//! Holds: serving ends when the bytes do; every line that is answered is a JSON-RPC 2.0 message; no request is answered
//! more often than it was made; what is written stays in proportion to what was read.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::io::{AsyncRead, AsyncWrite};
use peri_acp::byte_stream;
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::world::World;

/// Sessions that one client may open here.
const SESSIONS: usize = 64;
/// How often the client waits after a line, so that what it has asked for gets somewhere.
const WAITS: usize = 24;

/// The bytes are what the client sends.
pub fn check(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n');
    let opened = lines.clone().filter(|line| line.windows(11).any(|word| word == b"session/new")).count();
    if opened > SESSIONS {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let written = Arc::<Mutex<Vec<u8>>>::default();
    runtime.block_on(async {
        let world = World::new((0..SESSIONS).map(|_| model()));
        let client = Client { unread: data.to_vec(), read: 0, waits: WAITS };
        let ended = world.serve(byte_stream(client, Written(written.clone()))).end().await;
        assert!(ended.is_ok(), "{ended:?}");
    });
    let written = written.lock().unwrap_or_else(PoisonError::into_inner);
    check_output(data, &written);
}

/// Runs a command now and then, which asks for permission, and speaks otherwise.
fn model() -> FakeModel {
    FakeModel::computed(|request| match request.messages.len() % 3 {
        1 => FakeAnswer::calls(&[
            ("call", "Bash", json!({"command": "ls"})),
            ("other", "Read", json!({"file_path": "a"})),
        ]),
        _ => FakeAnswer::text("Hello."),
    })
}

fn check_output(input: &[u8], output: &[u8]) {
    assert!(output.len() < 256 * 1024 + 64 * input.len(), "{} bytes for {}", output.len(), input.len());
    let text = std::str::from_utf8(output).expect("the output is UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "a line is cut off: {text}");
    let mut asked: HashMap<String, usize> = HashMap::new();
    for id in input.split(|byte| *byte == b'\n').flat_map(ids) {
        *asked.entry(id).or_default() += 1;
    }
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let members = message.as_object().unwrap_or_else(|| panic!("no message: {line}"));
        assert_eq!(members.get("jsonrpc"), Some(&json!("2.0")), "{line}");
        let is_answer = members.contains_key("result") || members.contains_key("error");
        assert_ne!(members.contains_key("method"), is_answer, "{line}");
        match members.get("id") {
            Some(id) if is_answer && !id.is_null() => {
                let open = asked.get_mut(&id.to_string()).unwrap_or_else(|| panic!("nobody asked: {line}"));
                *open = open.checked_sub(1).unwrap_or_else(|| panic!("answered twice: {line}"));
            }
            Some(_) | None => {}
        }
    }
}

/// The ids in a line, as JSON: of one message, or of a batch.
fn ids(line: &[u8]) -> Vec<String> {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
    let one = |message: &Value| message.get("id").map(Value::to_string);
    match &message {
        Value::Array(batch) => batch.iter().filter_map(one).collect(),
        message => one(message).into_iter().collect(),
    }
}

/// Sends a line at a time, and waits after each.
struct Client {
    unread: Vec<u8>,
    read: usize,
    waits: usize,
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.waits > 0 {
            self.waits -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let rest = &self.unread[self.read..];
        let line = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let length = line.min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        self.waits = WAITS;
        Poll::Ready(Ok(length))
    }
}

/// Keeps what is written.
struct Written(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Written {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
