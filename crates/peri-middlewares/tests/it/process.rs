//! A process host for tests: real processes, each with a group of its own.

use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::io::{AsyncRead, AsyncWrite};
use peri_acp_types::ports::{
    ChildProcess, Clock, KillProof, ProcessError, ProcessExit, ProcessHost, ProcessOutput, ProcessSpec,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

/// Starts processes by tokio.
#[derive(Default)]
pub struct TokioProcesses {
    /// Process ids, in the order of their start.
    pub started: watch::Sender<Vec<u32>>,
}

struct TokioProcess {
    pid: u32,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    child: Mutex<tokio::process::Child>,
}

#[async_trait::async_trait]
impl ProcessHost for TokioProcesses {
    async fn spawn(&self, spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        assert_eq!(spec.output, ProcessOutput::Separate);
        let mut command = Command::new(&spec.program);
        for (name, value) in &spec.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command
            .args(&spec.args)
            .current_dir(&spec.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let failed = |error: std::io::Error| ProcessError::NotStarted {
            program: spec.program.clone(),
            reason: error.to_string(),
        };
        let mut child = child.map_err(failed)?;
        let pid = child.id().expect("just started");
        self.started.send_modify(|started| started.push(pid));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Box::new(TokioProcess { pid, stdin, stdout, stderr, child: Mutex::new(child) }))
    }
}

#[async_trait::async_trait]
impl ChildProcess for TokioProcess {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn take_stdin(&mut self) -> Option<Pin<Box<dyn AsyncWrite + Send>>> {
        Some(Box::pin(self.stdin.take()?.compat_write()))
    }

    fn take_stdout(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        Some(Box::pin(self.stdout.take()?.compat()))
    }

    fn take_stderr(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        Some(Box::pin(self.stderr.take()?.compat()))
    }

    async fn wait(&self) -> ProcessExit {
        use std::os::unix::process::ExitStatusExt;
        match self.child.lock().await.wait().await {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => ProcessExit::Code(code),
                (None, Some(signal)) => ProcessExit::Signal(signal),
                (None, None) => ProcessExit::Unknown,
            },
            Err(_) => ProcessExit::Unknown,
        }
    }

    async fn kill(&self, _grace: Duration) -> KillProof {
        let group = format!("-{}", self.pid);
        // It fails where none of the group is left.
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().await;
        self.wait().await;
        KillProof::Gone
    }
}

/// The time of the machine.
pub struct TokioClock;

impl Clock for TokioClock {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
