//! Resources: where threads rest and where a session's surroundings come from.
//!
//! Owns: the stored form of a thread ([`record`]), the stores ([`MemoryStore`], and natively `SqliteStore`) and the
//! surroundings of the frozen context (natively `LocalContext`). Must not: decide what a thread may become. Every store
//! asks the reducer of peri-acp-types and writes down what it says, so that a rule exists once.

mod cursor;
mod memory;
pub mod record;

#[cfg(not(target_arch = "wasm32"))]
mod context;
#[cfg(not(target_arch = "wasm32"))]
mod sqlite;

pub use memory::MemoryStore;

#[cfg(not(target_arch = "wasm32"))]
pub use context::{ContextEnvironment, LocalContext};
#[cfg(not(target_arch = "wasm32"))]
pub use sqlite::{JournalMode, SqliteConfig, SqliteStore, StoreOpenReport};
