//! A folder of its own for each test, and the real binary run in it.
//!
//! Owns: the environment that the binary sees (nothing of the test's own but PATH) and what a failing test prints: the
//! command, the folder, the tree and both outputs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use peri_testkit::watched::Watched;
use serde_json::Value;

/// The machine that runs the tests may be busy with others.
const PATIENCE: Duration = Duration::from_secs(90);

/// A home, a workspace, and nothing else.
pub struct Sandbox {
    folder: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder within");
        }
        let mut env = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("LC_ALL".to_owned(), "C.UTF-8".to_owned()),
        ]);
        env.insert("HOME".to_owned(), folder.path().join("home").display().to_string());
        Sandbox { folder, env }
    }

    /// A sandbox whose user has a model at that address, and a key for it.
    pub fn with_model(base_url: &str) -> Sandbox {
        Sandbox::new().and_model(base_url)
    }

    /// This sandbox, with such a model.
    #[must_use]
    pub fn and_model(self, base_url: &str) -> Sandbox {
        let sandbox = self.env("MY_KEY", "sk-test-secret");
        sandbox.write_user_settings(&serde_json::json!({
            "model": "mine/some-model",
            "providers": {"mine": {"protocol": "anthropic", "baseUrl": base_url, "apiKeyEnv": "MY_KEY"}},
        }));
        sandbox
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Sandbox {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The workspace as the binary names it: links resolved.
    pub fn canonical_work(&self) -> String {
        self.work().canonicalize().expect("a folder of ours").display().to_string()
    }

    /// Every file below a folder, in order.
    pub fn files_below(&self, folder: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of ours").flatten() {
                match entry.file_type().expect("an entry of ours").is_dir() {
                    true => folders.push(entry.path()),
                    false => files.push(entry.path()),
                }
            }
        }
        files.sort();
        files
    }

    pub fn user_settings(&self) -> PathBuf {
        self.home().join(".config/peri/settings.json")
    }

    pub fn data_dir(&self) -> PathBuf {
        self.home().join(".local/share/peri")
    }

    pub fn write_user_settings(&self, settings: &Value) {
        self.write(&self.user_settings(), &settings.to_string());
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("a folder above")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    /// A run of the binary in the workspace, not started yet.
    pub fn peri<'a>(&'a self, args: impl IntoIterator<Item = &'a str>) -> Invocation<'a> {
        Invocation {
            sandbox: self,
            args: args.into_iter().map(str::to_owned).collect(),
            cwd: self.work(),
            env: BTreeMap::new(),
            stdin: None,
            stdout: Reader::Patient,
            hangup: Hangup::Usual,
        }
    }
}

/// A command line to run.
pub struct Invocation<'a> {
    sandbox: &'a Sandbox,
    args: Vec<String>,
    cwd: PathBuf,
    env: BTreeMap<String, Option<String>>,
    stdin: Option<Vec<u8>>,
    stdout: Reader,
    hangup: Hangup,
}

/// What SIGHUP does to a process that does not care.
#[derive(Clone, Copy)]
enum Hangup {
    Usual,
    Ignored,
}

/// How long standard output is read.
#[derive(Clone, Copy)]
enum Reader {
    Patient,
    /// Closed after so many bytes.
    GoesAwayAfter(usize),
    /// Open, and not read for as long as the run lasts.
    Stuck,
    /// A full disk.
    Full,
}

impl<'a> Invocation<'a> {
    #[must_use]
    pub fn env(mut self, name: &str, value: Option<&str>) -> Invocation<'a> {
        self.env.insert(name.to_owned(), value.map(str::to_owned));
        self
    }

    #[must_use]
    pub fn cwd(mut self, cwd: &Path) -> Invocation<'a> {
        self.cwd = cwd.to_owned();
        self
    }

    #[must_use]
    pub fn stdin(mut self, bytes: &[u8]) -> Invocation<'a> {
        self.stdin = Some(bytes.to_vec());
        self
    }

    /// The reader of standard output goes away after so many bytes.
    #[must_use]
    pub fn stdout_closed_after(self, bytes: usize) -> Invocation<'a> {
        Invocation { stdout: Reader::GoesAwayAfter(bytes), ..self }
    }

    /// Nobody reads standard output while the run lasts.
    #[must_use]
    pub fn stdout_stuck(self) -> Invocation<'a> {
        Invocation { stdout: Reader::Stuck, ..self }
    }

    /// Standard output is a file on a full disk.
    #[must_use]
    pub fn stdout_full(self) -> Invocation<'a> {
        Invocation { stdout: Reader::Full, ..self }
    }

    /// Starts it as `nohup` does.
    #[must_use]
    pub fn ignoring_hangup(self) -> Invocation<'a> {
        Invocation { hangup: Hangup::Ignored, ..self }
    }

    /// Runs it to its end.
    pub fn run(self) -> Finished<'a> {
        let stdin = self.stdin.clone();
        let mut running = self.start();
        let pipe = running.child.stdin.take();
        if let (Some(bytes), Some(mut pipe)) = (stdin, pipe) {
            // A run that does not read its input closes the pipe; that is for the test to judge by the outcome.
            thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        running.finish()
    }

    /// Starts it, and leaves its standard input open.
    pub fn start(self) -> Running<'a> {
        let mut command = match self.hangup {
            Hangup::Usual => Command::new(env!("CARGO_BIN_EXE_peri")),
            Hangup::Ignored => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_peri")]);
                shell
            }
        };
        command.args(&self.args).current_dir(&self.cwd).env_clear().envs(&self.sandbox.env);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let stdout = match self.stdout {
            Reader::Full => File::options().write(true).open("/dev/full").expect("the device").into(),
            Reader::Patient | Reader::GoesAwayAfter(_) | Reader::Stuck => Stdio::piped(),
        };
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let pipe = child.stdout.take();
        let heard = Arc::new(Watched::<Heard>::default());
        let noted = Arc::clone(&heard);
        let (stdout, unread) = match self.stdout {
            Reader::Patient | Reader::Full => (pipe.map(|pipe| collect(pipe, noted)), None),
            Reader::GoesAwayAfter(bytes) => (pipe.map(|pipe| collect(pipe.take(bytes as u64), noted)), None),
            Reader::Stuck => (None, pipe),
        };
        let stderr = collect(child.stderr.take().expect("a pipe"), Arc::default());
        let Invocation { sandbox, args, cwd, .. } = self;
        Running { sandbox, args, cwd, child, heard, stdout, unread, stderr }
    }
}

/// A run under way.
pub struct Running<'a> {
    sandbox: &'a Sandbox,
    args: Vec<String>,
    cwd: PathBuf,
    pub child: Child,
    /// Of standard output.
    heard: Arc<Watched<Heard>>,
    /// None where nobody reads.
    stdout: Option<mpsc::Receiver<String>>,
    /// Standard output, where nobody reads it.
    pub unread: Option<ChildStdout>,
    stderr: mpsc::Receiver<String>,
}

impl<'a> Running<'a> {
    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the run is still there");
    }

    /// Blocks the thread until that many lines of standard output have come, or its end.
    #[track_caller]
    pub fn block_until_lines(&self, count: usize) {
        self.heard.block_until("lines of the run", |heard| (heard.ended || heard.lines >= count).then_some(()));
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Finished<'a> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break Some(status);
            }
            if Instant::now() > deadline {
                self.child.kill().expect("a child of ours");
                self.child.wait().expect("a child of ours");
                break None;
            }
            // Polling: std has no wait with a deadline.
            thread::sleep(Duration::from_millis(2));
        };
        let finished = Finished {
            sandbox: self.sandbox,
            args: self.args,
            cwd: self.cwd,
            status: status.unwrap_or_default(),
            stdout: self.stdout.map(|stdout| stdout.recv_timeout(PATIENCE).unwrap_or_default()).unwrap_or_default(),
            stderr: self.stderr.recv_timeout(PATIENCE).unwrap_or_default(),
        };
        finished.check(status.is_some(), "it did not end in time and was killed");
        finished
    }
}

/// How far a stream has come.
#[derive(Default)]
struct Heard {
    /// Those that came whole.
    lines: usize,
    ended: bool,
}

/// Reads a stream to its end on a thread of its own.
fn collect(stream: impl Read + Send + 'static, heard: Arc<Watched<Heard>>) -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, mut bytes) = (BufReader::new(stream), Vec::new());
        while stream.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            heard.update(|heard| heard.lines += usize::from(bytes.ends_with(b"\n")));
        }
        heard.update(|heard| heard.ended = true);
        drop(tx.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    rx
}

/// A run that has ended.
pub struct Finished<'a> {
    sandbox: &'a Sandbox,
    args: Vec<String>,
    cwd: PathBuf,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished<'_> {
    /// Fails the test with everything that is needed to understand it.
    #[track_caller]
    pub fn check(&self, holds: bool, what: &str) -> &Self {
        assert!(holds, "{what}\n{}", self.report());
        self
    }

    #[track_caller]
    pub fn code(&self, expected: i32) -> &Self {
        self.check(self.status.code() == Some(expected), &format!("exit code {expected} was expected"))
    }

    #[track_caller]
    pub fn stdout_is(&self, expected: &str) -> &Self {
        self.check(self.stdout == expected, &format!("this was expected on stdout:\n{expected}"))
    }

    #[track_caller]
    pub fn stdout_has(&self, part: &str) -> &Self {
        self.check(self.stdout.contains(part), &format!("`{part}` was expected on stdout"))
    }

    #[track_caller]
    pub fn stderr_has(&self, part: &str) -> &Self {
        self.check(self.stderr.contains(part), &format!("`{part}` was expected on stderr"))
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("stdout is not JSON: {error}\n{}", self.report()),
        }
    }

    /// Standard output as a JSON value a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parsed: Result<Vec<Value>, _> = self.stdout.lines().map(serde_json::from_str).collect();
        match parsed {
            Ok(values) => values,
            Err(error) => panic!("a line of stdout is not JSON: {error}\n{}", self.report()),
        }
    }

    fn report(&self) -> String {
        let mut text = format!("command: peri {:?}\ncwd: {}\nstatus: {}\n", self.args, self.cwd.display(), self.status);
        text.push_str("tree:\n");
        list_tree(self.sandbox.folder.path(), 1, &mut text);
        let _ = write!(text, "stdout:\n{}\nstderr:\n{}\n", self.stdout, self.stderr);
        text
    }
}

fn list_tree(folder: &Path, depth: usize, text: &mut String) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let size = path.symlink_metadata().map_or(0, |metadata| metadata.len());
        let name = path.file_name().unwrap_or_default().display().to_string();
        let _ = writeln!(text, "{:indent$}{name} ({size})", "", indent = depth * 2);
        if path.is_dir() && !path.is_symlink() {
            list_tree(&path, depth + 1, text);
        }
    }
}
