//! Builtin MCP servers, one module each.
//!
//! Owns: what a session can do with the machine it runs on, offered as MCP tools ([`workspace`]), and the bytes that
//! settings are made of ([`config`]). Must not: know a session's history, ask for permission, or give the model a tool
//! that is not named in a server's own catalog. Invariant: this crate and what lies below it are the only places of
//! Peri that open a user's files.

pub mod config;
pub mod workspace;
