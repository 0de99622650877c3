//! The production order, which is contract.

use std::sync::Arc;

use peri_agent::Middleware;
use peri_middlewares::chain::{ChainConfig, ChainPorts, production};
use peri_middlewares::permission::PermissionPolicy;
use serde_json::json;

use crate::fakes::{FakeBroker, FakePaths, FakeSink, StillClock, scope};
use crate::servers::{FakeConnector, FakeServer, Reply, builtin_spec};

fn ports(connector: FakeConnector) -> ChainPorts {
    ChainPorts {
        broker: Arc::<FakeBroker>::default(),
        paths: Arc::<FakePaths>::default(),
        rule_sink: Arc::<FakeSink>::default(),
        connector: Arc::new(connector),
        clock: Arc::<StillClock>::default(),
    }
}

#[test]
fn permission_judges_before_the_bridge_runs() {
    let chain = production(ChainConfig::default(), ports(FakeConnector::default()));
    let names: Vec<&str> = chain.iter().map(|middleware| middleware.name()).collect();
    assert_eq!(names, ["permission", "mcp"]);
}

#[tokio::test]
async fn what_a_policy_denies_altogether_the_model_is_not_shown() {
    let tools = json!([{"name": "Read", "inputSchema": {}}, {"name": "Bash", "inputSchema": {}}]);
    let connector = FakeConnector::default();
    connector.add("workspace", FakeServer::with_tools(tools, |_| Reply::Silence));
    let permission = PermissionPolicy { deny: vec!["Bash".parse().unwrap()], ..PermissionPolicy::default() };
    let config = ChainConfig { permission, servers: vec![builtin_spec("workspace")], ..ChainConfig::default() };
    let chain = production(config, ports(connector));
    let mut shown = Vec::new();
    for middleware in &chain {
        shown.extend(Middleware::open(middleware.as_ref(), &scope()).await.tools.into_iter().map(|tool| tool.name));
    }
    assert_eq!(shown, ["Read"]);
}
