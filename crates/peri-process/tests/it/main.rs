//! Real processes under a real supervisor.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod deaths;
mod kills;
mod many;
mod stage;
mod starts;
