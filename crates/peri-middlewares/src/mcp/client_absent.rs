//! Stands in for the MCP client where there is none yet.

use std::sync::Arc;

use peri_acp_types::ToolOutput;
use peri_acp_types::ports::{Clock, McpDuplex};
use serde_json::{Map, Value};

use super::{HostWord, ListedTool, McpFailure};

/// Cannot be made here.
pub(super) enum Connection {}

impl Connection {
    pub(super) async fn start(
        server: &str,
        _duplex: McpDuplex,
        _clock: Arc<dyn Clock>,
    ) -> Result<(Connection, Vec<ListedTool>), McpFailure> {
        let reason = "MCP servers are not supported on this platform yet".to_owned();
        Err(McpFailure::Start { server: server.to_owned(), reason })
    }

    pub(super) async fn call(&self, _tool: &str, _arguments: Map<String, Value>, _host: HostWord<'_>) -> ToolOutput {
        match *self {}
    }

    pub(super) async fn close(&self) -> Option<String> {
        match *self {}
    }
}
