//! Test doubles and drivers for every crate's tests.
//!
//! Owns: fakes of the ports, a scripted model, suites that hold implementations to a port's contract.
//! Must not: be a normal dependency of anything.

pub mod acp_driver;
pub mod diff;
pub mod fake_model;
pub mod fake_store;
pub mod gate;
pub mod invariants;
pub mod loopback_http;
pub mod model_server;
pub mod runtime;
pub mod simulation;
pub mod snapshot;
pub mod store_conformance;
pub mod watched;
pub mod wire_invariants;
