//! The workspace server in a few lines, whose calls wait at gates. It remembers which calls it ran.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{SinkExt, StreamExt};
use peri_acp_types::ports::{McpConnectError, McpConnector, McpDuplex, McpServerSpec};
use serde_json::{Value, json};

use super::{Chance, Gates};

#[derive(Clone)]
pub struct Tools {
    pub chance: Chance,
    pub gates: Gates,
    /// The arguments of every call, in the order in which they came.
    pub ran: Arc<Mutex<Vec<Value>>>,
}

#[async_trait::async_trait]
impl McpConnector for Tools {
    async fn open(&self, _server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let (ours, theirs) = McpDuplex::pair(16);
        tokio::spawn(self.clone().serve(ours));
        Ok(theirs)
    }
}

impl Tools {
    async fn serve(self, mut duplex: McpDuplex) {
        while let Some(request) = duplex.incoming.next().await {
            let Some(result) = self.result(&request) else { continue };
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            let is_call = request["method"] == "tools/call";
            let (mut outgoing, tools) = (duplex.outgoing.clone(), self.clone());
            // Beside the others: parallel calls run in parallel.
            tokio::spawn(async move {
                if is_call && tools.chance.percent(60) {
                    tools.gates.add().pass().await;
                }
                let _ = outgoing.send(answer).await;
            });
        }
    }

    fn result(&self, request: &Value) -> Option<Value> {
        request.get("id")?;
        Some(match request["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            }),
            "tools/list" => json!({"tools": [tool("Read", "file_path", "read"), tool("Bash", "command", "execute")]}),
            "tools/call" => {
                let arguments = &request["params"]["arguments"];
                self.ran.lock().unwrap_or_else(PoisonError::into_inner).push(arguments.clone());
                if arguments["command"] == "hang" {
                    return None;
                }
                json!({"content": [{"type": "text", "text": "did it"}]})
            }
            _ => json!({}),
        })
    }
}

fn tool(name: &str, argument: &str, kind: &str) -> Value {
    json!({
        "name": name,
        "description": name,
        "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]},
        "annotations": {"readOnlyHint": kind == "read"},
        "_meta": {"peri/kind": kind},
    })
}
