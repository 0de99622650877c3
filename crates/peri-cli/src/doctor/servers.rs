//! The MCP servers that the settings name: can what they need be found? None of them is started or asked.

use peri_acp_types::ports::McpTransport;
use peri_config::{McpServer, Settings, Sourced};

use super::Finding;
use super::machine::find_program;
use crate::composition::Places;

/// A line for each server.
pub fn check(settings: &Settings, places: &Places) -> Vec<Finding> {
    settings.mcp_servers.iter().map(|(name, server)| server_found(name, server, places)).collect()
}

fn server_found(name: &str, server: &Sourced<McpServer>, places: &Places) -> Finding {
    let origin = &server.origin;
    if !server.value.enabled {
        return Finding::ok("mcp", format!("{name} is not started: switched off, or a variable is missing ({origin})"));
    }
    // As it is written: with its variables filled in, it may hold a secret.
    let shown = server.value.to_display_json();
    let written = |key: &str| shown.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    match &server.value.transport {
        McpTransport::Stdio { command, .. } => match find_program(command, places.environment(), places.cwd()) {
            Some(_) => Finding::ok(
                "mcp",
                format!("{name} starts `{}`, which is there; it was not started", written("command")),
            ),
            None => Finding::fault(
                "mcp",
                format!("{name} starts `{}`, which is no program that can be found ({origin})", written("command")),
                format!("install it, write its whole path, or set mcpServers.{name}.enabled to false"),
            ),
        },
        McpTransport::Http { .. } => Finding::ok("mcp", format!("{name} is at {}; it was not asked", written("url"))),
        McpTransport::Builtin(_) => Finding::ok("mcp", format!("{name} is built in")),
    }
}
