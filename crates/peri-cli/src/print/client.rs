//! The ACP client's connection: requests to the agent, and what the agent says in the meantime.
//!
//! Owns: the order of what arrives. Invariants: messages come in the order in which they were sent, and before the answer
//! that they precede; an agent whose messages nobody takes is held, since the handler waits then.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, Implementation, InitializeRequest, SessionNotification, SessionUpdate,
};
use agent_client_protocol::{Agent, Client, Error, JsonRpcRequest, UntypedMessage};
use peri_acp::ClientSide;
use peri_acp::extension::{self, Event, InitializeRequestMeta};
use serde::Deserialize;
use tokio::sync::mpsc;

/// Messages that wait to be taken before the agent is held.
const INBOX_CAPACITY: usize = 64;

/// What the agent says without being asked.
#[derive(Debug)]
pub enum FromAgent {
    Update(Box<SessionUpdate>),
    Event(Box<Event>),
}

/// Takes what the agent says.
pub trait Listener {
    /// Must be quick, or wait only for the reader of what it writes: the agent is held meanwhile.
    async fn hear(&mut self, message: FromAgent);
}

/// A connection that has been initialised.
pub struct AgentLink {
    pub connection: ConnectionTo<Agent>,
    pub inbox: mpsc::Receiver<FromAgent>,
}

impl AgentLink {
    /// Sends a request and waits for its answer; what the agent says until then is heard first.
    ///
    /// # Errors
    /// The agent's own error, or the connection's.
    pub async fn request<R: JsonRpcRequest>(
        &mut self,
        request: R,
        listener: &mut impl Listener,
    ) -> Result<R::Response, Error> {
        let answer = self.connection.send_request(request).block_task();
        let mut answer = std::pin::pin!(answer);
        let answer = loop {
            tokio::select! {
                biased;
                Some(message) = self.inbox.recv() => listener.hear(message).await,
                answer = &mut answer => break answer,
            }
        };
        self.hear_the_rest(listener).await;
        answer
    }

    /// Hears what has arrived already. Called after an answer, it leaves nothing that was sent before that answer.
    pub async fn hear_the_rest(&mut self, listener: &mut impl Listener) {
        while let Ok(message) = self.inbox.try_recv() {
            listener.hear(message).await;
        }
    }
}

/// Connects, initialises and works; the connection ends with the work.
///
/// # Errors
/// Where the connection breaks, or the agent refuses to be initialised.
pub async fn connect<T>(agent: ClientSide, work: impl AsyncFnOnce(AgentLink) -> T) -> Result<T, Error> {
    let (channel, consumption) = agent.into_connection();
    let (tx, inbox) = mpsc::channel(INBOX_CAPACITY);
    Client
        .v1()
        .name("peri-print")
        .with_handler(consumption)
        .on_receive_notification(
            async move |notification: UntypedMessage, _| {
                if let Some(message) = understand(notification) {
                    // A closed inbox means that the work is done; what comes late is nobody's.
                    drop(tx.send(message).await);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(channel, async |connection: ConnectionTo<Agent>| {
            let mut link = AgentLink { connection, inbox };
            link.request(initialize(), &mut Deaf).await?;
            Ok(work(link).await)
        })
        .await
}

/// Nobody can answer a question here, and the agent is told so.
fn initialize() -> InitializeRequest {
    let meta = InitializeRequestMeta { events: Some(extension::EVENTS_VERSION), interactive: false };
    InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new())
        .client_info(Implementation::new("peri-print", env!("CARGO_PKG_VERSION")))
        .meta(extension::to_meta(&meta))
}

/// None for what a later agent may say: it is passed over.
fn understand(notification: UntypedMessage) -> Option<FromAgent> {
    let (method, params) = notification.into_parts();
    match method.as_str() {
        extension::EVENT_METHOD => Event::deserialize(params).ok().map(|event| FromAgent::Event(Box::new(event))),
        "session/update" => {
            let notification = SessionNotification::deserialize(params).ok()?;
            Some(FromAgent::Update(Box::new(notification.update)))
        }
        _ => None,
    }
}

/// Hears nothing.
struct Deaf;

impl Listener for Deaf {
    async fn hear(&mut self, _message: FromAgent) {}
}
