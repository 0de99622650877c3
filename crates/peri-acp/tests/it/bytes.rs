//! A client over bytes: lines that it writes, lines that it reads.

use std::pin::Pin;
use std::time::Duration;

use futures::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use futures::{Stream, StreamExt};
use peri_acp::byte_stream;
use serde_json::{Value, json};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::world::{CWD, Served, World};

/// Generous: it only ever passes where a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub type Messages = Pin<Box<dyn Stream<Item = Value> + Send>>;

/// A client that writes what it likes.
pub struct RawClient {
    pub writer: Pin<Box<dyn AsyncWrite + Send>>,
    pub messages: Messages,
}

/// Connects a client over a pipe of little capacity.
pub fn over_bytes(world: &World) -> (RawClient, Served) {
    let (agent, client) = tokio::io::duplex(4096);
    let (read, write) = tokio::io::split(agent);
    let served = world.serve(byte_stream(read.compat(), write.compat_write()));
    let (read, write) = tokio::io::split(client);
    let lines = BufReader::new(read.compat()).lines();
    let messages = lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"));
    (RawClient { writer: Box::pin(write.compat_write()), messages: Box::pin(messages) }, served)
}

impl RawClient {
    pub async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.expect("written");
        self.writer.flush().await.expect("flushed");
    }

    pub async fn write_line(&mut self, line: &[u8]) {
        self.write(line).await;
        self.write(b"\n").await;
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(PATIENCE, self.messages.next()).await;
        next.expect("a message in time").expect("a message")
    }

    /// The first message that fits; others are passed over.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await;
            if fits(&message) {
                return message;
            }
        }
    }

    pub async fn initialize(&mut self) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
        self.write_line(message.to_string().as_bytes()).await;
        assert_eq!(self.next().await["result"]["protocolVersion"], 1);
    }

    /// Opens a session. Returns its id.
    pub async fn new_session(&mut self) -> String {
        let params = json!({"cwd": CWD, "mcpServers": []});
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params});
        self.write_line(message.to_string().as_bytes()).await;
        self.next().await["result"]["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Closes the end that writes; what the agent still says can be read.
    pub async fn stop_sending(mut self) -> Messages {
        self.writer.close().await.expect("closed");
        self.messages
    }
}
