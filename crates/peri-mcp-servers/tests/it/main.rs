//! The crate's tests: a real MCP client talks to the server over an in-memory duplex.

#![cfg(test)]

mod bash;
mod config;
mod edit;
mod fuzz_corpus;
mod protocol;
mod reach;
mod read;
mod search;
mod support;
mod write;
