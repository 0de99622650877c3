//! The middlewares as a session sees them, with fakes around them.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod chain;
mod fakes;
mod mcp;
mod permission;
mod properties;
mod servers;
mod ways_around;
