//! The terminal tools: Bash, BashOutput, KillBash.
//!
//! Must not judge a command (permission did) or wait for more than the command itself. Invariant: a call that is
//! cancelled leaves no process of its command behind.

mod capture;
mod clean;
mod excerpt;
mod spill;
mod task;
mod tasks;

use std::time::Duration;

use peri_acp_types::ports::{KillProof, ProcessExit};
use peri_acp_types::{CancellationToken, ToolOutput, as_millis};

pub(super) use tasks::Tasks;

use super::arguments::{BashArguments, BashOutputArguments, KillBashArguments};
use super::failure::Failure;
use task::{Pipe, Task, TaskState};

/// Characters of a task's label in a list.
const LISTED_CHARS: usize = 200;

/// Runs a Bash call: until the command ends, its time is over, or `stop` is cancelled.
pub(super) async fn bash(
    tasks: &Tasks,
    arguments: &BashArguments,
    stop: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let limits = tasks.limits();
    let limit = arguments.timeout.map_or(limits.default_timeout, Duration::from_millis).min(limits.max_timeout);
    if arguments.command.trim().is_empty() {
        return Err(Failure::new("command is empty."));
    }
    if arguments.command.contains('\0') {
        return Err(Failure::new("command holds a NUL character, which no shell can be given."));
    }
    let label = arguments.description.as_deref().unwrap_or(&arguments.command);
    let started = tokio::select! {
        started = tasks.start(&arguments.command, label) => started,
        () = stop.cancelled() => return Err(cancelled()),
    };
    let task = started.map_err(|error| Failure::new(format!("The command was not started: {error}.")))?;
    if arguments.run_in_background {
        task.goes_to_background();
        return Ok(ToolOutput::text(format!(
            "Started in the background as {}. Read its output with BashOutput, end it with KillBash.",
            task.id
        )));
    }
    // Should this call be dropped instead of cancelled, the command still goes.
    let guard = task.kill_token().drop_guard();
    let output = tokio::select! {
        state = task.ended() => ended(&task, &state),
        () = tasks.clock().sleep(limit) => still_running(&task, limit),
        () = stop.cancelled() => {
            task.kill().await;
            return Err(cancelled());
        }
    };
    guard.disarm();
    Ok(output)
}

/// Runs a BashOutput call.
pub(super) fn bash_output(tasks: &Tasks, arguments: &BashOutputArguments) -> Result<ToolOutput, Failure> {
    let Some(id) = &arguments.bash_id else { return Ok(ToolOutput::text(list(tasks))) };
    let task = tasks.get(id).ok_or_else(|| unknown(tasks, id))?;
    let state = task.state();
    let output = task.read().unwrap_or_else(|| "(no new output)".to_owned());
    Ok(ToolOutput::text(format!("[{}: {}]\n{output}", task.id, progress(tasks, &task, &state))))
}

/// Runs a KillBash call.
pub(super) async fn kill_bash(
    tasks: &Tasks,
    arguments: &KillBashArguments,
    stop: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let id = &arguments.bash_id;
    let task = tasks.get(id).ok_or_else(|| unknown(tasks, id))?;
    let already = match task.state() {
        TaskState::Exited { exit, pipe: Pipe::Closed } => {
            format!(" The command itself had ended before: {}.", how(exit))
        }
        TaskState::Running | TaskState::Exited { .. } | TaskState::Killed { .. } => String::new(),
    };
    let state = tokio::select! {
        state = task.kill() => state,
        () = stop.cancelled() => return Err(cancelled()),
    };
    match state {
        TaskState::Killed { proof: KillProof::Gone, .. } => {
            Ok(ToolOutput::text(format!("{id} was ended, and none of its processes is left.{already}")))
        }
        TaskState::Killed { proof: KillProof::Unconfirmed(reason), .. } => Err(Failure::new(format!(
            "{id} was told to end, but it is unknown whether all its processes are gone: {reason}.{already}"
        ))),
        TaskState::Running | TaskState::Exited { .. } => Err(Failure::new(format!("{id} has not ended."))),
    }
}

fn cancelled() -> Failure {
    Failure::new("The call was cancelled.")
}

/// The result of a command that has ended.
fn ended(task: &Task, state: &TaskState) -> ToolOutput {
    let (exit, pipe) = match state {
        TaskState::Exited { exit, pipe } => (Some(*exit), *pipe),
        TaskState::Killed { exit, .. } => (*exit, Pipe::Closed),
        TaskState::Running => (None, Pipe::Closed),
    };
    let mut notes = Vec::new();
    match exit {
        Some(ProcessExit::Code(0)) => {}
        Some(exit) => notes.push(capitalised(&how(exit))),
        None => notes.push("The command was ended before it was done".to_owned()),
    }
    if pipe == Pipe::Held {
        task.goes_to_background();
        notes.push(format!(
            "The command has ended, but something that it started is still running. Read its output with BashOutput and end it with KillBash, as {}",
            task.id
        ));
    }
    let output = task.read().map(|output| output.trim_end_matches('\n').to_owned());
    let mut text = output.unwrap_or_else(|| "(no output)".to_owned());
    for note in notes {
        text.push_str(&format!("\n[{note}.]"));
    }
    ToolOutput { is_error: exit != Some(ProcessExit::Code(0)), ..ToolOutput::text(text) }
}

/// The result of a command whose time in the foreground is over.
fn still_running(task: &Task, limit: Duration) -> ToolOutput {
    task.goes_to_background();
    let output = task.read().unwrap_or_else(|| "(no output so far)".to_owned());
    ToolOutput::text(format!(
        "{}\n[Still running after {}. It goes on in the background as {}: read on with BashOutput, end it with KillBash.]",
        output.trim_end_matches('\n'),
        seconds(limit),
        task.id
    ))
}

fn list(tasks: &Tasks) -> String {
    let lines: Vec<String> = tasks
        .in_background()
        .iter()
        .map(|task| {
            let label = task.label.split_whitespace().collect::<Vec<_>>().join(" ");
            let cut = label.char_indices().nth(LISTED_CHARS).map_or(label.len(), |(at, _)| at);
            let (label, rest) = label.split_at(cut);
            let more = if rest.is_empty() { "" } else { "…" };
            format!("{}: {}: {label}{more}", task.id, progress(tasks, task, &task.state()))
        })
        .collect();
    if lines.is_empty() { "There are no background tasks.".to_owned() } else { lines.join("\n") }
}

fn unknown(tasks: &Tasks, id: &str) -> Failure {
    Failure::new(format!("There is no background task `{id}`. {}", list(tasks)))
}

/// How far a task has come, in a few words.
fn progress(tasks: &Tasks, task: &Task, state: &TaskState) -> String {
    match state {
        TaskState::Running => {
            format!("running for {}", seconds(tasks.clock().monotonic().saturating_sub(task.started)))
        }
        TaskState::Exited { exit, pipe: Pipe::Closed } => how(*exit),
        TaskState::Exited { exit, pipe: Pipe::Held } => {
            format!("{}, but something that it started is still running", how(*exit))
        }
        TaskState::Killed { exit: Some(exit), .. } => format!("{}, and what it left running was ended", how(*exit)),
        TaskState::Killed { exit: None, proof: KillProof::Gone } => "ended on request".to_owned(),
        TaskState::Killed { exit: None, proof: KillProof::Unconfirmed(reason) } => {
            format!("told to end, outcome unknown: {reason}")
        }
    }
}

fn how(exit: ProcessExit) -> String {
    match exit {
        ProcessExit::Code(code) => format!("exit code {code}"),
        ProcessExit::Signal(signal) => format!("ended by signal {signal}{}", signal_name(signal)),
        ProcessExit::Unknown => "ended, exit code unknown".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn seconds(duration: Duration) -> String {
    format!("{} s", as_millis(duration) / 1000)
}
