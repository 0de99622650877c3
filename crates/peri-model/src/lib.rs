//! The model edge: provider wire on one side, [`ModelRequest`] and [`ModelStream`] on the other.
//!
//! Owns: the wire forms of each protocol, the SSE decoder, the folding of a stream into one whole answer.
//! Must not: know sessions, what a tool means, or when to try again.
//! Invariant: every stream ends in exactly one terminal event.

mod anthropic;
mod body;
mod connect;
mod exchange;
mod failure;
mod fold;
mod ids;
mod language_model;
mod members;
mod models;
mod openai;
mod openai_chat;
mod openai_responses;
mod plain;
mod request;
mod seal;
mod sse;
mod stream;
mod utf16;
mod wire;

pub use connect::connect;
pub use language_model::*;
pub use models::*;
pub use request::*;
pub use stream::*;
