//! The pool of MCP clients, and the bridge from their tools and prompts to a session's.
//!
//! Owns: the connections of one session, from [`Middleware::open`] to [`Middleware::close`]; tool names; what of a result
//! reaches the model; the ways to servers that are processes ([`stdio`]) or speak HTTP ([`http`]). Must not: judge a call
//! or implement a tool.
//! Invariants: the list of tools is made once and stays; a server that fails, hangs or talks rubbish costs its own tools
//! and one clear notice or result, never those of another; no notice and no error repeats a secret that a server was given.

mod arguments;
#[cfg(not(target_arch = "wasm32"))]
mod client;
#[cfg(target_arch = "wasm32")]
#[path = "client_absent.rs"]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod content;
mod deferred;
#[cfg(not(target_arch = "wasm32"))]
mod handler;
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "what reports on a server is the client"))]
mod health;
#[cfg(not(target_arch = "wasm32"))]
pub mod http;
mod limit;
mod link;
mod name;
mod pool;
mod prompt;
mod redaction;
#[cfg(not(target_arch = "wasm32"))]
mod screen;
pub mod stdio;
#[cfg(not(target_arch = "wasm32"))]
mod transport;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{Either, join_all, select};
use peri_acp_types::ports::{Clock, McpConnectError, McpConnector, McpServerSpec, UserInteractionBroker};
use peri_acp_types::{Content, NoticeKind, ToolArguments, ToolDetails, ToolOrigin, ToolOutput, ToolSpec};
use peri_agent::{Contribution, Middleware, PendingCall, SessionScope};
use peri_config::DEFAULT_MCP_TOOL_SCHEMA_BUDGET;

use crate::permission::ToolFilter;
use client::Connection;
use health::Health;
use pool::{Pool, PooledTool};
use redaction::Redaction;

pub use link::Link;
pub use name::external_tool_name;

/// From the start of a server to the end of its lists.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Tools that one server may bring.
const MAX_TOOLS: usize = 512;
/// Prompts that one server may bring.
const MAX_PROMPTS: usize = 128;

/// Names, descriptions and schemas of external tools that a request may carry, in bytes. Beyond it they are found and
/// called by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToolSchemaBudget(pub u64);

impl Default for ToolSchemaBudget {
    fn default() -> ToolSchemaBudget {
        ToolSchemaBudget(DEFAULT_MCP_TOOL_SCHEMA_BUDGET)
    }
}

/// What a session has of servers.
#[derive(Clone, Debug, Default)]
pub struct McpConfig {
    /// In the order in which the model sees their tools.
    pub servers: Vec<McpServerSpec>,
    /// Tools that are not shown.
    pub hidden: ToolFilter,
    pub tool_schema_budget: ToolSchemaBudget,
}

/// What the pool reaches the outside by.
#[derive(Clone)]
pub struct McpPorts {
    pub connector: Arc<dyn McpConnector>,
    pub clock: Arc<dyn Clock>,
    /// For servers that have a question.
    pub broker: Arc<dyn UserInteractionBroker>,
}

/// A tool as its server lists it.
#[derive(Clone, PartialEq, Debug)]
struct ListedTool {
    name: String,
    description: String,
    input_schema: serde_json::Value,
    /// The word of [`peri_acp_types::ToolKind`] that the server claims.
    kind: Option<String>,
    /// The server's claim.
    read_only: bool,
}

/// A prompt as its server lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ListedPrompt {
    name: String,
    description: String,
    arguments: Vec<PromptArgument>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct PromptArgument {
    name: String,
    required: bool,
}

/// A server that has started, and what it offers.
struct Started {
    connection: Connection,
    tools: Vec<ListedTool>,
    prompts: Vec<ListedPrompt>,
    /// What of it did not go well, in sentences that name the server.
    complaints: Vec<String>,
}

/// What the host tells a builtin server with a call; the model has no say in it.
#[derive(Clone, Copy, Default)]
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "read by the client"))]
struct HostWord<'a> {
    granted: &'a [String],
    hidden: &'a [String],
}

/// A server that cannot be used. The text names it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum McpFailure {
    #[error("{0}")]
    Connect(#[from] McpConnectError),
    #[error("MCP server `{server}` did not start: {reason}")]
    Start { server: String, reason: String },
    #[error("MCP server `{server}` was not ready within {} s", limit.as_secs())]
    Slow { server: String, limit: Duration },
}

/// What kept a server from being reached may quote it, or the settings.
fn without_secrets(error: McpConnectError, server: &McpServerSpec) -> McpConnectError {
    match error {
        McpConnectError::Failed { server: name, reason } => {
            McpConnectError::Failed { server: name, reason: Redaction::of(&server.transport).text(&reason) }
        }
        unsupported @ McpConnectError::Unsupported { .. } => unsupported,
    }
}

/// Serves one session.
pub struct McpMiddleware {
    config: McpConfig,
    ports: McpPorts,
    /// What `open` made. Held to read or replace, never over an await.
    pool: Mutex<Arc<Pool>>,
}

impl McpMiddleware {
    pub fn new(config: McpConfig, ports: McpPorts) -> McpMiddleware {
        McpMiddleware { config, ports, pool: Mutex::default() }
    }

    fn pool(&self) -> Arc<Pool> {
        // The pool is replaced whole; no panic can leave it half changed.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_pool(&self, pool: Pool) -> Arc<Pool> {
        let mut held = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, Arc::new(pool))
    }

    /// Starts a server and asks what it offers, within bounds.
    ///
    /// # Errors
    /// A sentence that names the server.
    async fn start(&self, server: &McpServerSpec, session: &SessionScope) -> Result<Started, String> {
        let health = Arc::new(Health::default());
        let starting = Box::pin(async {
            let duplex = self.ports.connector.open(server).await.map_err(|error| without_secrets(error, server))?;
            Connection::start(server, session, duplex, &self.ports, health.clone()).await
        });
        let started = match select(starting, self.ports.clock.sleep(START_LIMIT)).await {
            Either::Left((started, _)) => started,
            Either::Right(_) => Err(McpFailure::Slow { server: server.name.clone(), limit: START_LIMIT }),
        };
        match (started, health.rubbish()) {
            (Ok(mut started), Some(rubbish)) => {
                started.complaints.push(format!("MCP server `{}`: {rubbish}", server.name));
                Ok(started)
            }
            (Ok(started), None) => Ok(started),
            (Err(failure), Some(rubbish)) => Err(format!("{failure}; {rubbish}")),
            (Err(failure), None) => Err(failure.to_string()),
        }
    }

    /// The tools that the model is shown.
    fn shown(&self, pool: &mut Pool) -> Vec<ToolSpec> {
        let external = pool.tools.iter().filter(|tool| tool.is_external());
        let size: usize = external.map(|tool| deferred::size_of(&tool.spec)).sum();
        pool.is_deferred = u64::try_from(size).is_ok_and(|size| size > self.config.tool_schema_budget.0);
        let listed = pool.tools.iter().filter(|tool| !(pool.is_deferred && tool.is_external()));
        let mut shown: Vec<ToolSpec> = listed.map(|tool| tool.spec.clone()).collect();
        if pool.is_deferred {
            shown.extend(deferred::specs(pool));
        }
        shown
    }
}

#[async_trait::async_trait]
impl Middleware for McpMiddleware {
    fn name(&self) -> &'static str {
        "mcp"
    }

    async fn open(&self, session: &SessionScope) -> Contribution {
        // Side by side: a slow server holds up the session once, not once each.
        let starts = self.config.servers.iter().map(|server| self.start(server, session));
        let started = join_all(starts).await;
        let mut pool = Pool::default();
        let mut contribution = Contribution::default();
        for (server, started) in self.config.servers.iter().zip(started) {
            let (kind, complaints) = match started {
                Ok(started) => (NoticeKind::Capability, pool.add(server, started, &self.config.hidden)),
                // Of a kind that every client shows: what the user has set up is not there.
                Err(failure) => (NoticeKind::Configuration, vec![failure]),
            };
            contribution.notices.extend(complaints.into_iter().map(|it| (kind, it)));
        }
        contribution.tools = self.shown(&mut pool);
        contribution.commands = pool.prompts.iter().map(|prompt| prompt.command.clone()).collect();
        self.replace_pool(pool);
        contribution
    }

    async fn resolve_call(&self, call: &mut PendingCall) {
        let pool = self.pool();
        if !pool.is_deferred || call.call.name != deferred::CALL {
            return;
        }
        // What stands for nothing stays what it is, and is answered when it is run.
        if let Ok((tool, arguments)) = deferred::resolve(&pool, &call.call.arguments) {
            call.spec = tool.spec.clone();
            call.call.name = tool.spec.name.clone();
            call.call.arguments = ToolArguments::Object(arguments);
        }
    }

    async fn run_command(&self, name: &str, input: &str) -> Option<Result<String, String>> {
        let pool = self.pool();
        let prompt = pool.prompts.iter().find(|prompt| prompt.command.name == name)?;
        let arguments = match prompt::arguments_of(&prompt.listed, input) {
            Ok(arguments) => arguments,
            Err(complaint) => return Some(Err(complaint)),
        };
        let text = prompt.connection.prompt(&prompt.listed.name, arguments).await;
        Some(text.map(|text| limit::bounded(ToolOutput::text(text)).joined_text()))
    }

    async fn run_call(&self, call: &PendingCall) -> Option<ToolOutput> {
        let pool = self.pool();
        if pool.is_deferred {
            match call.call.name.as_str() {
                deferred::SEARCH => return Some(deferred::search(&pool, &call.call.arguments)),
                // It would be another call by now if it stood for one.
                deferred::CALL => return deferred::resolve(&pool, &call.call.arguments).err(),
                _ => {}
            }
        }
        let tool = pool.find_tool(&call.call.name)?;
        Some(limit::bounded(run(tool, call).await))
    }

    async fn close(&self, _session: &SessionScope) -> Vec<String> {
        let pool = self.replace_pool(Pool::default());
        let closed = join_all(pool.connections.iter().map(|connection| connection.close())).await;
        closed.into_iter().flatten().collect()
    }
}

async fn run(tool: &PooledTool, call: &PendingCall) -> ToolOutput {
    let arguments = match &call.call.arguments {
        ToolArguments::Object(arguments) => arguments,
        ToolArguments::Invalid { reason, .. } => {
            return arguments::refusal(&tool.spec, &format!("its arguments are not a JSON object ({reason})"));
        }
    };
    if let Some(why) = arguments::complaint(&tool.spec.input_schema, arguments) {
        return arguments::refusal(&tool.spec, &why);
    }
    let ToolOrigin::External(server) = &tool.spec.origin else {
        let host = HostWord { granted: &call.granted_paths, hidden: &call.hidden_paths };
        return tool.connection.call(&tool.served_as, arguments.clone(), host).await;
    };
    let mut output = tool.connection.call(&tool.served_as, arguments.clone(), HostWord::default()).await;
    // It could show the user edits that nobody made.
    output.details = ToolDetails::default();
    if tool.connection.take_changed_tools() {
        output.content.push(Content::Text(format!(
            "[MCP server `{server}` has changed its tools. This session keeps the list that it began with: a tool that is \
             gone answers with an error, and new ones are there in a new session.]"
        )));
    }
    output
}
