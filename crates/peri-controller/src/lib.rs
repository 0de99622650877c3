//! The control plane: from a few parameters to a running session, and the way to it afterwards.
//!
//! Owns: the choice of settings, model, middleware chain and agent definition for a session; locating a session and
//! forwarding to it. Must not: interpret a cancel, hold a session's state, know ACP.
//! Invariant: whatever a session needs is put together here, once, from injected ports.

mod assemble;
mod controller;
mod definitions;
mod error;
mod local_rules;
mod models;
mod params;
mod servers;
mod user_level;

pub use controller::Controller;
pub use error::ControllerError;
pub use models::{ModelConnector, model_endpoint};
pub use params::*;
pub use peri_agent::{
    AcceptedInput, CancelAnswer, CancelTarget, Cancelling, CloseIncomplete, CloseReason, PromptRefused, QueueOnCancel,
    RenameRefused, Rewind, RewindRefused, SessionEnded, ShownTool,
};
pub use peri_config::{CommandLineOverlay, ConfigError};
pub use peri_runtime::StampedEvents;
