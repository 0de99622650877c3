//! A call in one line, and the files that it is about, from its arguments alone.

use peri_acp_types::{SessionEvent, ToolCall, ToolLocation, ToolSpec};

/// The longest title, in characters.
const TITLE_CHARS: usize = 120;

/// Arguments that say best what a call is about, the best first.
const TELLING_ARGUMENTS: [&str; 6] = ["command", "file_path", "pattern", "path", "url", "bash_id"];

/// The event that shows a call as it starts.
pub(crate) fn call_started(call: &ToolCall, spec: &ToolSpec, cwd: &str) -> SessionEvent {
    SessionEvent::ToolCallStarted {
        call: call.clone(),
        kind: spec.kind,
        title: title(call, cwd),
        locations: locations(call, cwd),
    }
}

/// `Bash: cargo test`, `Read: src/lib.rs`.
pub(crate) fn title(call: &ToolCall, cwd: &str) -> String {
    let Some(told) = TELLING_ARGUMENTS.iter().find_map(|key| call.arguments.str(key)) else {
        return call.name.clone();
    };
    let told = told.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/')).unwrap_or(told);
    let line = told.lines().next().unwrap_or_default().trim();
    let mut printable: String = line.chars().filter(|c| !c.is_control()).take(TITLE_CHARS).collect();
    if printable.len() < line.len() || told.trim_end().contains('\n') {
        printable.push('…');
    }
    format!("{}: {printable}", call.name)
}

fn locations(call: &ToolCall, cwd: &str) -> Vec<ToolLocation> {
    let Some(path) = call.arguments.str("file_path").or_else(|| call.arguments.str("path")) else {
        return Vec::new();
    };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
    let line =
        call.arguments.object().and_then(|map| map.get("offset")?.as_u64()).and_then(|line| line.try_into().ok());
    vec![ToolLocation { path, line }]
}
