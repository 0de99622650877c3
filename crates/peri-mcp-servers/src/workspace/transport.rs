//! rmcp's transport on an [`McpDuplex`]: JSON values over channels.
//!
//! Must not know a tool. Invariant: when the peer is gone, `closed` is cancelled before rmcp learns of it, so that calls
//! under way stop instead of being waited for.

use std::sync::Arc;

use futures::channel::mpsc;
use futures::{SinkExt as _, StreamExt as _};
use peri_acp_types::CancellationToken;
use peri_acp_types::ports::McpDuplex;
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::Mutex;

pub(super) struct DuplexTransport {
    incoming: mpsc::Receiver<Value>,
    /// One sender for all messages, since each clone of a channel's sender may exceed its capacity by one.
    /// tokio's mutex: it is held while the channel is full.
    outgoing: Arc<Mutex<mpsc::Sender<Value>>>,
    /// An answer to a message that could not be read, until there is room for it.
    refusal: Option<Value>,
    closed: CancellationToken,
}

/// Why a message did not go out.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    #[error("the client is gone")]
    Closed,
    #[error("message cannot be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
}

impl DuplexTransport {
    /// `closed` is cancelled when the client's side ends.
    pub(super) fn new(duplex: McpDuplex, closed: CancellationToken) -> DuplexTransport {
        DuplexTransport {
            incoming: duplex.incoming,
            outgoing: Arc::new(Mutex::new(duplex.outgoing)),
            refusal: None,
            closed,
        }
    }

    /// Sends the pending refusal, if there is one. May be dropped at any point without losing it.
    async fn flush_refusal(&mut self) {
        if self.refusal.is_none() {
            return;
        }
        let mut outgoing = self.outgoing.lock().await;
        let ready = futures::future::poll_fn(|cx| outgoing.poll_ready(cx)).await;
        if let (Ok(()), Some(refusal)) = (ready, self.refusal.take()) {
            // Ready was seen and the lock is held: only a client that just left can make this fail.
            let _client_gone = outgoing.start_send(refusal);
        }
    }
}

impl Transport<RoleServer> for DuplexTransport {
    type Error = TransportError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let message = serde_json::to_value(item)?;
            outgoing.lock().await.send(message).await.map_err(|_| TransportError::Closed)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.flush_refusal().await;
            let Some(message) = self.incoming.next().await else {
                self.closed.cancel();
                return None;
            };
            let id = message.get("id").cloned();
            match serde_json::from_value(message) {
                Ok(message) => return Some(message),
                Err(error) => self.refusal = id.map(|id| refusal(id, &error)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.outgoing.lock().await.close_channel();
        Ok(())
    }
}

/// JSON-RPC's "invalid request".
fn refusal(id: Value, error: &serde_json::Error) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": format!("not an MCP request: {error}")}})
}
