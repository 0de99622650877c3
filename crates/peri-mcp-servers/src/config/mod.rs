//! Where settings come from on a real machine: file bodies, named environment variables, and the record of trust.
//!
//! Owns: bounded reading, byte compare-and-swap, the folders that Peri uses, and which files a workspace's trust is about.
//! Must not: know a key of settings or which source wins; that is peri-config's. Invariant: a write of Peri's own keeps
//! the trust that was there before it, and nothing else makes or keeps trust.
//!
//! Everything here may block the thread, for as long as small local files take; a lock that somebody else holds is waited
//! for five seconds at most.

mod bounded;
mod dirs;
mod replace;
mod source;
mod trust_files;
mod trust_record;
mod trust_store;

pub use dirs::{DirsError, PeriDirs};
pub use source::FileConfigSource;
pub use trust_store::FileTrustStore;

/// Looks a variable of the environment up. Injected, so that a test or a demo has variables of its own.
pub type Variables = std::sync::Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
