//! `peri acp`: the agent for a client of another program, over standard input and output.
//!
//! Owns: the course of the process, from the first byte to the exit code. Must not: know a method of the protocol, or write
//! to standard output; what goes there is the protocol edge's.
//! Invariants: the end of the input, a client that is gone and a signal end the same way: turns are cancelled, sessions
//! settled, no child process is left; nothing that is stuck holds a signal.

mod streams;
mod traffic;

use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use futures::future::FusedFuture;
use peri_acp::{AgentSide, ServeError, byte_stream};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::timeout;

use crate::composition::Host;
use crate::console::{Console, Tone};
use crate::exit::{Exit, Failure, StopSignal};
use crate::signals::{StopSignals, leave_at_once};
use crate::stopping::{CHILDREN_LIMIT, Stopping};
use streams::{InputEnd, Output, input};

/// What a person is told who starts this on a terminal.
const FOR_PEOPLE: &str = "\
this is Peri's end of the Agent Client Protocol: it waits for JSON-RPC messages, one a line, on standard input. Editors
  start it; give them the command `peri acp` (peri acp --help shows settings for some). Ctrl-D ends it.";

/// How long the rest of the log may take, once the client is gone.
const REST_LIMIT: Duration = Duration::from_secs(1);

/// Whether each message is told on standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    Silent,
    Told,
}

/// Serves the client on standard input and output, and says how the process should exit.
pub async fn serve(host: &Host, traffic: Traffic, console: &mut Console, signals: &mut StopSignals) -> Exit {
    if std::io::stdin().is_terminal() {
        console.notice(FOR_PEOPLE).await;
    }
    let (side, end, log) = standard_streams(traffic);
    let mut course = Course { host, console, signals, end, log, stopping: Stopping::default() };
    let served = course.run(side).await;
    let stopping = course.stopping;
    let failure = match served {
        Some(Ok(())) => None,
        Some(Err(error)) => Some(failed(&error)),
        None => {
            // Nobody waits for the client any more; the sessions are ended as far as they can be.
            drop(host.end_sessions().await);
            Some(Failure::run("the client did not take what was left for it, and was not waited for any longer"))
        }
    };
    if let Some(failure) = &failure {
        console.failure(failure).await;
    }
    match (stopping.signal(), failure) {
        (Some(signal), _) => Exit::Signal(signal),
        (None, Some(failure)) => failure.exit,
        (None, None) => Exit::Success,
    }
}

fn standard_streams(traffic: Traffic) -> (AgentSide, InputEnd, Option<mpsc::Receiver<String>>) {
    let (from_client, to_client, log) = match traffic {
        Traffic::Silent => (None, None, None),
        Traffic::Told => {
            let (from_client, to_client, log) = traffic::taps();
            (Some(from_client), Some(to_client), Some(log))
        }
    };
    let (reader, end) = input(tokio::io::stdin(), from_client);
    let writer = Output::new(tokio::io::stdout(), to_client);
    (byte_stream(reader, writer), end, log)
}

fn failed(error: &ServeError) -> Failure {
    match error {
        ServeError::Transport(_) | ServeError::Connection(_) => Failure::run(error.to_string()),
        ServeError::Unsettled(_) => {
            Failure::run(error.to_string()).hint("loading such a session again shows how far it came")
        }
    }
}

fn broken(error: &JoinError) -> ServeError {
    ServeError::Connection(format!("the agent broke: {error}"))
}

struct Course<'a> {
    host: &'a Host,
    console: &'a mut Console,
    signals: &'a mut StopSignals,
    end: InputEnd,
    log: Option<mpsc::Receiver<String>>,
    stopping: Stopping,
}

impl Course<'_> {
    /// None where the end was asked for and did not come in time.
    async fn run(&mut self, side: AgentSide) -> Option<Result<(), ServeError>> {
        // A task of its own, so that it goes on while this one waits for children or for standard error.
        let mut serving = self.host.serve(side);
        let host = self.host;
        let mut store_notices = pin!(host.store_notices().fuse());
        loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => self.stop(signal),
                () = self.stopping.children_due() => {
                    drop(self.host.processes().shutdown(CHILDREN_LIMIT).await);
                    self.stopping.children_ended();
                }
                () = self.stopping.given_up() => {
                    serving.abort();
                    return None;
                }
                served = &mut serving => {
                    // Standard error may be stuck.
                    drop(timeout(REST_LIMIT, self.tell_rest()).await);
                    return Some(served.unwrap_or_else(|error| Err(broken(&error))));
                }
                () = self.end.reached(), if !self.stopping.has_begun() => self.stopping.begin(None),
                notices = &mut store_notices, if !store_notices.is_terminated() => self.notice(&notices).await,
                Some(line) = next(&mut self.log) => self.tell(&line).await,
            }
        }
    }

    fn stop(&mut self, signal: StopSignal) {
        match self.stopping.signal() {
            Some(first) => leave_at_once(first),
            None => {
                self.stopping.begin(Some(signal));
                self.end.cut();
            }
        }
    }

    /// What became of the store is told when it is known: the end may be days away.
    async fn notice(&mut self, notices: &[String]) {
        let told = async {
            for notice in notices {
                self.console.notice(notice).await;
            }
        };
        tokio::select! {
            biased;
            () = told => {}
            signal = self.signals.next() => self.stop(signal),
        }
    }

    /// What passed last, before the client was gone.
    async fn tell_rest(&mut self) {
        while let Some(line) = self.log.as_mut().and_then(|log| log.try_recv().ok()) {
            self.tell(&line).await;
        }
    }

    /// Standard error may be stuck, and then holds nothing but the log.
    async fn tell(&mut self, line: &str) {
        tokio::select! {
            biased;
            () = self.console.progress(Tone::Quiet, line) => {}
            signal = self.signals.next() => {
                self.log = None;
                self.stop(signal);
            }
        }
    }
}

async fn next(log: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match log {
        Some(log) => log.recv().await,
        None => std::future::pending().await,
    }
}
