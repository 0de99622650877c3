//! The MCP servers of a session: builtin ones, those of settings, those that the client brings.
//!
//! Must not: start or reach a server. Invariants: the order is builtin, then settings' by name, then the client's in its
//! order, so that the model is shown the same tools in the same order; a name has one server, and a builtin one's is
//! nobody else's.

use std::collections::HashSet;

use peri_acp_types::NoticeKind;
use peri_acp_types::ports::{BuiltinSettings, McpServerSpec, McpTransport};
use peri_config::Settings;

use crate::OfferedServer;

/// Names of builtin servers, those that a session does not have among them.
const BUILTIN_NAMES: [&str; 2] = ["workspace", "config"];
/// Servers of settings and client together: each may be a process.
const MAX_SERVERS: usize = 64;
/// The longest name that a client may give a server, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The servers, and what the user should know of those that are not among them.
pub(crate) struct Servers {
    pub specs: Vec<McpServerSpec>,
    pub notices: Vec<(NoticeKind, String)>,
}

/// Chooses the servers of a session with those roots.
pub(crate) fn servers(settings: &Settings, offered: Vec<OfferedServer>, roots: &[String]) -> Servers {
    let mut complaints = Vec::new();
    let offered = usable(offered, &mut complaints);
    let mut external = configured(settings, &offered, &mut complaints);
    external.extend(offered);
    if external.len() > MAX_SERVERS {
        let left_out: Vec<&str> = external.iter().skip(MAX_SERVERS).map(|server| server.name.as_str()).collect();
        complaints.push(format!(
            "there are more than {MAX_SERVERS} MCP servers; these are not used: {}",
            left_out.join(", ")
        ));
        external.truncate(MAX_SERVERS);
    }
    // A tool's process has no business with the keys of model providers.
    let hidden_env: Vec<String> = settings.key_variables().map(str::to_owned).collect();
    let spec = |OfferedServer { name, transport }| McpServerSpec {
        name,
        roots: roots.to_vec(),
        hidden_env: hidden_env.clone(),
        transport,
    };
    let mut specs = vec![spec(workspace(settings))];
    specs.extend(external.into_iter().map(spec));
    Servers { specs, notices: complaints.into_iter().map(|text| (NoticeKind::Capability, text)).collect() }
}

/// Files and commands: what every session has.
fn workspace(settings: &Settings) -> OfferedServer {
    let builtin = BuiltinSettings {
        env: settings.env.clone(),
        command_timeout: settings.bash.default_timeout,
        max_command_timeout: settings.bash.max_timeout,
    };
    OfferedServer { name: "workspace".to_owned(), transport: McpTransport::Builtin(builtin) }
}

/// The client's servers, less those that cannot be.
fn usable(offered: Vec<OfferedServer>, complaints: &mut Vec<String>) -> Vec<OfferedServer> {
    let mut names = HashSet::new();
    let mut kept = Vec::new();
    for server in offered {
        match fault_of(&server, &names) {
            Some(fault) => complaints.push(format!("MCP server {:?} of the client is not used: {fault}", server.name)),
            None => {
                names.insert(server.name.clone());
                kept.push(server);
            }
        }
    }
    kept
}

fn fault_of(server: &OfferedServer, known: &HashSet<String>) -> Option<&'static str> {
    let name = server.name.as_str();
    if name.trim().is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        return Some("its name is empty, too long, or holds control characters");
    }
    if is_builtin(name) {
        return Some("that is the name of a server of Peri's own");
    }
    if matches!(server.transport, McpTransport::Builtin(_)) {
        return Some("a builtin server is nothing that a client can bring");
    }
    known.contains(name).then_some("it offers another one of that name before it")
}

/// The servers of settings that are to be started and that the client does not replace.
fn configured(settings: &Settings, offered: &[OfferedServer], complaints: &mut Vec<String>) -> Vec<OfferedServer> {
    let mut kept = Vec::new();
    for (name, server) in settings.mcp_servers.iter().filter(|(_, server)| server.value.enabled) {
        let origin = &server.origin;
        if is_builtin(name) {
            complaints.push(format!(
                "MCP server `{name}` ({origin}) is not used: that is the name of a server of Peri's own; rename it"
            ));
        } else if offered.iter().any(|offered| offered.name == *name) {
            complaints.push(format!("MCP server `{name}`: the client's is used in place of the one of {origin}"));
        } else {
            kept.push(OfferedServer { name: name.clone(), transport: server.value.transport.clone() });
        }
    }
    kept
}

/// A name that a person would take for a builtin one counts as it.
fn is_builtin(name: &str) -> bool {
    BUILTIN_NAMES.iter().any(|builtin| builtin.eq_ignore_ascii_case(name.trim()))
}
