//! The controller on fakes of its ports: what a session is made of, and how it is found and ended.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod assembly;
mod change;
mod life;
mod servers;
mod world;
