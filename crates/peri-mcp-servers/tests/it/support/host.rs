//! A process host for these tests: no supervisor, but it finds every descendant by a mark in its environment.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};
use peri_acp_types::ports::{
    ChildProcess, KillProof, ProcessError, ProcessExit, ProcessHost, ProcessOutput, ProcessSpec, ProcessStdin,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio_util::compat::TokioAsyncReadCompatExt as _;

const MARK: &str = "PERI_TEST_TASK";

#[derive(Default)]
pub struct PlainHost {
    started: std::sync::Mutex<Vec<String>>,
    missing: std::sync::Mutex<Vec<String>>,
}

impl PlainHost {
    /// From now on this machine does not have that program.
    pub fn forget_program(&self, name: &str) {
        self.missing.lock().unwrap().push(name.to_owned());
    }

    /// Processes that are left of everything this host has started.
    pub fn left(&self) -> Vec<i32> {
        self.started.lock().unwrap().iter().flat_map(|mark| marked(mark)).collect()
    }
}

#[async_trait::async_trait]
impl ProcessHost for PlainHost {
    async fn spawn(&self, spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        assert_eq!((spec.stdin, spec.output), (ProcessStdin::Null, ProcessOutput::Merged));
        if self.missing.lock().unwrap().contains(&spec.program) {
            return Err(ProcessError::NotStarted { program: spec.program, reason: "not on this machine".to_owned() });
        }
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.args)
            .current_dir(&spec.cwd)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .env(MARK, &mark)
            .process_group(0);
        for (name, value) in &spec.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = tokio::process::Command::from(command)
            .spawn()
            .map_err(|error| ProcessError::NotStarted { program: spec.program.clone(), reason: error.to_string() })?;
        self.started.lock().unwrap().push(mark.clone());
        let pid = child.id().unwrap();
        let (exit_tx, exit) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await.unwrap();
            let code = status.code().map(ProcessExit::Code);
            exit_tx.send_replace(code.or(status.signal().map(ProcessExit::Signal)));
        });
        let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into()).unwrap();
        Ok(Box::new(PlainChild { pid, mark, stdout: Some(Box::pin(reader.compat())), exit }))
    }
}

struct PlainChild {
    pid: u32,
    mark: String,
    stdout: Option<Pin<Box<dyn AsyncRead + Send + Sync>>>,
    exit: watch::Receiver<Option<ProcessExit>>,
}

#[async_trait::async_trait]
impl ChildProcess for PlainChild {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn take_stdin(&mut self) -> Option<Pin<Box<dyn AsyncWrite + Send>>> {
        None
    }

    fn take_stdout(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        Some(self.stdout.take()?)
    }

    fn take_stderr(&mut self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        None
    }

    async fn wait(&self) -> ProcessExit {
        let mut exit = self.exit.clone();
        exit.wait_for(Option::is_some).await.map_or(ProcessExit::Unknown, |exit| exit.unwrap())
    }

    async fn kill(&self, grace: Duration) -> KillProof {
        self.signal(Signal::TERM);
        if tokio::time::timeout(grace, self.gone()).await.is_err() {
            self.signal(Signal::KILL);
            self.gone().await;
        }
        KillProof::Gone
    }
}

impl PlainChild {
    fn signal(&self, signal: Signal) {
        for pid in marked(&self.mark) {
            let _gone_already = kill_process(Pid::from_raw(pid).unwrap(), signal);
        }
    }

    async fn gone(&self) {
        while !marked(&self.mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for PlainChild {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Processes whose environment bears the mark. One that is a zombie has none.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes
        .filter(|pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}
