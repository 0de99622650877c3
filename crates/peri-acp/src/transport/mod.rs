//! Transports: how frames get between a client and the connection, and what holds the agent when a client is slow.
//!
//! The protocol crate's queues are unbounded and its `send_notification` does not wait. So each transport here counts what
//! is queued and not yet taken by the client ([`Backlog`]), and whoever forwards a session's events waits for room before
//! it pulls the next one. Invariant: what waits in a connection's queues is at most the backlog's limit and one event
//! for each session; nothing is dropped.

mod backlog;
mod bytes;
mod in_process;
mod lines;
mod outlet;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use agent_client_protocol::Channel;

pub(crate) use backlog::Backlog;
pub use bytes::byte_stream;
pub use in_process::{ClientSide, Consumption, FrameReceiver, in_process};
pub(crate) use outlet::{ClientGone, Outlet};

/// The work that moves frames between a connection and the outside. It ends when either side has.
pub(crate) type Pump = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// The agent's end of a transport, for [`serve`](crate::serve).
pub struct AgentSide {
    pub(crate) channel: Channel,
    pub(crate) backlog: Arc<Backlog>,
    /// None where the client takes frames from the channel itself.
    pub(crate) pump: Option<Pump>,
}

#[cfg(test)]
mod tests;
