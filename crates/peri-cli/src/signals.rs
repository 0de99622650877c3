//! Signals that end a run in order.
//!
//! Owns: which signals are taken. Invariant: a signal that the starting program chose to ignore (`nohup`, a background
//! job of a shell) stays ignored.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, StopSignal};

/// The stream of stop signals. From [`StopSignals::listen`] on, they do not kill the process any more.
pub struct StopSignals {
    hangup: Option<Signal>,
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl StopSignals {
    /// Begins to take signals.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn listen() -> io::Result<StopSignals> {
        let ignored = IgnoredSignals::read();
        let take = |kind: SignalKind| match ignored.contains(kind) {
            true => Ok(None),
            false => signal(kind).map(Some),
        };
        Ok(StopSignals {
            hangup: take(SignalKind::hangup())?,
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal. May be dropped and called again; no signal is lost by that.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            () = arrival(&mut self.hangup) => StopSignal::Hangup,
            () = arrival(&mut self.interrupt) => StopSignal::Interrupt,
            () = arrival(&mut self.terminate) => StopSignal::Terminate,
        }
    }
}

/// A second signal: no more waiting. The supervisor sees this process end, and ends what it has started.
pub fn leave_at_once(signal: StopSignal) -> ! {
    #[expect(clippy::exit, reason = "asked for twice; destructors would wait for what is being left behind")]
    std::process::exit(i32::from(Exit::Signal(signal).code()))
}

async fn arrival(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The signals that this process was started with as ignored, one bit each, the lowest for signal 1.
struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// Where the system does not tell, none is taken for ignored.
    fn read() -> IgnoredSignals {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        IgnoredSignals(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
    }

    fn contains(&self, kind: SignalKind) -> bool {
        let bit = kind.as_raw_value() - 1;
        self.0 >> bit & 1 == 1
    }
}
