//! The protocol edge as a client meets it: real controller, runtime and agent, a scripted model, raw JSON-RPC.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod authentication;
mod brought_servers;
mod bytes;
mod choices;
mod closing;
mod documentation;
mod fuzz_corpus;
mod golden;
mod handshake;
mod history;
mod hostile;
mod slow_client;
mod tools;
mod turns;
mod workspace;
mod world;
