//! The middlewares as a session sees them, with fakes around them.

mod chain;
mod fakes;
mod mcp;
mod permission;
mod properties;
