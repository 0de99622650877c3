//! Greps a directory by the workspace server, through its MCP connection: `grep DIRECTORY`, then the arguments of a Grep
//! call as JSON on each line of standard input. Each is answered by a line: the call's time in microseconds, the lines of
//! its result, and whether it failed. `cargo xtask bench grep` measures with it.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use peri_acp_types::ports::{ChildProcess, Clock, McpDuplex, ProcessError, ProcessHost, ProcessSpec};
use peri_mcp_servers::workspace::{BashLimits, WorkspacePorts, WorkspaceServer};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let root = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: grep DIRECTORY")?);
    let ports = WorkspacePorts {
        process: Arc::new(NoProcesses),
        clock: Arc::new(RunningClock(Instant::now())),
        spill_dir: std::env::temp_dir(),
        limits: BashLimits::default(),
        env: BTreeMap::new(),
        home: None,
    };
    let server = WorkspaceServer::new(&ports, &[root])?;
    let (mut ours, theirs) = McpDuplex::pair(8);
    let serving = tokio::spawn(server.serve(theirs));
    introduce(&mut ours).await?;
    let mut stdout = std::io::stdout().lock();
    for (id, line) in std::io::stdin().lock().lines().enumerate() {
        let arguments: Value = serde_json::from_str(&line?)?;
        let started = Instant::now();
        let result = request(&mut ours, id + 1, "tools/call", json!({"name": "Grep", "arguments": arguments})).await?;
        let micros = started.elapsed().as_micros();
        let lines = result["content"][0]["text"].as_str().map_or(0, |text| text.lines().count());
        writeln!(stdout, "{micros} {lines} {}", result["isError"] == json!(true))?;
        stdout.flush()?;
    }
    drop(ours);
    Ok(serving.await??)
}

async fn introduce(server: &mut McpDuplex) -> Result<(), Failure> {
    let client = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "grep", "version": "0"},
    });
    request(server, 0, "initialize", client).await?;
    server.outgoing.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    Ok(())
}

/// Sends a request and waits for its answer.
async fn request(server: &mut McpDuplex, id: usize, method: &str, params: Value) -> Result<Value, Failure> {
    server.outgoing.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
    while let Some(mut message) = server.incoming.next().await {
        if message["id"] == json!(id) {
            return match message.get("error") {
                None => Ok(message["result"].take()),
                Some(error) => Err(error.to_string().into()),
            };
        }
    }
    Err("the server is gone".into())
}

struct NoProcesses;

#[async_trait::async_trait]
impl ProcessHost for NoProcesses {
    async fn spawn(&self, spec: ProcessSpec) -> Result<Box<dyn ChildProcess>, ProcessError> {
        Err(ProcessError::NotStarted { program: spec.program, reason: "only searches here".to_owned() })
    }
}

struct RunningClock(Instant);

impl Clock for RunningClock {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}
