//! Servers that speak MCP's streamable HTTP: rmcp's worker, on the [`HttpTransport`] port.
//!
//! Owns: the exchange of messages between a client's duplex and the worker, which knows sessions, streams and their
//! resumption. Must not: open a socket.
//! Invariants: a request that cannot be sent or has lost its answer is answered with an error that says why; configured
//! secrets are in no text of ours.

mod awaited;
mod bounded;
mod client;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{FutureExt, select};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{SinkExt, poll};
use peri_acp_types::CancellationToken;
use peri_acp_types::ports::{Clock, HttpTransport, McpConnectError, McpDuplex, McpServerSpec, McpTransport};
use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpClientWorker, StreamableHttpError,
};
use rmcp::transport::worker::WorkerTransport;
use serde::Deserialize;
use serde_json::Value;

use super::link::{Link, Outstanding};
use super::redaction::Redaction;
use client::{Fault, PortClient};

/// Messages that wait in each direction before a sender waits.
const DUPLEX_CAPACITY: usize = 16;
/// How often a broken stream is taken up again before it is given up.
const MAX_RETRIES: usize = 6;
/// How long a server may take to end its session.
const END_LIMIT: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);
/// Where the worker marks an answer of its own as one that was lost.
const STREAM_LOST: &str = "/error/data/io.modelcontextprotocol~1transportClosed";
/// Headers that HTTP and the protocol set; configured ones of these names have no effect.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// Prepares a connection; the first message opens it. To be called on a tokio runtime, as what it gives must be run.
///
/// # Errors
/// [`McpConnectError`] where the server is not one of this kind.
pub fn open(
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
    server: &McpServerSpec,
) -> Result<Link, McpConnectError> {
    let McpTransport::Http { url, headers } = &server.transport else {
        return Err(McpConnectError::Unsupported { server: server.name.clone(), what: "HTTP address for it" });
    };
    let is_reserved = |name: &str| RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved));
    let headers: Vec<_> = headers.iter().filter(|(name, _)| !is_reserved(name)).cloned().collect();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    let mut backoff = ExponentialBackoff::default();
    (backoff.max_times, backoff.max_delay) = (Some(MAX_RETRIES), Some(MAX_RETRY_DELAY));
    config.retry_config = Arc::new(backoff);
    let closed = CancellationToken::new();
    let redaction = Redaction::of(&server.transport);
    let port = PortClient::new(http, clock.clone(), headers, redaction.clone(), closed.clone());
    let worker = StreamableHttpClientWorker::new(port, config);
    let (ours, theirs) = McpDuplex::pair(DUPLEX_CAPACITY);
    let exchange = Exchange { redaction, client: theirs, outstanding: Outstanding::default(), clock, closed };
    Ok(Link { duplex: ours, serving: exchange.run(worker).boxed() })
}

/// Between a client and the worker.
struct Exchange {
    redaction: Redaction,
    /// The server's end of the client's duplex.
    client: McpDuplex,
    outstanding: Outstanding,
    clock: Arc<dyn Clock>,
    /// Ends what the worker still waits for.
    closed: CancellationToken,
}

/// A message that did not leave, and whose answer will not come.
type Unsent = Option<(Value, StreamableHttpError<Fault>)>;

impl Exchange {
    async fn run(mut self, worker: StreamableHttpClientWorker<PortClient>) -> Result<(), String> {
        let mut server = WorkerTransport::spawn(worker);
        let mut sends = FuturesUnordered::new();
        loop {
            tokio::select! {
                message = self.client.incoming.next() => {
                    let Some(message) = message else { break };
                    self.outstanding.sent(&message);
                    let Ok(item) = TxJsonRpcMessage::<RoleClient>::deserialize(&message) else { continue };
                    let mut send = Box::pin(send(message.get("id").cloned(), server.send(item)));
                    // Polled here and now, messages leave in their order.
                    match poll!(send.as_mut()) {
                        std::task::Poll::Ready(unsent) => self.report(unsent).await,
                        std::task::Poll::Pending => sends.push(send),
                    }
                }
                Some(unsent) = sends.next(), if !sends.is_empty() => self.report(unsent).await,
                message = server.receive() => {
                    let Some(message) = message else { break };
                    let Ok(message) = serde_json::to_value(message) else { continue };
                    let Some(message) = self.passed_on(message) else { continue };
                    if self.client.outgoing.send(message).await.is_err() {
                        break;
                    }
                }
            }
        }
        // What failed to be sent knows better why than the end of the connection does.
        while let Some(Some(unsent)) = sends.next().now_or_never() {
            self.report(unsent).await;
        }
        for answer in self.outstanding.give_up_all("it has ended the connection") {
            let _client_may_be_gone = self.client.outgoing.send(answer).await;
        }
        // Nothing is awaited any more but the end of the session at the server. One that does not answer keeps the session
        // until it forgets it, which is its own business: nothing of it runs here.
        self.closed.cancel();
        select(Box::pin(server.close()), self.clock.sleep(END_LIMIT)).await;
        Ok(())
    }

    /// The worker's message as the client is to see it. What the worker says of a lost answer would read as if the whole
    /// server were gone.
    fn passed_on(&mut self, message: Value) -> Option<Value> {
        let Some(id) = message.get("id").filter(|_| message.pointer(STREAM_LOST).is_some()) else {
            self.outstanding.received(&message);
            return Some(message);
        };
        self.outstanding.give_up(id, "the stream broke off before the answer had come")
    }

    async fn report(&mut self, unsent: Unsent) {
        let Some((id, error)) = unsent else { return };
        if let Some(answer) = self.outstanding.give_up(&id, &self.redaction.legible(&words_for(&error))) {
            let _client_may_be_gone = self.client.outgoing.send(answer).await;
        }
    }
}

/// A message without an id awaits no answer: nobody is told that it did not leave.
async fn send(id: Option<Value>, sending: impl Future<Output = Result<(), StreamableHttpError<Fault>>>) -> Unsent {
    let sent = sending.await;
    id.zip(sent.err())
}

fn words_for(error: &StreamableHttpError<Fault>) -> String {
    match error {
        StreamableHttpError::Client(fault) => fault.to_string(),
        StreamableHttpError::AuthRequired(_) => {
            "it wants authorization (HTTP 401): give it a header such as `Authorization` in `headers`; OAuth is not \
             supported yet"
                .to_owned()
        }
        StreamableHttpError::SessionExpired => "it has ended the session (HTTP 404)".to_owned(),
        StreamableHttpError::ReinitializationFailed(error) => {
            format!("it has ended the session and does not begin a new one: {}", error.message)
        }
        StreamableHttpError::TransportChannelClosed => "it has ended the connection".to_owned(),
        other => other.to_string(),
    }
}
