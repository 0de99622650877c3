//! A process host whose children do nothing, end at once and are killed as the test says.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite, Cursor};
use peri_acp_types::ports::{ChildProcess, KillProof, ProcessError, ProcessExit, ProcessHost, ProcessSpec};

pub struct ScriptedHost {
    /// What every kill gives.
    pub proof: KillProof,
    next: AtomicU32,
    /// Numbers of the children that were killed, in the order of starting from 1.
    pub killed: Arc<Mutex<Vec<u32>>>,
}

impl ScriptedHost {
    pub fn new(proof: KillProof) -> ScriptedHost {
        ScriptedHost { proof, next: AtomicU32::new(1), killed: Arc::default() }
    }
}

#[async_trait::async_trait]
impl ProcessHost for ScriptedHost {
    async fn spawn(&self, _spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(ScriptedChild { number, proof: self.proof.clone(), killed: self.killed.clone() }))
    }
}

struct ScriptedChild {
    number: u32,
    proof: KillProof,
    killed: Arc<Mutex<Vec<u32>>>,
}

#[async_trait::async_trait]
impl ChildProcess for ScriptedChild {
    /// Beyond what Linux gives to a real process.
    fn pid(&self) -> u32 {
        1_000_000_000 + self.number
    }

    fn take_stdin(&mut self) -> Option<Pin<Box<dyn AsyncWrite + Send>>> {
        None
    }

    fn take_stdout(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        Some(Box::pin(Cursor::new(format!("child {}\n", self.number))))
    }

    fn take_stderr(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        None
    }

    async fn wait(&self) -> ProcessExit {
        ProcessExit::Code(0)
    }

    async fn kill(&self, _grace: Duration) -> KillProof {
        self.killed.lock().unwrap().push(self.number);
        self.proof.clone()
    }
}
