//! Tests of the settings authority against sources in memory.

#![cfg(test)]

mod documents;
mod fuzz_corpus;
mod hostile;
mod layers;
mod local_rules;
mod mcp_servers;
mod memory;
mod models;
mod rules;
mod schema;
mod trust;
