//! The protocol edge: the Agent Client Protocol on one side, the controller on the other.
//!
//! Owns: the method table, the exhaustive map from events to ACP, capability gates, the transports and what holds the
//! agent when a client is slow, asking a person for permission, and Peri's [`extension`].
//! Must not: decide anything about a session, or name the agent.
//! Invariant: nothing is lost between a session and its client, and nothing piles up there either.

mod broker;
mod connection;
mod desk;
mod errors;
pub mod extension;
mod forms;
mod forward;
mod history;
mod map;
mod methods;
mod negotiation;
mod serve;
mod transport;

pub use serve::{ServeError, serve};
pub use transport::{AgentSide, ClientSide, Consumption, FrameReceiver, byte_stream, in_process};
