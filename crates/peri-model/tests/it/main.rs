//! The model edge as an agent sees it: an endpoint and a transport in, a stream of events out.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests say what is wrong by panicking, and the fixtures are files"
)]

mod endpoint;
mod failures;
mod fixtures;
mod fuzz_corpus;
mod openai_chat;
mod openai_responses;
mod requests;
mod streams;
mod time;
mod transport;
