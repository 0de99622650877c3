//! The contracts' own rules.

mod thread;
