//! The middlewares as a session sees them, with fakes around them.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod bridge;
mod chain;
mod deferred;
mod fakes;
mod fuzz_corpus;
mod http;
mod http_port;
mod http_server;
mod mcp;
mod permission;
mod process;
mod properties;
mod questions;
mod servers;
mod stdio;
mod ways_around;
