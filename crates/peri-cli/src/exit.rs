//! How Peri ends: exit codes, and failures as people see them.
//!
//! Owns: the one place where a failure becomes words and a code. Invariant: every failure says what failed, with what
//! input, and (as a hint) what to do.

use std::fmt;
use std::process::ExitCode;

/// The way a run ended, as the calling program learns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success,
    Failure,
    /// The command line or the settings are at fault; nothing was run.
    Usage,
    /// A limit that was set stopped the work.
    Limit,
    /// A signal asked for the end, and the end was orderly.
    Signal(StopSignal),
}

/// The signals that end a run in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopSignal {
    Hangup,
    Interrupt,
    Terminate,
}

impl StopSignal {
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Hangup => "SIGHUP",
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        }
    }
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Limit => 3,
            Exit::Signal(StopSignal::Hangup) => 128 + 1,
            Exit::Signal(StopSignal::Interrupt) => 128 + 2,
            Exit::Signal(StopSignal::Terminate) => 128 + 15,
        }
    }
}

impl Exit {
    /// Of the ends of several turns, the one that counts: a signal, then the fault of the caller, then a failure, a limit.
    #[must_use]
    pub fn or_worse(self, other: Exit) -> Exit {
        let gravity = |exit: Exit| match exit {
            Exit::Success => 0,
            Exit::Limit => 1,
            Exit::Failure => 2,
            Exit::Usage => 3,
            Exit::Signal(_) => 4,
        };
        if gravity(other) > gravity(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// A failure that a person is told about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// The run itself failed.
    pub fn run(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Failure, message: message.into(), hint: None }
    }

    /// The command line or the settings are at fault.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, ..Failure::run(message) }
    }

    /// A limit that was set stopped the work.
    pub fn limit(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Limit, ..Failure::run(message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
