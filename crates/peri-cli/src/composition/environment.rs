//! The environment of a run: its variables, and nothing read anywhere else.
//!
//! Owns: the one look at the process's variables. Invariant: the demo's run sees only the variables that it was given.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Variables by name.
#[derive(Clone)]
pub enum Environment {
    /// Those of this process.
    Process,
    /// These and no others.
    Fixed(Arc<BTreeMap<String, String>>),
}

impl Environment {
    /// The variable's value; None also where it is not UTF-8.
    pub fn var(&self, name: &str) -> Option<String> {
        match self {
            Environment::Process => std::env::var(name).ok(),
            Environment::Fixed(variables) => variables.get(name).cloned(),
        }
    }
}
