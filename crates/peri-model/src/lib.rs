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
mod language_model;
mod request;
mod sse;
mod stream;
mod utf16;
mod wire;

pub use connect::connect;
pub use language_model::*;
pub use request::*;
pub use stream::*;
