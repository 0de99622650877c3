//! The stores and the surroundings, from outside.

mod conformance;
