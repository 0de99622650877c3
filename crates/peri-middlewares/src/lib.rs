//! The aspects of a session: what may run, and where tools come from.
//!
//! Owns: [`permission`] (may this call run?), [`mcp`] (the pool of MCP clients and the bridge from their tools to a
//! session's), and [`chain`], the one production order of them.
//! Must not: implement a tool. Invariant: a middleware belongs to one session; a new session gets a new chain.

pub mod chain;
pub mod mcp;
pub mod permission;
