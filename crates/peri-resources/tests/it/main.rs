//! The stores and the surroundings, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests are native, and a test that meets what it did not expect fails at that place"
)]

mod concurrency;
mod conformance;
mod context;
mod damage;
mod fixture;
mod golden;
mod kill;
mod lean_commit;
mod opening;
mod record;
mod sample;
