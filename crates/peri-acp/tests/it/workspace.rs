//! A workspace server in a few lines: raw MCP over the connector's duplex, so that tools run through the real bridge.

use futures::{SinkExt, StreamExt};
use peri_acp_types::ports::{McpConnectError, McpConnector, McpDuplex, McpServerSpec, Spawner};
use peri_testkit::runtime::TokioSpawner;
use serde_json::{Value, json};

/// Serves two tools: `Read` gives its path back, `Bash` its command; the command `hang` never ends.
pub struct FakeWorkspace;

#[async_trait::async_trait]
impl McpConnector for FakeWorkspace {
    async fn open(&self, _server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let (ours, theirs) = McpDuplex::pair(16);
        TokioSpawner.spawn(Box::pin(serve(ours)));
        Ok(theirs)
    }
}

async fn serve(mut duplex: McpDuplex) {
    while let Some(request) = duplex.incoming.next().await {
        let Some(result) = answer(&request) else { continue };
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        if duplex.outgoing.send(response).await.is_err() {
            return;
        }
    }
}

fn answer(request: &Value) -> Option<Value> {
    let params = &request["params"];
    match request["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "workspace", "version": "1"},
        })),
        "tools/list" => {
            Some(json!({"tools": [tool("Read", "file_path", "read", true), tool("Bash", "command", "execute", false)]}))
        }
        "tools/call" => match (params["name"].as_str()?, params["arguments"]["command"].as_str()) {
            (_, Some("hang")) => None,
            ("Read", _) => Some(json!({
                "content": [{"type": "text", "text": "the file"}],
                "_meta": {"peri/details": {"locations": [{"path": params["arguments"]["file_path"]}]}},
            })),
            (_, command) => {
                Some(json!({"content": [{"type": "text", "text": format!("ran {}", command.unwrap_or_default())}]}))
            }
        },
        _ => request.get("id").map(|_| json!({})),
    }
}

fn tool(name: &str, argument: &str, kind: &str, read_only: bool) -> Value {
    json!({
        "name": name,
        "description": name,
        "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]},
        "annotations": {"readOnlyHint": read_only},
        "_meta": {"peri/kind": kind},
    })
}
