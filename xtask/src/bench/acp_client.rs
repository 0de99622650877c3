//! `peri acp` as a process, and a client of it that reads as fast as it can and looks at nothing but lines.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::endpoint::Endpoint;

/// Ticks in a second of `/proc/PID/stat`, on every Linux that Peri runs on.
const TICKS_PER_SECOND: u64 = 100;

pub struct AcpClient {
    peri: Child,
    requests: ChildStdin,
    lines: BufReader<ChildStdout>,
    next_id: u64,
}

impl AcpClient {
    /// Starts the process; nothing has been said yet.
    pub fn start(binary: &Path, home: &Path, endpoint: &Endpoint) -> anyhow::Result<AcpClient> {
        let mut peri = Command::new(binary)
            .args(["acp", "--model", "anthropic/scripted"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("PERI_HOME", home)
            .env("ANTHROPIC_API_KEY", "scripted")
            .env("ANTHROPIC_BASE_URL", &endpoint.base_url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let requests = peri.stdin.take().context("no standard input")?;
        let lines = BufReader::with_capacity(1 << 20, peri.stdout.take().context("no standard output")?);
        Ok(AcpClient { peri, requests, lines, next_id: 1 })
    }

    pub fn initialize(&mut self) -> anyhow::Result<()> {
        self.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}})).map(drop)
    }

    /// Opens a session and gives its id.
    pub fn new_session(&mut self, cwd: &Path) -> anyhow::Result<String> {
        let lines = self.request("session/new", &json!({"cwd": cwd, "mcpServers": []}))?;
        let answer: Value = serde_json::from_slice(lines.last().context("no answer")?)?;
        Ok(answer["result"]["sessionId"].as_str().context("no session id")?.to_owned())
    }

    /// Sends a prompt and gives every line up to its answer.
    pub fn prompt(&mut self, session: &str) -> anyhow::Result<Vec<Vec<u8>>> {
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Say much."}]});
        self.request("session/prompt", &prompt)
    }

    fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Vec<Vec<u8>>> {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.requests, "{request}")?;
        let mark = format!(r#""id":{id},"#);
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            if self.lines.read_until(b'\n', &mut line)? == 0 {
                bail!("peri acp is gone");
            }
            // Notifications have no id, and their first members are the version and the method.
            let head = &line[..line.len().min(60)];
            let is_answer = head.windows(mark.len()).any(|part| part == mark.as_bytes());
            lines.push(line);
            if is_answer {
                break;
            }
        }
        let answer = lines.last().map(Vec::as_slice).unwrap_or_default();
        if serde_json::from_slice::<Value>(answer)?.get("error").is_some() {
            bail!("{method} failed: {}", String::from_utf8_lossy(answer));
        }
        Ok(lines)
    }

    /// Processor time that the process has used so far, its ended threads included.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.peri.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| -> anyhow::Result<u64> { Ok(fields.get(index).context("a short line")?.parse()?) };
        // Fields 14 and 15, counted from the process number; two come before the bracket.
        Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 1000 / TICKS_PER_SECOND))
    }

    /// Memory of the process now, in KiB.
    pub fn resident_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.peri.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
    }

    /// Hangs up and waits for the end.
    pub fn end(mut self) -> anyhow::Result<()> {
        drop(self.requests);
        let status = self.peri.wait()?;
        if !status.success() {
            bail!("peri acp failed: {status}");
        }
        Ok(())
    }
}
