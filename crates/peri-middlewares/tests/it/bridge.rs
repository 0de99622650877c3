//! A bridge on servers by script.

use std::sync::Arc;

use peri_acp_types::ToolOutput;
use peri_acp_types::ports::McpServerSpec;
use peri_agent::{Contribution, Middleware, PendingCall};
use peri_middlewares::mcp::{McpConfig, McpMiddleware, McpPorts};
use serde_json::{Value, json};

use crate::fakes::{FakeBroker, StillClock, pending, scope};
use crate::servers::{FakeConnector, FakeServer, Reply, builtin_spec};

/// A bridge and what it is connected to.
pub struct Bridge {
    pub middleware: McpMiddleware,
    pub offered: Contribution,
    pub clock: Arc<StillClock>,
    pub broker: Arc<FakeBroker>,
}

pub fn ports(connector: FakeConnector, clock: Arc<StillClock>, broker: Arc<FakeBroker>) -> McpPorts {
    McpPorts { connector: Arc::new(connector), clock, broker }
}

pub async fn bridge(connector: FakeConnector, servers: Vec<McpServerSpec>) -> Bridge {
    bridge_with(connector, McpConfig { servers, ..McpConfig::default() }).await
}

pub async fn bridge_with(connector: FakeConnector, config: McpConfig) -> Bridge {
    let (clock, broker) = (Arc::<StillClock>::default(), Arc::<FakeBroker>::default());
    let middleware = McpMiddleware::new(config, ports(connector, clock.clone(), broker.clone()));
    let offered = middleware.open(&scope()).await;
    Bridge { middleware, offered, clock, broker }
}

/// A bridge to one builtin server whose only tool is `Tool`, without arguments.
pub async fn bridge_to(call: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> (Bridge, Arc<FakeServer>) {
    let connector = FakeConnector::default();
    let server = connector.add("workspace", FakeServer::with_tools(json!([tool("Tool")]), call));
    (bridge(connector, vec![builtin_spec("workspace")]).await, server)
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

pub fn text(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}]}))
}

impl Bridge {
    pub fn names(&self) -> Vec<&str> {
        self.offered.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    pub fn notices(&self) -> Vec<&str> {
        self.offered.notices.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub fn pending(&self, name: &str, arguments: Value) -> PendingCall {
        pending(self.offered.tools.iter().find(|tool| tool.name == name).expect("the tool").clone(), arguments)
    }

    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        self.middleware.run_call(&self.pending(name, arguments)).await.expect("its own tool")
    }
}
