//! What simulations of sessions are made of: chance that can be replayed, and a model, tools, a person and ports that do
//! what it says.
//!
//! Invariant: everything here draws from one [`Chance`], so that a seed and a single-threaded runtime give one run.

mod chance;
mod model;
mod person;
mod ports;
mod tools;

pub use chance::Chance;
pub use model::{Gates, SimulatedModel};
pub use person::Person;
pub use ports::{CWD, PlainPorts};
pub use tools::Tools;
