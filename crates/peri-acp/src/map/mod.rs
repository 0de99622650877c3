//! The maps between our words and ACP's. No I/O and no decision; `view` alone remembers something from event to event.
//!
//! Invariant: a new event, message or stop reason does not compile until it has its place here.

pub(crate) mod content;
pub(crate) mod extension;
pub(crate) mod form;
pub(crate) mod mcp;
pub(crate) mod options;
pub(crate) mod replay;
pub(crate) mod session;
pub(crate) mod tool;
pub(crate) mod view;
