//! Test doubles and drivers for every crate's tests.
//!
//! Owns: fakes of the ports, a scripted model, suites that hold implementations to a port's contract.
//! Must not: be a normal dependency of anything.

pub mod acp_driver;
pub mod fake_model;
pub mod fake_store;
pub mod invariants;
pub mod runtime;
pub mod store_conformance;
