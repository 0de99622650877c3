//! The last steps from a fork of the leader to the program that was asked for.
//!
//! Owns: the session, signal state, standard streams and environment that a command starts with. Must not: return to the
//! leader's work. Invariant: the program holds descriptors 0, 1 and 2 and no other.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

use crate::wire::{Input, Order, Output};

/// Becomes the program of `order`. Comes back only where that fails, with the reason for a person.
pub(super) fn become_program(order: &Order, descriptors: Vec<OwnedFd>, leader: Pid) -> String {
    let result = prepare(order, descriptors, leader).map(|mut command| explain_exec(&order.program, &command.exec()));
    match result {
        Ok(reason) | Err(reason) => reason,
    }
}

fn prepare(order: &Order, descriptors: Vec<OwnedFd>, leader: Pid) -> Result<Command, String> {
    setsid().map_err(|error| format!("no session of its own: {error}"))?;
    // A command must not outlive its leader by killing it. This reaches only the command itself; what it has started is
    // the supervisor's to sweep.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| format!("no death signal: {error}"))?;
    if getppid() != Some(leader) {
        return Err("its leader has ended".to_owned());
    }
    SigSet::empty().thread_set_mask().map_err(|error| format!("the signal mask cannot be emptied: {error}"))?;
    std::env::set_current_dir(&order.cwd)
        .map_err(|error| format!("the working directory {} cannot be entered: {error}", order.cwd))?;

    let mut command = Command::new(&order.program);
    command.args(&order.args);
    for (name, value) in &order.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    connect(&mut command, order, descriptors).map_err(|error| format!("its standard streams: {error}"))?;
    Ok(command)
}

fn connect(command: &mut Command, order: &Order, descriptors: Vec<OwnedFd>) -> io::Result<()> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(|| io::Error::other("a descriptor did not arrive"));
    match order.streams.stdin {
        Input::Null => command.stdin(Stdio::null()),
        Input::Pipe => command.stdin(next()?),
    };
    let stdout = next()?;
    match order.streams.output {
        Output::Merged => command.stderr(stdout.try_clone()?),
        Output::Separate => command.stderr(next()?),
    };
    command.stdout(stdout);
    Ok(())
}

fn explain_exec(program: &str, error: &io::Error) -> String {
    let why: &dyn Display = match error.kind() {
        ErrorKind::NotFound if program.contains('/') => &"there is no such file, or its interpreter is missing",
        ErrorKind::NotFound => &"there is no such program in PATH",
        ErrorKind::PermissionDenied => &"it is not an executable file",
        ErrorKind::ArgumentListTooLong => &"its arguments and environment are too long for the system",
        _ => return error.to_string(),
    };
    format!("{why} ({error})")
}
