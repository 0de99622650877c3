//! Orchestration: which sessions this process has open, and the identity that their events carry outward.
//!
//! Owns: the map from session id to [`SessionHandle`]; the stamping of events with session, epoch and sequence number.
//! Must not: hold session state, configuration or stored data, or judge whether an input or a cancel is taken.
//! Invariant: a session id is mapped to at most one session, and its mapping is removed as the last step of its end.
//!
//! [`SessionHandle`]: peri_agent::SessionHandle

mod events;
mod sessions;

pub use events::StampedEvents;
pub use sessions::{AlreadyOpen, Reservation, Runtime};
