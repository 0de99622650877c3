//! Tests of the settings authority against sources in memory.

#![cfg(test)]

mod documents;
mod hostile;
mod layers;
mod local_rules;
mod memory;
mod models;
mod rules;
mod schema;
mod trust;
