//! The production chain: which middlewares a session has, and in which order.
//!
//! The order is contract. Hooks run from first to last, so that permission judges a call before the bridge runs it, and
//! sees every call whoever serves it; the tools of servers stand in the order of the servers. It is never sorted, and
//! never changed for local convenience; a test pins it.

use std::sync::Arc;

use peri_acp_types::ports::{Clock, McpConnector, McpServerSpec, PathResolver, UserInteractionBroker};
use peri_agent::Middleware;

use crate::mcp::{McpConfig, McpMiddleware, McpPorts, ToolSchemaBudget};
use crate::permission::{PermissionMiddleware, PermissionPolicy, RuleSink, ToolFilter};

/// What a session's chain is made of.
#[derive(Clone, Debug, Default)]
pub struct ChainConfig {
    pub permission: PermissionPolicy,
    /// In the order in which the model sees their tools; builtin ones come first.
    pub servers: Vec<McpServerSpec>,
    pub tool_schema_budget: ToolSchemaBudget,
}

/// What the chain reaches the outside by.
#[derive(Clone)]
pub struct ChainPorts {
    pub broker: Arc<dyn UserInteractionBroker>,
    pub paths: Arc<dyn PathResolver>,
    pub rule_sink: Arc<dyn RuleSink>,
    pub connector: Arc<dyn McpConnector>,
    pub clock: Arc<dyn Clock>,
}

/// Builds the chain of one session. Each session gets its own: middlewares remember what happened in theirs.
pub fn production(config: ChainConfig, ports: ChainPorts) -> Vec<Arc<dyn Middleware>> {
    let hidden = ToolFilter::new(&config.permission);
    let mcp = McpConfig { servers: config.servers, hidden, tool_schema_budget: config.tool_schema_budget };
    let mcp_ports = McpPorts { connector: ports.connector, clock: ports.clock, broker: ports.broker.clone() };
    vec![
        Arc::new(PermissionMiddleware::new(&config.permission, ports.broker, ports.paths, ports.rule_sink)),
        Arc::new(McpMiddleware::new(mcp, mcp_ports)),
    ]
}
