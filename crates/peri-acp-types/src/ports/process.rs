//! Child processes: for the terminal tools, stdio MCP servers and hooks.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};

/// Starts processes in such a way that none outlives Peri, however Peri ends.
#[async_trait::async_trait]
pub trait ProcessHost: Send + Sync {
    /// Starts a process as the leader of a group (and session) of its own.
    ///
    /// # Errors
    /// [`ProcessError`] where it did not start.
    async fn spawn(&self, spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError>;
}

/// What to start.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// Looked up in PATH unless it holds a slash.
    pub program: String,
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: String,
    /// Set or (None) removed, on top of Peri's own environment.
    pub env: BTreeMap<String, Option<String>>,
    pub stdin: ProcessStdin,
    pub output: ProcessOutput,
}

/// Where its standard input comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessStdin {
    /// `/dev/null`: a read sees the end at once.
    Null,
    Piped,
}

/// How its output comes to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessOutput {
    /// Standard output and error in one pipe, in the order of writing.
    Merged,
    /// Two pipes.
    Separate,
}

/// A started process and everything that descends from it. Dropping it kills them all.
#[async_trait::async_trait]
pub trait ChildProcess: Send + Sync {
    /// The process's id.
    fn pid(&self) -> u32;

    /// The write end of its standard input, once, if it is piped.
    fn take_stdin(&mut self) -> Option<Pin<Box<dyn AsyncWrite + Send>>>;

    /// The read end of its output (merged, or standard output), once. It ends when every holder of the pipe is gone,
    /// which may be long after the process: a reader must not wait for the end once the process has exited.
    fn take_stdout(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>>;

    /// The read end of standard error, once, if it is separate.
    fn take_stderr(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>>;

    /// Resolves when the process itself has exited; what it left in the background lives on. May be called again, and
    /// dropped without effect.
    async fn wait(&self) -> ProcessExit;

    /// Ends the process and all its descendants, those that left its group or session too: SIGTERM, and SIGKILL to what
    /// is left after `grace`. Idempotent.
    async fn kill(&self, grace: Duration) -> KillProof;
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessExit {
    Code(i32),
    Signal(i32),
    /// Its end was seen, its status was not; or the supervisor is gone.
    Unknown,
}

/// What is known after a kill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KillProof {
    /// None of its descendants is left: seen, not assumed.
    Gone,
    /// It could not be confirmed; the text says what is left or why it is not known.
    Unconfirmed(String),
}

/// A process that could not be started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("cannot start {program}: {reason}")]
    NotStarted { program: String, reason: String },
    /// The supervisor is not there or does not answer.
    #[error("no process supervisor: {0}")]
    NoSupervisor(String),
    /// This platform has no processes (wasm).
    #[error("processes cannot be started here")]
    Unsupported,
}
