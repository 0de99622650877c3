//! Servers that are processes: they speak on their standard input and output.
//!
//! Owns: the process, from its start until it and all that it started are gone; what it says on standard error, of which
//! the end is kept. Must not: know MCP beyond what a request and its answer are.
//! Invariants: the end of the process ends the connection at once, whoever still holds its pipes; a process is ended when
//! its client has left; secrets that were given to it are not repeated.

mod framing;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::{Either, FusedFuture, FutureExt, join, select};
use futures::io::{AsyncRead, AsyncWrite};
use futures::{AsyncReadExt, SinkExt, StreamExt, pin_mut, select_biased};
use peri_acp_types::ports::{
    ChildProcess, Clock, KillProof, McpConnectError, McpDuplex, McpServerSpec, McpTransport, ProcessExit, ProcessHost,
    ProcessOutput, ProcessSpec, ProcessStdin, Secret,
};
use serde_json::Value;

use super::link::{Link, Outstanding};
use super::redaction::Redaction;
use framing::{MAX_MESSAGE, MAX_WAITING, Outbox, ReadEnd, WriteEnd, read_messages};

/// Messages that wait in each direction before a sender waits.
const DUPLEX_CAPACITY: usize = 16;
/// How long a process may take to end by itself, once its input has ended.
const LEAVE_LIMIT: Duration = Duration::from_millis(800);
/// From the polite to the hard way of ending it.
const KILL_GRACE: Duration = Duration::from_millis(500);
/// How long the last output of a process is waited for, or the end of one whose pipes have ended.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(500);
/// How long a client may take to begin, if its server is gone by then.
const FIRST_REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// What is kept of standard error, in bytes.
const TAIL: usize = 4096;
/// What is shown of it, in characters.
const MAX_SHOWN: usize = 1000;

/// Starts a server. Its working directory is the first root.
///
/// # Errors
/// [`McpConnectError`] where the process does not start or the server is not one of this kind.
pub async fn open(
    host: &dyn ProcessHost,
    clock: Arc<dyn Clock>,
    server: &McpServerSpec,
) -> Result<Link, McpConnectError> {
    let McpTransport::Stdio { command, args, env } = &server.transport else {
        return Err(McpConnectError::Unsupported { server: server.name.clone(), what: "process for it" });
    };
    let failed = |reason: String| McpConnectError::Failed { server: server.name.clone(), reason };
    let spec = ProcessSpec {
        program: command.clone(),
        args: args.clone(),
        cwd: server.roots.first().cloned().unwrap_or_else(|| "/".to_owned()),
        env: variables(&server.hidden_env, env),
        stdin: ProcessStdin::Piped,
        output: ProcessOutput::Separate,
    };
    let child = host.spawn(spec).await.map_err(|error| failed(error.to_string()))?;
    let (ours, theirs) = McpDuplex::pair(DUPLEX_CAPACITY);
    let redaction = Redaction::of(&server.transport);
    let serving = Serving { name: server.name.clone(), child, duplex: theirs, clock, redaction };
    Ok(Link { duplex: ours, serving: serving.run().boxed() })
}

/// Its environment, as far as it differs from ours.
fn variables(hidden: &[String], given: &BTreeMap<String, Secret>) -> BTreeMap<String, Option<String>> {
    let hidden = hidden.iter().map(|name| (name.clone(), None));
    hidden.chain(given.iter().map(|(name, value)| (name.clone(), Some(value.reveal().to_owned())))).collect()
}

/// A process and its client.
struct Serving {
    name: String,
    child: Box<dyn ChildProcess>,
    /// The server's end.
    duplex: McpDuplex,
    clock: Arc<dyn Clock>,
    redaction: Redaction,
}

/// What ended the conversation.
enum Cause {
    ClientLeft,
    Exited(ProcessExit),
    /// One of its pipes has ended.
    Closed,
    /// It does not keep to the protocol. Reads on from "it".
    Breach(String),
}

impl Serving {
    async fn run(self) -> Result<(), String> {
        let Serving { name, mut child, duplex, clock, redaction } = self;
        let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
        let (Some(input), Some(output), Some(errors)) = pipes else { return kill(&name, child.as_ref()).await };
        let outstanding = Mutex::default();
        let tail = Mutex::default();
        let outbox = Outbox { input, client: duplex.incoming, waiting: VecDeque::new() };
        let reading = read_messages(output, &redaction, duplex.outgoing.clone(), &outstanding);
        let listening = fill_tail(&tail, errors);
        let (end, mut client) =
            converse(child.as_ref(), outbox, reading, listening, &outstanding, clock.as_ref()).await;
        let held = match end {
            // The client waits for the end of the process: the connection ends after it.
            None => Some(duplex.outgoing),
            Some(reason) => {
                hear_out(&mut client, &outstanding, clock.as_ref()).await;
                let last_words = lock(&tail).text(&redaction);
                answer_all(duplex.outgoing, &outstanding, &format!("it {reason}{last_words}")).await;
                None
            }
        };
        let killed = kill(&name, child.as_ref()).await;
        drop(held);
        killed
    }
}

/// Carries messages until one side has ended, and waits a little for what still comes. The reason, which reads on from
/// "it"; None where the client has left. With it what the client sends from now on.
async fn converse(
    child: &dyn ChildProcess,
    mut outbox: Outbox<impl AsyncWrite + Unpin>,
    reading: impl Future<Output = ReadEnd>,
    listening: impl Future<Output = ()>,
    outstanding: &Mutex<Outstanding>,
    clock: &dyn Clock,
) -> (Option<String>, mpsc::Receiver<Value>) {
    let (reading, listening) = (reading.fuse(), listening.fuse());
    pin_mut!(reading, listening);
    let cause = {
        let writing = poll_fn(|cx| outbox.poll_end(outstanding, cx)).fuse();
        let exiting = child.wait().fuse();
        pin_mut!(writing, exiting);
        loop {
            select_biased! {
                exit = exiting => break Cause::Exited(exit),
                end = writing => break Cause::from(end),
                end = reading => break Cause::from(end),
                () = listening => {}
            }
        }
    };
    let Outbox { input, client, waiting: _ } = outbox;
    // Here the process's input ends.
    drop(input);
    let rest = poll_fn(|cx| {
        let is_read = reading.is_terminated() || reading.as_mut().poll(cx).is_ready();
        let is_heard = listening.is_terminated() || listening.as_mut().poll(cx).is_ready();
        if is_read && is_heard { Poll::Ready(()) } else { Poll::Pending }
    });
    let end = match cause {
        Cause::ClientLeft => {
            let draining = rest.then(|()| std::future::pending::<()>());
            select(select(child.wait(), draining), clock.sleep(LEAVE_LIMIT)).await;
            None
        }
        Cause::Exited(exit) => {
            select(rest, clock.sleep(LAST_WORDS_LIMIT)).await;
            Some(words_for(exit))
        }
        Cause::Closed => match select(join(child.wait(), rest), clock.sleep(LAST_WORDS_LIMIT)).await {
            Either::Left(((exit, ()), _)) => Some(words_for(exit)),
            Either::Right(_) => Some("has closed its end of the connection".to_owned()),
        },
        Cause::Breach(reason) => Some(reason),
    };
    (end, client)
}

impl From<WriteEnd> for Cause {
    fn from(end: WriteEnd) -> Cause {
        match end {
            WriteEnd::ClientLeft => Cause::ClientLeft,
            WriteEnd::Closed => Cause::Closed,
            WriteEnd::Deaf => {
                Cause::Breach(format!("does not read its input: {} MiB wait for it", MAX_WAITING / 1024 / 1024))
            }
        }
    }
}

impl From<ReadEnd> for Cause {
    fn from(end: ReadEnd) -> Cause {
        match end {
            ReadEnd::ClientLeft => Cause::ClientLeft,
            ReadEnd::Closed => Cause::Closed,
            ReadEnd::TooLong => {
                Cause::Breach(format!("sent a message of more than {} MiB and was ended", MAX_MESSAGE / 1024 / 1024))
            }
        }
    }
}

fn words_for(exit: ProcessExit) -> String {
    match exit {
        ProcessExit::Code(code) => format!("ended with exit code {code}"),
        ProcessExit::Signal(signal) => format!("was ended by signal {signal}"),
        ProcessExit::Unknown => "ended".to_owned(),
    }
}

/// Takes in what the client has sent meanwhile, so that it is answered. A process may be gone before the client has begun:
/// its first request is waited for, since it is what a start is told to have failed by.
async fn hear_out(client: &mut mpsc::Receiver<Value>, outstanding: &Mutex<Outstanding>, clock: &dyn Clock) {
    let has_begun = lock(outstanding).has_begun();
    if !has_begun
        && let Either::Left((Some(message), _)) = select(client.next(), clock.sleep(FIRST_REQUEST_LIMIT)).await
    {
        lock(outstanding).sent(&message);
    }
    while let Some(Some(message)) = client.next().now_or_never() {
        lock(outstanding).sent(&message);
    }
}

async fn answer_all(mut client: mpsc::Sender<Value>, outstanding: &Mutex<Outstanding>, reason: &str) {
    let answers = lock(outstanding).give_up_all(reason);
    for answer in answers {
        if client.send(answer).await.is_err() {
            return;
        }
    }
}

async fn kill(name: &str, child: &dyn ChildProcess) -> Result<(), String> {
    match child.kill(KILL_GRACE).await {
        KillProof::Gone => Ok(()),
        KillProof::Unconfirmed(what) => Err(format!("MCP server `{name}` may not be gone: {what}")),
    }
}

/// The end of what a process says on standard error.
#[derive(Default)]
struct Tail(VecDeque<u8>);

/// Reads all of it, so that the process never waits for us.
async fn fill_tail(tail: &Mutex<Tail>, mut errors: impl AsyncRead + Unpin) {
    let mut chunk = [0; TAIL];
    // Output that cannot be read is output that has ended.
    while let Ok(read) = errors.read(&mut chunk).await
        && read > 0
    {
        let mut tail = lock(tail);
        tail.0.extend(chunk.iter().take(read));
        let surplus = tail.0.len().saturating_sub(TAIL);
        tail.0.drain(..surplus);
    }
}

impl Tail {
    /// Reads on from what ended the process; empty where it said nothing.
    fn text(&self, redaction: &Redaction) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        let said = String::from_utf8_lossy(&bytes);
        let text = if bytes.len() < TAIL { redaction.legible(&said) } else { redaction.end(&said) };
        let surplus = text.chars().count().saturating_sub(MAX_SHOWN);
        let shown: String = text.chars().skip(surplus).collect();
        match shown.trim() {
            "" => String::new(),
            shown => format!("; its last words on standard error: {shown}"),
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is changed in single steps; no panic can leave it half done.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
