//! MCP servers by script: they speak JSON-RPC over an in-memory pair, well or badly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::{SinkExt, StreamExt};
use peri_acp_types::ports::{BuiltinSettings, McpConnectError, McpConnector, McpDuplex, McpServerSpec, McpTransport};
use serde_json::{Value, json};
use tokio::sync::watch;

/// What a server does with a request.
#[derive(Clone)]
pub enum Reply {
    Result(Value),
    Error(&'static str),
    /// An answer that has these fields besides the id.
    Raw(Value),
    /// It never answers.
    Silence,
    /// It is gone.
    Death,
    /// It asks this first, and gives what it heard as its result.
    Ask(Value),
    /// These first, as they are.
    After(Vec<Value>, Box<Reply>),
}

type Handler = Box<dyn Fn(&str, &Value) -> Reply + Send + Sync>;

/// A server, and what it has heard.
pub struct FakeServer {
    handler: Handler,
    /// Every message, in order.
    heard: watch::Sender<Vec<Value>>,
    /// Set once its client has gone.
    pub left: watch::Sender<bool>,
    clings: bool,
}

impl FakeServer {
    /// Answers the handshake by itself, everything else by the handler.
    pub fn new(handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> FakeServer {
        FakeServer {
            handler: Box::new(handler),
            heard: watch::Sender::default(),
            left: watch::Sender::default(),
            clings: false,
        }
    }

    /// Lists these tools and answers calls by the handler.
    pub fn with_tools(tools: Value, call: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> FakeServer {
        FakeServer::new(move |method, params| match method {
            "tools/list" => Reply::Result(json!({ "tools": tools })),
            "tools/call" => call(params),
            _ => Reply::Error("no such method"),
        })
    }

    /// It keeps its end open although its client has gone.
    pub fn clinging(self) -> FakeServer {
        FakeServer { clings: true, ..self }
    }

    /// Waits until it has heard a message of that method, and returns it.
    pub async fn hears(&self, method: &str) -> Value {
        let mut heard = self.heard.subscribe();
        let is_it = |message: &Value| message["method"] == method;
        let heard = heard.wait_for(|messages| messages.iter().any(is_it)).await.expect("the server lives");
        heard.iter().find(|message| is_it(message)).cloned().expect("just seen")
    }

    pub fn methods(&self) -> Vec<String> {
        self.heard.borrow().iter().filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
    }

    /// Waits until it has heard an answer, and returns it.
    pub async fn hears_answer(&self) -> Value {
        let mut heard = self.heard.subscribe();
        let is_it = |message: &Value| message.get("method").is_none();
        let heard = heard.wait_for(|messages| messages.iter().any(is_it)).await.expect("the server lives");
        heard.iter().find(|message| is_it(message)).cloned().expect("just seen")
    }

    async fn serve(self: Arc<Self>, mut duplex: McpDuplex) {
        // The id of the call that waits for an answer to the server's own question.
        let mut asked_by = None;
        while let Some(message) = duplex.incoming.next().await {
            self.heard.send_modify(|heard| heard.push(message.clone()));
            if message.get("method").is_none()
                && let Some(id) = asked_by.take()
            {
                let content = json!([{"type": "text", "text": message.to_string()}]);
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}});
                duplex.outgoing.send(answer).await.expect("the client is there");
            }
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
            let mut reply = match method {
                "initialize" => match (self.handler)(method, &message["params"]) {
                    Reply::Error(_) => Reply::Result(json!({
                        "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "fake", "version": "1"},
                    })),
                    other => other,
                },
                _ => (self.handler)(method, &message["params"]),
            };
            loop {
                let answer = match reply {
                    Reply::Silence => break,
                    Reply::Ask(mut question) => {
                        asked_by = Some(id.clone());
                        question["jsonrpc"] = json!("2.0");
                        question["id"] = json!("question");
                        question
                    }
                    Reply::Death => return,
                    Reply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Reply::Error(text) => {
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": text}})
                    }
                    Reply::Raw(mut answer) => {
                        answer["jsonrpc"] = json!("2.0");
                        answer["id"] = id.clone();
                        answer
                    }
                    Reply::After(messages, then) => {
                        for message in messages {
                            duplex.outgoing.send(message).await.expect("the client is there");
                        }
                        reply = *then;
                        continue;
                    }
                };
                let _client_may_be_gone = duplex.outgoing.send(answer).await;
                break;
            }
        }
        self.left.send_replace(true);
        if self.clings {
            std::future::pending::<()>().await;
        }
    }
}

/// Connects to servers by name.
#[derive(Default)]
pub struct FakeConnector {
    servers: Mutex<BTreeMap<String, Arc<FakeServer>>>,
}

impl FakeConnector {
    pub fn add(&self, name: &str, server: FakeServer) -> Arc<FakeServer> {
        let server = Arc::new(server);
        self.servers.lock().unwrap().insert(name.to_owned(), server.clone());
        server
    }
}

#[async_trait::async_trait]
impl McpConnector for FakeConnector {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let found = self.servers.lock().unwrap().get(&server.name).cloned();
        let Some(found) = found else {
            return Err(McpConnectError::Failed { server: server.name.clone(), reason: "no such program".to_owned() });
        };
        let (ours, theirs) = McpDuplex::pair(4);
        tokio::spawn(found.serve(theirs));
        Ok(ours)
    }
}

fn spec(name: &str, transport: McpTransport) -> McpServerSpec {
    McpServerSpec {
        name: name.to_owned(),
        roots: vec![crate::fakes::ROOT.to_owned()],
        hidden_env: Vec::new(),
        transport,
    }
}

pub fn builtin_spec(name: &str) -> McpServerSpec {
    let settings = BuiltinSettings {
        env: BTreeMap::new(),
        command_timeout: std::time::Duration::from_secs(1),
        max_command_timeout: std::time::Duration::from_secs(1),
    };
    spec(name, McpTransport::Builtin(settings))
}

pub fn external_spec(name: &str) -> McpServerSpec {
    spec(name, McpTransport::Stdio { command: "x".to_owned(), args: Vec::new(), env: BTreeMap::new() })
}
