//! The contracts that Peri's layers share: ids, messages, events, errors, the thread reducer and the ports.
//!
//! Owns: the nouns of the field (session, turn, attempt, message, tool call, thread), the rules that every
//! store must apply alike ([`thread`]), and the traits through which a layer reaches the outside ([`ports`]).
//! Must not: do I/O, read a clock, know a wire format or a stored form. Everything here builds for wasm32.

pub mod context;
pub mod elicitation;
pub mod error;
pub mod event;
pub mod ids;
pub mod message;
pub mod permission;
pub mod ports;
pub mod question;
pub mod queue;
pub mod rewind;
pub mod settings;
pub mod thread;
mod thread_part;
pub mod tool;

pub use context::*;
pub use elicitation::*;
pub use error::*;
pub use event::*;
pub use ids::*;
pub use message::*;
pub use permission::*;
pub use question::*;
pub use queue::*;
pub use rewind::*;
pub use settings::*;
pub use thread::*;
pub use tool::*;

/// Re-exported so that every crate cancels with the same token type.
pub use tokio_util::sync::CancellationToken;
