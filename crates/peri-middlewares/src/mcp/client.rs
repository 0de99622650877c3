//! A connection to one server, on rmcp.
//!
//! Invariant: dropping the future of a call tells the server to cancel it; when the server is gone every call ends, with a
//! result that says so.

use std::sync::Arc;

use peri_acp_types::ToolOutput;
use peri_acp_types::ports::{META_GRANTED_PATHS, META_HIDDEN_PATHS, META_TOOL_KIND, McpDuplex, McpServerSpec};
use peri_agent::SessionScope;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, MetaObject,
    PaginatedRequestParams, Prompt, RequestMetaObject, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService, ServiceError, serve_client_with_lifecycle,
};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::content::{output_of, text_of};
use super::handler::SessionHandler;
use super::health::Health;
use super::link::LOST;
use super::redaction::Redaction;
use super::transport::DuplexTransport;
use super::{
    HostWord, ListedPrompt, ListedTool, MAX_PROMPTS, MAX_TOOLS, McpFailure, McpPorts, PromptArgument, Started,
};

/// Pages of a list that are asked for.
const MAX_PAGES: usize = 64;
/// How often the list of tools is asked for again because it changed meanwhile.
const MAX_LISTS: usize = 3;
/// The longest text of a server's that goes into an error, in characters.
const MAX_ERROR_CHARS: usize = 2000;

/// A server that has started.
pub(super) struct Connection {
    server: String,
    peer: rmcp::Peer<RoleClient>,
    /// Taken by the first close. tokio's mutex: it is held while the connection ends.
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, SessionHandler>>>,
    health: Arc<Health>,
    /// How many calls run.
    calls: watch::Sender<usize>,
}

impl Connection {
    /// Shakes hands and asks for tools and prompts, if it has any. Dropping the future ends the connection.
    ///
    /// # Errors
    /// [`McpFailure::Start`].
    pub(super) async fn start(
        server: &McpServerSpec,
        session: &SessionScope,
        duplex: McpDuplex,
        ports: &McpPorts,
        health: Arc<Health>,
    ) -> Result<Started, McpFailure> {
        let redaction = Redaction::of(&server.transport);
        let failed = |reason: String| McpFailure::Start {
            server: server.name.clone(),
            reason: shortened(&redaction.text(&reason)),
        };
        let calls = watch::Sender::new(0);
        let handler = SessionHandler {
            server: server.name.clone(),
            session_id: session.session_id,
            roots: server.roots.clone(),
            broker: ports.broker.clone(),
            health: health.clone(),
            calls: calls.subscribe(),
        };
        let transport = DuplexTransport::new(duplex, redaction.clone(), health.clone(), ports.clock.clone());
        let service = serve_client_with_lifecycle(handler, transport, ClientLifecycleMode::Initialize)
            .await
            .map_err(|error| failed(words_for_start(error)))?;
        let peer = service.peer().clone();
        let offers = peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let mut complaints = Vec::new();
        let tools = match offers.tools {
            Some(_) => list_tools(&peer, &health).await.map_err(|error| failed(words_for(error)))?,
            None => Vec::new(),
        };
        let prompts = match offers.prompts {
            Some(_) => list_prompts(&peer).await.unwrap_or_else(|error| {
                let name = &server.name;
                complaints
                    .push(format!("MCP server `{name}` does not list its prompts: {}", shortened(&words_for(error))));
                Vec::new()
            }),
            None => Vec::new(),
        };
        complaints.extend(health.take_unusable().map(|what| format!("MCP server `{}` {what}", server.name)));
        let service = tokio::sync::Mutex::new(Some(service));
        let connection = Connection { server: server.name.clone(), peer, service, health, calls };
        Ok(Started { connection, tools, prompts, complaints })
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
        let _running = RunningCall::begin(&self.calls);
        match self.peer.call_tool_once(request).await {
            Ok(CallToolResponse::Complete(result)) => output_of(result),
            Ok(_) => ToolOutput::error(format!(
                "MCP server `{}` wants to go on with `{tool}` in a way that is not supported; what it has done is not known.",
                self.server
            )),
            Err(ServiceError::McpError(error)) if error.code.0 != LOST => ToolOutput::error(shortened(&error.message)),
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => ToolOutput::error(format!(
                "MCP server `{}` is gone; what `{tool}` has done until then is not known. Its tools do not work for the \
                 rest of this session.",
                self.server
            )),
            Err(error) => ToolOutput::error(format!(
                "MCP server `{}` gave no result for `{tool}`: {}. What it has done until then is not known.",
                self.server,
                shortened(&words_for(error))
            )),
        }
    }

    /// The text of a prompt.
    ///
    /// # Errors
    /// A text for the user.
    pub(super) async fn prompt(&self, prompt: &str, arguments: Map<String, Value>) -> Result<String, String> {
        let request = GetPromptRequestParams::new(prompt).with_arguments(arguments);
        let _running = RunningCall::begin(&self.calls);
        match self.peer.get_prompt_once(request).await {
            Ok(GetPromptResponse::Complete(result)) => Ok(text_of(result)),
            Ok(_) => Err(format!("MCP server `{}` answers in a way that is not supported", self.server)),
            Err(error) => {
                Err(format!("MCP server `{}` does not give `{prompt}`: {}", self.server, shortened(&words_for(error))))
            }
        }
    }

    /// Whether its tools have changed since this was last asked.
    pub(super) fn take_changed_tools(&self) -> bool {
        self.health.take_changed_tools()
    }

    /// Ends the connection and with it what the server runs for it. Returns what could not be confirmed.
    pub(super) async fn close(&self) -> Option<String> {
        let mut service = self.service.lock().await;
        if let Some(mut service) = service.take() {
            // Whether the task that served the connection panicked tells nothing about the server: its health does.
            let _ = service.close().await;
        }
        (!self.health.has_ended()).then(|| format!("MCP server `{}` has not confirmed its end", self.server))
    }
}

/// Counts a call while it runs.
struct RunningCall<'a>(&'a watch::Sender<usize>);

impl RunningCall<'_> {
    fn begin(calls: &watch::Sender<usize>) -> RunningCall<'_> {
        calls.send_modify(|running| *running += 1);
        RunningCall(calls)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

/// Asks again where the list has changed meanwhile, as servers do that wait for the handshake.
async fn list_tools(peer: &rmcp::Peer<RoleClient>, health: &Health) -> Result<Vec<ListedTool>, ServiceError> {
    let mut tools = Vec::new();
    for _list in 0..MAX_LISTS {
        health.forget_unusable();
        tools = list_tools_once(peer).await?;
        if !health.take_changed_tools() {
            break;
        }
    }
    Ok(tools)
}

async fn list_tools_once(peer: &rmcp::Peer<RoleClient>) -> Result<Vec<ListedTool>, ServiceError> {
    let mut tools = Vec::new();
    let mut page = PaginatedRequestParams::default();
    for _page in 0..MAX_PAGES {
        let listed = peer.list_tools(Some(page.clone())).await?;
        tools.extend(listed.tools.into_iter().map(listed_tool));
        page.cursor = listed.next_cursor;
        // One more than are used, so that the caller can tell that some are left out.
        if page.cursor.is_none() || tools.len() > MAX_TOOLS {
            break;
        }
    }
    Ok(tools)
}

async fn list_prompts(peer: &rmcp::Peer<RoleClient>) -> Result<Vec<ListedPrompt>, ServiceError> {
    let mut prompts = Vec::new();
    let mut page = PaginatedRequestParams::default();
    for _page in 0..MAX_PAGES {
        let listed = peer.list_prompts(Some(page.clone())).await?;
        prompts.extend(listed.prompts.into_iter().map(listed_prompt));
        page.cursor = listed.next_cursor;
        if page.cursor.is_none() || prompts.len() > MAX_PROMPTS {
            break;
        }
    }
    Ok(prompts)
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

fn listed_prompt(prompt: Prompt) -> ListedPrompt {
    let arguments = prompt.arguments.unwrap_or_default().into_iter();
    ListedPrompt {
        description: prompt.description.or(prompt.title).unwrap_or_default(),
        arguments: arguments
            .map(|argument| PromptArgument { name: argument.name, required: argument.required.unwrap_or(false) })
            .collect(),
        name: prompt.name,
    }
}

/// Reads on from "did not start:".
fn words_for_start(error: ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => error.message.into_owned(),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection before it answered".to_owned(),
        other => other.to_string(),
    }
}

fn words_for(error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.into_owned(),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => "it is gone".to_owned(),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
