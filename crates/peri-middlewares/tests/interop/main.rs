//! Peri's MCP client on other people's servers and before the official conformance suite.
//!
//! `cargo xtask interop` installs them and says in `PERI_INTEROP_DIR` where.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod conformance;
#[path = "../it/http_port.rs"]
mod http_port;
#[path = "../it/process.rs"]
mod process;
mod servers;
mod session;
