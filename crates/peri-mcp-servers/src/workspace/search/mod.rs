//! The search tools: Glob and Grep, in this process, on several threads.
//!
//! Must not follow links or leave the base directory. Invariant: memory and output are bounded, and the same tree gives
//! the same answer in the same order, however the threads run.

mod excerpt;
mod glob;
mod grep;
mod hits;
mod walk;

pub(super) use glob::glob;
pub(super) use grep::grep;
