//! The pool of MCP clients, and the bridge from their tools to a session's.
//!
//! Owns: the connections of one session, from [`Middleware::open`] to [`Middleware::close`]; tool names; what of a result
//! reaches the model. Must not: judge a call or implement a tool.
//! Invariants: the list of tools is made once and stays; a server that fails, hangs or talks rubbish costs its own tools
//! and one clear notice or result, never those of another.

mod arguments;
#[cfg(not(target_arch = "wasm32"))]
mod client;
#[cfg(target_arch = "wasm32")]
#[path = "client_absent.rs"]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod content;
mod limit;
mod name;
#[cfg(not(target_arch = "wasm32"))]
mod transport;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{Either, join_all, select};
use peri_acp_types::ports::{Clock, McpConnector, McpServerSpec, McpTransport};
use peri_acp_types::{NoticeKind, ToolArguments, ToolDetails, ToolKind, ToolOrigin, ToolOutput, ToolSpec};
use peri_agent::{Contribution, Middleware, PendingCall, SessionScope};

use crate::permission::ToolFilter;
use client::Connection;

pub use name::external_tool_name;

/// From the start of a server to the end of its list of tools.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Tools that one server may bring.
const MAX_TOOLS: usize = 512;

/// A tool as its server lists it.
#[derive(Clone, PartialEq, Debug)]
struct ListedTool {
    name: String,
    description: String,
    input_schema: serde_json::Value,
    /// The word of [`ToolKind`] that the server claims.
    kind: Option<String>,
    /// The server's claim.
    read_only: bool,
}

/// What the host tells a builtin server with a call; the model has no say in it.
#[derive(Clone, Copy, Default)]
struct HostWord<'a> {
    granted: &'a [String],
    hidden: &'a [String],
}

/// A server that cannot be used. The text names it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum McpFailure {
    #[error("{0}")]
    Connect(#[from] peri_acp_types::ports::McpConnectError),
    #[error("MCP server `{server}` did not start: {reason}")]
    Start { server: String, reason: String },
    #[error("MCP server `{server}` was not ready within {} s", limit.as_secs())]
    Slow { server: String, limit: Duration },
}

/// Serves one session.
pub struct McpMiddleware {
    servers: Vec<McpServerSpec>,
    hidden: ToolFilter,
    connector: Arc<dyn McpConnector>,
    clock: Arc<dyn Clock>,
    /// What `open` made. Held to read or replace, never over an await.
    pool: Mutex<Arc<Pool>>,
}

/// The connections of a session and what they offer.
#[derive(Default)]
struct Pool {
    connections: Vec<Arc<Connection>>,
    tools: Vec<PooledTool>,
}

/// A tool and where it is served.
struct PooledTool {
    spec: ToolSpec,
    /// As the server calls it.
    served_as: String,
    connection: Arc<Connection>,
}

impl McpMiddleware {
    pub fn new(
        servers: Vec<McpServerSpec>,
        hidden: ToolFilter,
        connector: Arc<dyn McpConnector>,
        clock: Arc<dyn Clock>,
    ) -> McpMiddleware {
        McpMiddleware { servers, hidden, connector, clock, pool: Mutex::default() }
    }

    fn pool(&self) -> Arc<Pool> {
        // The pool is replaced whole; no panic can leave it half changed.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_pool(&self, pool: Pool) -> Arc<Pool> {
        let mut held = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, Arc::new(pool))
    }

    /// Starts a server and asks for its tools, within bounds.
    async fn start(&self, server: &McpServerSpec) -> Result<(Connection, Vec<ListedTool>), McpFailure> {
        let starting = Box::pin(async {
            let duplex = self.connector.open(server).await?;
            Connection::start(&server.name, duplex, self.clock.clone()).await
        });
        match select(starting, self.clock.sleep(START_LIMIT)).await {
            Either::Left((started, _)) => started,
            Either::Right(_) => Err(McpFailure::Slow { server: server.name.clone(), limit: START_LIMIT }),
        }
    }
}

#[async_trait::async_trait]
impl Middleware for McpMiddleware {
    fn name(&self) -> &'static str {
        "mcp"
    }

    async fn open(&self, _session: &SessionScope) -> Contribution {
        // Side by side: a slow server holds up the session once, not once each.
        let starts = self.servers.iter().map(|server| self.start(server));
        let started = join_all(starts).await;
        let mut pool = Pool::default();
        let mut contribution = Contribution::default();
        for (server, started) in self.servers.iter().zip(started) {
            let complaints = match started {
                Ok((connection, listed)) => pool.add(server, Arc::new(connection), listed, &self.hidden),
                Err(failure) => vec![failure.to_string()],
            };
            contribution.notices.extend(complaints.into_iter().map(|it| (NoticeKind::Capability, it)));
        }
        contribution.tools = pool.tools.iter().map(|tool| tool.spec.clone()).collect();
        self.replace_pool(pool);
        contribution
    }

    async fn run_call(&self, call: &PendingCall) -> Option<ToolOutput> {
        let pool = self.pool();
        let tool = pool.tools.iter().find(|tool| tool.spec.name == call.call.name)?;
        let arguments = match &call.call.arguments {
            ToolArguments::Object(arguments) => arguments,
            ToolArguments::Invalid { reason, .. } => {
                let why = format!("its arguments are not a JSON object ({reason})");
                return Some(arguments::refusal(&tool.spec, &why));
            }
        };
        if let Some(why) = arguments::complaint(&tool.spec.input_schema, arguments) {
            return Some(arguments::refusal(&tool.spec, &why));
        }
        let is_builtin = matches!(tool.spec.origin, ToolOrigin::Builtin(_));
        let host = match is_builtin {
            true => HostWord { granted: &call.granted_paths, hidden: &call.hidden_paths },
            false => HostWord::default(),
        };
        let mut output = tool.connection.call(&tool.served_as, arguments.clone(), host).await;
        if !is_builtin {
            // It could show the user edits that nobody made.
            output.details = ToolDetails::default();
        }
        Some(limit::bounded(output))
    }

    async fn close(&self, _session: &SessionScope) -> Vec<String> {
        let pool = self.replace_pool(Pool::default());
        let closed = join_all(pool.connections.iter().map(|connection| connection.close())).await;
        closed.into_iter().flatten().collect()
    }
}

impl Pool {
    /// Takes in a server's tools, in its order. Returns what had to be left out.
    fn add(
        &mut self,
        server: &McpServerSpec,
        connection: Arc<Connection>,
        listed: Vec<ListedTool>,
        hidden: &ToolFilter,
    ) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut known: HashSet<String> = self.tools.iter().map(|tool| tool.spec.name.clone()).collect();
        if listed.len() > MAX_TOOLS {
            let (count, name) = (listed.len(), &server.name);
            complaints.push(format!("MCP server `{name}` lists {count} tools; only the first {MAX_TOOLS} are used"));
        }
        for tool in listed.into_iter().take(MAX_TOOLS) {
            let served_as = tool.name.clone();
            let spec = spec_of(server, tool);
            if hidden.hides(&spec) {
                continue;
            }
            if !known.insert(spec.name.clone()) {
                complaints.push(format!("MCP server `{}` lists `{served_as}` twice; the first is used", server.name));
                continue;
            }
            self.tools.push(PooledTool { spec, served_as, connection: connection.clone() });
        }
        self.connections.push(connection);
        complaints
    }
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
