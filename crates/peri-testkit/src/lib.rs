//! Skeleton.

pub mod store_conformance;
