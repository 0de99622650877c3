//! A connection to one server, on rmcp.
//!
//! Invariant: dropping the future of a call tells the server to cancel it; when the server is gone every call ends, with a
//! result that says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use peri_acp_types::ToolOutput;
use peri_acp_types::ports::{Clock, META_GRANTED_PATHS, META_HIDDEN_PATHS, META_TOOL_KIND, McpDuplex};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation, MetaObject,
    PaginatedRequestParams, RequestMetaObject, Tool,
};
use rmcp::service::{ClientLifecycleMode, RoleClient, RunningService, ServiceError, serve_client_with_lifecycle};
use serde_json::{Map, Value};

use super::content::output_of;
use super::transport::DuplexTransport;
use super::{HostWord, ListedTool, MAX_TOOLS, McpFailure};

/// Pages of a list of tools that are asked for.
const MAX_PAGES: usize = 64;
/// The longest text of a server's that goes into an error, in characters.
const MAX_ERROR_CHARS: usize = 2000;

/// A server that has started.
pub(super) struct Connection {
    server: String,
    peer: rmcp::Peer<RoleClient>,
    /// Taken by the first close. tokio's mutex: it is held while the connection ends.
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, ClientConfig>>>,
    /// The server has closed its end.
    ended: Arc<AtomicBool>,
}

impl Connection {
    /// Shakes hands and asks for the tools. Dropping the future ends the connection.
    ///
    /// # Errors
    /// [`McpFailure::Start`].
    pub(super) async fn start(
        server: &str,
        duplex: McpDuplex,
        clock: Arc<dyn Clock>,
    ) -> Result<(Connection, Vec<ListedTool>), McpFailure> {
        let failed = |reason: String| McpFailure::Start { server: server.to_owned(), reason };
        let ended = Arc::new(AtomicBool::new(false));
        let transport = DuplexTransport::new(duplex, ended.clone(), clock);
        let info =
            ClientConfig::new(ClientCapabilities::default(), Implementation::new("peri", env!("CARGO_PKG_VERSION")));
        let service = serve_client_with_lifecycle(info, transport, ClientLifecycleMode::Initialize)
            .await
            .map_err(|error| failed(shortened(&error.to_string())))?;
        let peer = service.peer().clone();
        let tools = list_tools(&peer).await.map_err(|error| failed(shortened(&error.to_string())))?;
        let service = tokio::sync::Mutex::new(Some(service));
        Ok((Connection { server: server.to_owned(), peer, service, ended }, tools))
    }

    /// Calls a tool. Never fails: what goes wrong is a result that says so.
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>, host: HostWord<'_>) -> ToolOutput {
        let mut request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut meta = MetaObject::new();
        for (key, paths) in [(META_GRANTED_PATHS, host.granted), (META_HIDDEN_PATHS, host.hidden)] {
            if !paths.is_empty() {
                meta.0.insert(key.to_owned(), Value::from(paths.to_vec()));
            }
        }
        if !meta.0.is_empty() {
            request.meta = Some(RequestMetaObject(meta));
        }
        match self.peer.call_tool_once(request).await {
            Ok(CallToolResponse::Complete(result)) => output_of(result),
            Ok(_) => ToolOutput::error(format!(
                "MCP server `{}` wants to go on with `{tool}` in a way that is not supported; what it has done is not known.",
                self.server
            )),
            Err(ServiceError::McpError(error)) => ToolOutput::error(shortened(&error.message)),
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => ToolOutput::error(format!(
                "MCP server `{}` is gone; what `{tool}` has done until then is not known. Its tools do not work for the \
                 rest of this session.",
                self.server
            )),
            Err(error) => {
                let reason = shortened(&error.to_string());
                ToolOutput::error(format!("MCP server `{}` gave no result for `{tool}`: {reason}", self.server))
            }
        }
    }

    /// Ends the connection and with it what the server runs for it. Returns what could not be confirmed.
    pub(super) async fn close(&self) -> Option<String> {
        let mut service = self.service.lock().await;
        if let Some(mut service) = service.take() {
            // Whether the task that served the connection panicked tells nothing about the server: `ended` does.
            let _ = service.close().await;
        }
        let ended = self.ended.load(Ordering::Acquire);
        (!ended).then(|| format!("MCP server `{}` has not confirmed its end", self.server))
    }
}

async fn list_tools(peer: &rmcp::Peer<RoleClient>) -> Result<Vec<ListedTool>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _page in 0..MAX_PAGES {
        let mut page = PaginatedRequestParams::default();
        page.cursor = cursor.take();
        let listed = peer.list_tools(Some(page)).await?;
        tools.extend(listed.tools.into_iter().map(listed_tool));
        // One more than are used, so that the caller can tell that some are left out.
        if listed.next_cursor.is_none() || tools.len() > MAX_TOOLS {
            break;
        }
        cursor = listed.next_cursor;
    }
    Ok(tools)
}

fn listed_tool(tool: Tool) -> ListedTool {
    let kind = tool.meta.as_ref().and_then(|meta| meta.0.get(META_TOOL_KIND)?.as_str().map(str::to_owned));
    ListedTool {
        kind,
        read_only: tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap_or(false),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: tool.schema_as_json_value(),
        name: tool.name.into_owned(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
