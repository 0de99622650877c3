//! The connections of a session and what they offer.
//!
//! Invariant: what is offered is decided once, when the servers have started, in their order; a name is offered once.

use std::collections::HashSet;
use std::sync::Arc;

use peri_acp_types::ports::{McpServerSpec, McpTransport};
use peri_acp_types::{CommandSpec, ToolKind, ToolOrigin, ToolSpec};

use super::client::Connection;
use super::name::external_tool_name;
use super::prompt;
use super::redaction::Redaction;
use super::{ListedPrompt, ListedTool, MAX_PROMPTS, MAX_TOOLS, Started};
use crate::permission::ToolFilter;

/// What a session has of its servers.
#[derive(Default)]
pub(super) struct Pool {
    pub(super) connections: Vec<Arc<Connection>>,
    pub(super) tools: Vec<PooledTool>,
    pub(super) prompts: Vec<PooledPrompt>,
    /// Tools of external servers are not listed one by one, but found and called by two tools that stand for them.
    pub(super) is_deferred: bool,
}

/// A tool and where it is served.
pub(super) struct PooledTool {
    pub(super) spec: ToolSpec,
    /// As the server calls it.
    pub(super) served_as: String,
    pub(super) server: String,
    pub(super) connection: Arc<Connection>,
}

/// A prompt and where it is served.
pub(super) struct PooledPrompt {
    pub(super) command: CommandSpec,
    pub(super) listed: ListedPrompt,
    pub(super) connection: Arc<Connection>,
}

impl PooledTool {
    pub(super) fn is_external(&self) -> bool {
        matches!(self.spec.origin, ToolOrigin::External(_))
    }
}

impl Pool {
    /// Takes in what a server offers, in its order. Returns what had to be left out.
    pub(super) fn add(&mut self, server: &McpServerSpec, started: Started, hidden: &ToolFilter) -> Vec<String> {
        let Started { connection, tools, prompts, mut complaints } = started;
        let connection = Arc::new(connection);
        complaints.extend(self.add_tools(server, &connection, tools, hidden));
        complaints.extend(self.add_prompts(server, &connection, prompts));
        self.connections.push(connection);
        complaints
    }

    fn add_tools(
        &mut self,
        server: &McpServerSpec,
        connection: &Arc<Connection>,
        listed: Vec<ListedTool>,
        hidden: &ToolFilter,
    ) -> Vec<String> {
        let (name, redaction) = (&server.name, Redaction::of(&server.transport));
        let mut complaints = too_many(name, "tools", listed.len(), MAX_TOOLS);
        let mut known: HashSet<String> = self.tools.iter().map(|tool| tool.spec.name.clone()).collect();
        for tool in listed.into_iter().take(MAX_TOOLS) {
            let served_as = tool.name.clone();
            let spec = spec_of(server, tool);
            if hidden.hides(&spec) {
                continue;
            }
            if !known.insert(spec.name.clone()) {
                let tool = redaction.legible(&served_as);
                complaints.push(format!("MCP server `{name}` lists `{tool}` twice; the first is used"));
                continue;
            }
            let connection = connection.clone();
            self.tools.push(PooledTool { spec, served_as, server: name.clone(), connection });
        }
        complaints
    }

    fn add_prompts(
        &mut self,
        server: &McpServerSpec,
        connection: &Arc<Connection>,
        listed: Vec<ListedPrompt>,
    ) -> Vec<String> {
        let (name, redaction) = (&server.name, Redaction::of(&server.transport));
        let mut complaints = too_many(name, "prompts", listed.len(), MAX_PROMPTS);
        for listed in listed.into_iter().take(MAX_PROMPTS) {
            let command = prompt::command_of(name, &listed);
            if self.prompts.iter().any(|known| known.command.name == command.name) {
                let prompt = redaction.legible(&listed.name);
                complaints.push(format!("MCP server `{name}` lists the prompt `{prompt}` twice; the first is used"));
                continue;
            }
            self.prompts.push(PooledPrompt { command, listed, connection: connection.clone() });
        }
        complaints
    }

    pub(super) fn find_tool(&self, name: &str) -> Option<&PooledTool> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }
}

fn too_many(server: &str, what: &str, count: usize, limit: usize) -> Vec<String> {
    let complaint = || format!("MCP server `{server}` lists {count} {what}; only the first {limit} are used");
    (count > limit).then(complaint).into_iter().collect()
}

fn origin_of(server: &McpServerSpec) -> ToolOrigin {
    match server.transport {
        McpTransport::Builtin(_) => ToolOrigin::Builtin(server.name.clone()),
        McpTransport::Stdio { .. } | McpTransport::Http { .. } => ToolOrigin::External(server.name.clone()),
    }
}

/// The tool as the session knows it. What an external server says of its own harmlessness is not taken over.
fn spec_of(server: &McpServerSpec, tool: ListedTool) -> ToolSpec {
    let origin = origin_of(server);
    let (name, kind, read_only) = match origin {
        ToolOrigin::Builtin(_) => {
            (tool.name, ToolKind::from_word(tool.kind.as_deref().unwrap_or_default()), tool.read_only)
        }
        ToolOrigin::External(_) => (external_tool_name(&server.name, &tool.name), ToolKind::Other, false),
    };
    ToolSpec { name, description: tool.description, input_schema: tool.input_schema, kind, read_only, origin }
}
