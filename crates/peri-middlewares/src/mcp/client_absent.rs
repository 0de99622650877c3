//! Stands in for the MCP client where there is none yet.

use std::sync::Arc;

use peri_acp_types::ToolOutput;
use peri_acp_types::ports::{McpDuplex, McpServerSpec};
use peri_agent::SessionScope;
use serde_json::{Map, Value};

use super::health::Health;
use super::{HostWord, McpFailure, McpPorts, Started};

/// Cannot be made here.
pub(super) enum Connection {}

impl Connection {
    pub(super) async fn start(
        server: &McpServerSpec,
        _session: &SessionScope,
        _duplex: McpDuplex,
        _ports: &McpPorts,
        _health: Arc<Health>,
    ) -> Result<Started, McpFailure> {
        let reason = "MCP servers are not supported on this platform yet".to_owned();
        Err(McpFailure::Start { server: server.name.clone(), reason })
    }

    pub(super) async fn call(&self, _tool: &str, _arguments: Map<String, Value>, _host: HostWord<'_>) -> ToolOutput {
        match *self {}
    }

    pub(super) async fn prompt(&self, _prompt: &str, _arguments: Map<String, Value>) -> Result<String, String> {
        match *self {}
    }

    pub(super) fn take_changed_tools(&self) -> bool {
        match *self {}
    }

    pub(super) async fn close(&self) -> Option<String> {
        match *self {}
    }
}
