//! Session execution: the session actor, the Receive-Compact-Reason-Act loop, the frozen context, the verdict on cancel.
//!
//! Owns: a session from creation through running to its destroy sequence; its mailbox; when a request is tried again;
//! the [`Middleware`] trait and its hook points.
//! Must not: know ACP, a store's form, files or processes.
//! Invariant: one task owns a session's state; everything else holds a [`SessionHandle`].

mod actor;
mod change;
mod close;
mod command;
mod core;
mod definition;
mod describe;
mod frozen;
mod handle;
mod lane;
mod loop_guard;
mod middleware;
mod prompt;
mod queue;
mod rewind;
mod session;
mod turn;

pub use change::{SessionChange, SessionEnded};
pub use close::*;
pub use definition::*;
pub use handle::*;
pub use lane::{EventReceiver, EventSender, event_lane};
pub use middleware::*;
pub use rewind::{RenameRefused, RewindRefused};
pub use session::{create_session, open_session};
