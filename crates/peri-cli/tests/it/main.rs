//! The real binary, from outside.

mod sandbox;
