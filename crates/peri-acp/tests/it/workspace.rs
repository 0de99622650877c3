//! Servers in a few lines: raw MCP over the connector's duplex, so that tools run through the real bridge.

use futures::{SinkExt, StreamExt};
use peri_acp_types::ports::{McpConnectError, McpConnector, McpDuplex, McpServerSpec, Spawner};
use peri_testkit::runtime::TokioSpawner;
use serde_json::{Value, json};

/// The workspace server, and any other that a client brings.
///
/// The workspace's tools: `Read` gives its path back, `Edit` a change of it, `Bash` its command; the command `hang` never
/// ends. Any other server has the tool `lend`, which asks the person for a name, and the prompt `review`.
pub struct FakeServers;

#[async_trait::async_trait]
impl McpConnector for FakeServers {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let (ours, theirs) = McpDuplex::pair(16);
        match server.name.as_str() {
            "workspace" => TokioSpawner.spawn(Box::pin(serve(ours, workspace))),
            _ => TokioSpawner.spawn(Box::pin(serve(ours, library))),
        }
        Ok(theirs)
    }
}

/// What a server says to a message: nothing, an answer, or a request of its own for it.
enum Reply {
    Nothing,
    Result(Value),
    Asks(Value),
}

async fn serve(mut duplex: McpDuplex, answer: fn(&Value) -> Reply) {
    // The call that waits for the person.
    let mut call = Value::Null;
    while let Some(message) = duplex.incoming.next().await {
        let said = match answer(&message) {
            Reply::Nothing => continue,
            Reply::Result(result) if message.get("method").is_some() => {
                json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
            }
            Reply::Result(result) => json!({"jsonrpc": "2.0", "id": call.take(), "result": result}),
            Reply::Asks(params) => {
                call = message["id"].clone();
                json!({"jsonrpc": "2.0", "id": "form-1", "method": "elicitation/create", "params": params})
            }
        };
        if duplex.outgoing.send(said).await.is_err() {
            return;
        }
    }
}

fn initialized(request: &Value, capabilities: Value) -> Reply {
    Reply::Result(json!({
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": capabilities,
        "serverInfo": {"name": "fake", "version": "1"},
    }))
}

fn workspace(request: &Value) -> Reply {
    let arguments = &request["params"]["arguments"];
    let text = |text: String| json!([{"type": "text", "text": text}]);
    match (request["method"].as_str(), request["params"]["name"].as_str()) {
        (Some("initialize"), _) => initialized(request, json!({"tools": {}})),
        (Some("tools/list"), _) => Reply::Result(json!({"tools": [
            tool("Read", "file_path", "read", true),
            tool("Edit", "file_path", "edit", false),
            tool("Bash", "command", "execute", false),
        ]})),
        (Some("tools/call"), Some("Read")) => Reply::Result(json!({
            "content": text("the file".to_owned()),
            "_meta": {"peri/details": {"locations": [{"path": arguments["file_path"]}]}},
        })),
        (Some("tools/call"), Some("Edit")) => Reply::Result(json!({
            "content": text("edited".to_owned()),
            "_meta": {"peri/details": {
                "locations": [{"path": arguments["file_path"], "line": 3}],
                "diffs": [{"path": arguments["file_path"], "oldText": "before\n", "newText": "after\n"}],
            }},
        })),
        (Some("tools/call"), _) if arguments["command"] == "hang" => Reply::Nothing,
        (Some("tools/call"), _) => {
            let command = arguments["command"].as_str().unwrap_or_default();
            Reply::Result(json!({"content": text(format!("ran {command}"))}))
        }
        _ => anything_else(request),
    }
}

fn library(message: &Value) -> Reply {
    match message["method"].as_str() {
        Some("initialize") => initialized(message, json!({"tools": {}, "prompts": {}})),
        Some("tools/list") => Reply::Result(json!({"tools": [{
            "name": "lend", "description": "Lends a book.", "inputSchema": {"type": "object", "properties": {}},
        }]})),
        Some("prompts/list") => Reply::Result(json!({"prompts": [{
            "name": "review", "description": "Reviews a book.",
            "arguments": [{"name": "title", "required": true}],
        }]})),
        Some("prompts/get") => Reply::Result(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Please review this book."}},
        ]})),
        Some("tools/call") => Reply::Asks(json!({
            "message": "Who borrows it?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        })),
        // The person's answer is the call's result.
        None if message["id"] == "form-1" => {
            Reply::Result(json!({"content": [{"type": "text", "text": message["result"].to_string()}]}))
        }
        _ => anything_else(message),
    }
}

fn anything_else(request: &Value) -> Reply {
    match (request.get("method"), request.get("id")) {
        (Some(_), Some(_)) => Reply::Result(json!({})),
        _ => Reply::Nothing,
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
