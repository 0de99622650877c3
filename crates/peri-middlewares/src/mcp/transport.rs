//! rmcp's transport on an [`McpDuplex`].
//!
//! Invariants: messages leave in the order in which rmcp sent them, so that a cancellation never overtakes its request;
//! what is no MCP message is counted and passed over, and the connection goes on; an answer that cannot be understood is
//! an error for whoever waits for it; nothing is read that has not gone through the [`Screen`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::{Either, select};
use futures::{SinkExt, StreamExt};
use peri_acp_types::ports::{Clock, McpDuplex};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Value, json};

use super::health::Health;
use super::link::LOST;
use super::redaction::Redaction;
use super::screen::Screen;

/// How long a server may take to end after its input has.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The session's end of a connection.
pub(super) struct DuplexTransport {
    incoming: mpsc::Receiver<Value>,
    outgoing: Arc<Outgoing>,
    health: Arc<Health>,
    screen: Screen,
    clock: Arc<dyn Clock>,
}

struct Outgoing {
    /// Messages that wait for their turn. Held to push or pop, never over an await.
    waiting: Mutex<VecDeque<Value>>,
    /// Held while a message is on its way; the channel has room for a few.
    sender: futures::lock::Mutex<mpsc::Sender<Value>>,
}

/// A message that did not leave.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    #[error("the server is gone")]
    Gone,
    #[error("a message cannot be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
}

impl DuplexTransport {
    pub(super) fn new(
        duplex: McpDuplex,
        redaction: Redaction,
        health: Arc<Health>,
        clock: Arc<dyn Clock>,
    ) -> DuplexTransport {
        let screen = Screen::new(redaction, health.clone());
        let outgoing = Outgoing { waiting: Mutex::default(), sender: futures::lock::Mutex::new(duplex.outgoing) };
        DuplexTransport { incoming: duplex.incoming, outgoing: Arc::new(outgoing), health, screen, clock }
    }

    /// The message as rmcp knows it; None for what is none.
    fn understand(&mut self, message: Value) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.screen.received(message)?;
        let why = match RxJsonRpcMessage::<RoleClient>::deserialize(&message) {
            Ok(message) => return Some(message),
            Err(why) => why,
        };
        let is_answer = message.get("method").is_none() && message.get("jsonrpc").is_some();
        if let Some(id) = message.get("id").filter(|_| is_answer) {
            let reason = format!("its answer cannot be understood: {why}");
            let error =
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": LOST, "message": self.screen.redacted(&reason)}});
            if let Ok(error) = serde_json::from_value(error) {
                return Some(error);
            }
        }
        self.screen.note_rubbish(&message);
        None
    }
}

impl Outgoing {
    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Value>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the message that has waited longest, which may be another's: each caller sends one.
    async fn send_next(&self) -> Result<(), TransportError> {
        let mut sender = self.sender.lock().await;
        let Some(message) = self.waiting().pop_front() else { return Ok(()) };
        sender.send(message).await.map_err(|_| TransportError::Gone)
    }
}

impl Transport<RoleClient> for DuplexTransport {
    type Error = TransportError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        let queued = serde_json::to_value(item).map(|message| {
            self.screen.sent(&message);
            outgoing.waiting().push_back(message);
        });
        async move {
            queued?;
            outgoing.send_next().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.incoming.next().await else {
                self.health.note_end();
                return None;
            };
            if let Some(message) = self.understand(message) {
                return Some(message);
            }
        }
    }

    /// Ends the server's input and waits until it is gone.
    async fn close(&mut self) -> Result<(), TransportError> {
        self.outgoing.sender.lock().await.close_channel();
        let incoming = &mut self.incoming;
        let end = Box::pin(async move { while incoming.next().await.is_some() {} });
        if let Either::Left(_) = select(end, self.clock.sleep(END_LIMIT)).await {
            self.health.note_end();
        }
        Ok(())
    }
}
