//! Both ends in one process: messages are handed over as they are, without becoming text.
//!
//! Nothing is in between that could wait for the client, so the client's end says what it has taken. Invariant: whoever
//! takes frames here either is [`FrameReceiver`] or runs [`Consumption`] first in its handler chain.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use agent_client_protocol::{
    Agent, Channel, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled, TransportFrame,
};
use futures::channel::mpsc;
use futures::{Sink, SinkExt, Stream, StreamExt};
use serde_json::Value;

use super::backlog::{frame_weight, notification_weight};
use super::{AgentSide, Backlog};

/// Connects an agent and a client in this process.
pub fn in_process() -> (AgentSide, ClientSide) {
    let (agent, client) = Channel::duplex();
    let backlog = Arc::new(Backlog::default());
    (AgentSide { channel: agent, backlog: backlog.clone(), pump: None }, ClientSide { channel: client, backlog })
}

/// The client's end.
pub struct ClientSide {
    channel: Channel,
    backlog: Arc<Backlog>,
}

impl ClientSide {
    /// For a client that is built on `Client.v1()`: the channel to connect with, and a handler that must be the first of
    /// its chain (`Client.v1().with_handler(consumption)`). A handler of the client that waits then holds the agent.
    pub fn into_connection(self) -> (Channel, Consumption) {
        (self.channel, Consumption { backlog: self.backlog })
    }

    /// For a client that speaks JSON-RPC by itself: messages out, messages in. What is sent and is no message is answered
    /// with an error, as over any other transport.
    pub fn into_frames(self) -> (impl Sink<Value, Error = mpsc::SendError> + Send + Unpin, FrameReceiver) {
        let (frames, outgoing) = self.channel.into_parts();
        let outgoing =
            outgoing.with(|message: Value| std::future::ready(Ok(TransportFrame::parse_json(&message.to_string()))));
        (outgoing, FrameReceiver { frames, backlog: self.backlog })
    }
}

/// The agent's messages. Taking one makes room for others.
pub struct FrameReceiver {
    frames: mpsc::UnboundedReceiver<TransportFrame>,
    backlog: Arc<Backlog>,
}

impl Stream for FrameReceiver {
    type Item = Value;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Value>> {
        self.frames.poll_next_unpin(context).map(|frame| {
            let frame = frame?;
            self.backlog.take(frame_weight(&frame));
            // The connection sends messages that it has made from JSON values, so that they can be told as such.
            let text = frame.to_json().unwrap_or_default();
            Some(serde_json::from_str(&text).unwrap_or_default())
        })
    }
}

impl Drop for FrameReceiver {
    fn drop(&mut self) {
        self.backlog.client_gone();
    }
}

/// Counts what a client on the protocol crate has taken. It claims no message.
pub struct Consumption {
    backlog: Arc<Backlog>,
}

impl HandleDispatchFrom<Agent> for Consumption {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _connection: ConnectionTo<Agent>,
    ) -> Result<Handled<Dispatch>, Error> {
        // Taken before it is handled: were it afterwards, a single large message would hold the agent until the next one,
        // which then could not come.
        if let Dispatch::Notification(notification) = &message
            && let Value::Object(params) = &notification.params
        {
            self.backlog.take(notification_weight(&notification.method, params));
        }
        Ok(Handled::No { message, retry: false })
    }

    fn describe_chain(&self) -> impl std::fmt::Debug {
        "Consumption"
    }
}

impl Drop for Consumption {
    fn drop(&mut self) {
        self.backlog.client_gone();
    }
}
