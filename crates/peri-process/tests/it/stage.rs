//! What every test plays on: a host, commands that carry a mark in their environment, and a look at who is still there.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::io::{AsyncRead, AsyncReadExt};
use peri_acp_types::ports::{
    ChildProcess, KillProof, ProcessError, ProcessHost, ProcessOutput, ProcessSpec, ProcessStdin,
};
use peri_process::{SUPERVISE_COMMAND, SupervisedHost, SupervisorCommand};

pub const FIXTURE: &str = env!("CARGO_BIN_EXE_peri-process-fixture");

const MARK: &str = "PERI_PROCESS_TEST";

/// For what should take milliseconds, on a machine that is busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// No survivor is allowed to be seen after this.
pub const SURVIVAL_LIMIT: Duration = Duration::from_secs(2);

pub struct Stage {
    pub host: SupervisedHost,
    pub mark: String,
}

impl Stage {
    pub fn new() -> Self {
        let command = SupervisorCommand { program: FIXTURE.into(), args: vec![SUPERVISE_COMMAND.to_owned()] };
        Self { host: SupervisedHost::new(command), mark: new_mark() }
    }

    /// A shell script under this stage's mark.
    pub fn script(&self, script: &str) -> ProcessSpec {
        ProcessSpec {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            cwd: "/".to_owned(),
            env: BTreeMap::from([(MARK.to_owned(), Some(self.mark.clone()))]),
            stdin: ProcessStdin::Null,
            output: ProcessOutput::Merged,
        }
    }

    pub async fn spawn(&self, spec: ProcessSpec) -> Box<dyn ChildProcess> {
        self.try_spawn(spec).await.unwrap()
    }

    pub async fn try_spawn(&self, spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        tokio::time::timeout(PATIENCE, self.host.spawn(spec)).await.expect("a spawn comes back")
    }

    /// Starts a script that prints "ready" when what it is to show is there.
    pub async fn ready(&self, script: &str) -> Box<dyn ChildProcess> {
        let mut child = self.spawn(self.script(script)).await;
        let mut output = child.take_stdout().unwrap();
        read_until(&mut output, "ready").await;
        child
    }

    pub fn survivors(&self) -> Vec<i32> {
        marked(&self.mark)
    }

    /// The end of every test: nothing is left, the supervisor included.
    pub async fn close(self) {
        assert_eq!(self.host.shutdown(PATIENCE).await, KillProof::Gone);
        assert_eq!(self.survivors(), [0; 0]);
    }
}

pub fn new_mark() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// For a command that is not started through a stage.
pub fn mark_variable(mark: &str) -> (&'static str, &str) {
    (MARK, mark)
}

/// The processes that carry a mark and live.
pub fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    all_pids().into_iter().filter(has_mark).collect()
}

pub fn all_pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The state letter and the parent of a process, if it exists.
pub fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub fn parent(pid: i32) -> i32 {
    state_and_parent(pid).unwrap().1
}

/// Waits for a state of the process table, which has no event for it.
pub async fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn read_until(output: &mut Pin<Box<dyn AsyncRead + Send>>, wanted: &str) -> String {
    let mut text = Vec::new();
    let read = async {
        let mut byte = [0];
        while !String::from_utf8_lossy(&text).contains(wanted) {
            assert_eq!(output.read(&mut byte).await.unwrap(), 1, "the output ends without {wanted:?}");
            text.push(byte[0]);
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("output arrives");
    String::from_utf8(text).unwrap()
}

pub async fn read_all(output: Option<Pin<Box<dyn AsyncRead + Send>>>) -> String {
    let mut text = String::new();
    let mut output = output.expect("a stream that is piped and not taken");
    tokio::time::timeout(PATIENCE, output.read_to_string(&mut text)).await.expect("output ends").unwrap();
    text
}

pub fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}
