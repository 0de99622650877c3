//! The face of this crate where there is no subreaper.
//!
//! Owns: the answer that processes cannot be started. Must not: start any, since nothing would end them.

use std::process::ExitCode;
use std::time::Duration;

use peri_acp_types::ports::{ChildProcess, KillProof, ProcessError, ProcessHost, ProcessSpec};

use crate::SupervisorCommand;

/// Refuses every spawn.
#[derive(Debug)]
pub struct SupervisedHost;

impl SupervisedHost {
    #[must_use]
    pub fn new(_command: SupervisorCommand) -> Self {
        Self
    }

    /// Nothing was started, so nothing is left.
    pub async fn shutdown(&self, _deadline: Duration) -> KillProof {
        KillProof::Gone
    }
}

#[async_trait::async_trait]
impl ProcessHost for SupervisedHost {
    async fn spawn(&self, _spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        Err(ProcessError::Unsupported)
    }
}

/// There is no supervisor here.
#[must_use]
pub fn supervise_main() -> ExitCode {
    ExitCode::FAILURE
}
