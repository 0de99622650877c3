//! Child processes that never outlive peri, however peri ends.
//!
//! Owns: the [`ProcessHost`](peri_acp_types::ports::ProcessHost) port, the supervisor process behind it, and the proof that
//! a killed job is gone. Must not: buffer or interpret output, or own a session, a database lease, a protocol or UI. A
//! pipe's own capacity bounds what a command can write ahead of its reader.
//!
//! ```text
//! peri ── control socket ── supervisor ─┬─ leader ── command ── ...       a leader is a fork of the supervisor;
//!   └──── one socket per job ───────────┴─ leader ── command ── ...       what descends from it is its job
//! ```
//!
//! Supervisor and leaders are subreapers: a process that leaves its group and session and forks twice still descends from
//! its leader. The end of a socket is the signal for everything: peri's end of the control socket closes however peri
//! dies, and then all jobs are ended; a job socket that closes ends its job. If the supervisor is killed, the leaders
//! notice and end their jobs; if a leader is killed, what it leaves falls to the supervisor, which ends it.
//!
//! What is guaranteed, what is not, and how to mount it: see the crate's README.
//!
//! Invariant: [`KillProof::Gone`](peri_acp_types::ports::KillProof::Gone) is said only where it was seen that nothing is
//! left.
//!
//! The implementation is for Linux (5.3 or later for all guards; `/proc` must be mounted). Elsewhere there is no
//! subreaper: [`SupervisedHost`] compiles and answers every spawn with
//! [`ProcessError::Unsupported`](peri_acp_types::ports::ProcessError::Unsupported).

use std::path::PathBuf;

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod reports;
#[cfg(target_os = "linux")]
mod streams;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use host::SupervisedHost;
#[cfg(target_os = "linux")]
pub use supervise::supervise_main;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{SupervisedHost, supervise_main};

/// The hidden command that makes a program the supervisor: with it as first argument, `main` calls [`supervise_main`] and
/// does nothing else.
pub const SUPERVISE_COMMAND: &str = "__supervise";

/// How to start the supervisor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SupervisorCommand {
    pub program: PathBuf,
    /// The program's `main` recognises them and calls [`supervise_main`].
    pub args: Vec<String>,
}

impl SupervisorCommand {
    /// The running program itself with [`SUPERVISE_COMMAND`], even if its file has been replaced or removed meanwhile.
    #[must_use]
    pub fn this_program() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: vec![SUPERVISE_COMMAND.to_owned()] }
    }
}
