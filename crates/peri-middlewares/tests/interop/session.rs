//! A session's bridge to real servers, and where these are installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use peri_acp_types::ports::{
    McpConnectError, McpConnector, McpDuplex, McpServerSpec, McpTransport, PathResolver, ResolvedPath,
    UserInteractionBroker,
};
use peri_acp_types::{
    AttemptId, CancellationToken, ElicitationAnswer, ElicitationRequest, PermissionAnswer, PermissionRequest,
    SessionEpoch, SessionId, ToolArguments, ToolCall, ToolCallId, ToolOutput, TurnId,
};
use peri_agent::{Contribution, Middleware, PendingCall, SessionScope};
use peri_config::{PermissionRule, RuleList};
use peri_middlewares::chain::{ChainConfig, ChainPorts, production};
use peri_middlewares::mcp::{Link, http, stdio};
use peri_middlewares::permission::RuleSink;
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::http_port::HyperTransport;
use crate::process::{TokioClock, TokioProcesses};

/// Where the packages are.
pub fn installed() -> PathBuf {
    let folder = std::env::var_os("PERI_INTEROP_DIR").map(PathBuf::from);
    let folder = folder.expect("PERI_INTEROP_DIR says where the servers are installed: run `cargo xtask interop`");
    assert!(folder.join("node_modules").is_dir(), "nothing is installed in {}", folder.display());
    folder
}

/// A program of an npm package.
pub fn node_program(name: &str) -> PathBuf {
    installed().join("node_modules/.bin").join(name)
}

/// A program of a Python package.
pub fn python_program(name: &str) -> PathBuf {
    installed().join("venv/bin").join(name)
}

/// A server that is a process. Its working directory is `root`.
pub fn process(name: &str, program: &Path, args: &[&str], root: &Path) -> McpServerSpec {
    let command = program.to_str().expect("UTF-8").to_owned();
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    spec(name, root, McpTransport::Stdio { command, args, env: BTreeMap::new() })
}

pub fn spec(name: &str, root: &Path, transport: McpTransport) -> McpServerSpec {
    McpServerSpec {
        name: name.to_owned(),
        roots: vec![root.to_str().expect("UTF-8").to_owned()],
        hidden_env: Vec::new(),
        transport,
    }
}

/// Opens servers as the real host does.
#[derive(Default)]
struct Connector {
    processes: TokioProcesses,
    serving: Mutex<JoinSet<Result<(), String>>>,
}

impl Connector {
    fn serve(&self, link: Link) -> McpDuplex {
        self.serving.lock().unwrap().spawn(link.serving);
        link.duplex
    }
}

#[async_trait::async_trait]
impl McpConnector for Connector {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let clock = Arc::new(TokioClock);
        let link = match server.transport {
            McpTransport::Http { .. } => http::open(Arc::new(HyperTransport), clock, server)?,
            _ => stdio::open(&self.processes, clock, server).await?,
        };
        Ok(self.serve(link))
    }
}

/// A person who allows everything and fills in nothing.
struct Obliging;

#[async_trait::async_trait]
impl UserInteractionBroker for Obliging {
    async fn request_permission(&self, _request: PermissionRequest) -> PermissionAnswer {
        PermissionAnswer::AllowOnce
    }

    async fn elicit(&self, _request: ElicitationRequest) -> ElicitationAnswer {
        ElicitationAnswer::Accepted(Default::default())
    }
}

#[async_trait::async_trait]
impl RuleSink for Obliging {
    async fn keep(&self, _list: RuleList, _rules: &[PermissionRule]) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait::async_trait]
impl PathResolver for Obliging {
    async fn resolve(&self, _roots: &[String], _cwd: &str, path: &str) -> ResolvedPath {
        ResolvedPath { path: path.to_owned(), inside: true }
    }
}

/// A session with these servers, without a model.
pub struct Session {
    chain: Vec<Arc<dyn Middleware>>,
    pub offered: Contribution,
    scope: SessionScope,
    connector: Arc<Connector>,
}

impl Session {
    pub async fn open(servers: Vec<McpServerSpec>) -> Session {
        let connector = Arc::new(Connector::default());
        let ports = ChainPorts {
            broker: Arc::new(Obliging),
            paths: Arc::new(Obliging),
            rule_sink: Arc::new(Obliging),
            connector: connector.clone(),
            clock: Arc::new(TokioClock),
        };
        let scope = SessionScope {
            session_id: SessionId(Uuid::from_u128(1)),
            session_epoch: SessionEpoch(1),
            cwd: "/".to_owned(),
            roots: vec!["/".to_owned()],
        };
        let chain = production(ChainConfig { servers, ..ChainConfig::default() }, ports);
        let mut offered = Contribution::default();
        for middleware in &chain {
            let contribution = middleware.open(&scope).await;
            offered.tools.extend(contribution.tools);
            offered.commands.extend(contribution.commands);
            offered.notices.extend(contribution.notices);
        }
        Session { chain, offered, scope, connector }
    }

    pub fn names(&self) -> Vec<&str> {
        self.offered.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    pub fn notices(&self) -> Vec<&str> {
        self.offered.notices.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Sends a call the way that a turn does.
    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        let spec = self.offered.tools.iter().find(|tool| tool.name == name);
        let spec = spec.unwrap_or_else(|| panic!("no {name} in {:?}; {:?}", self.names(), self.notices())).clone();
        let arguments = arguments.as_object().expect("an object").clone();
        let mut call = PendingCall {
            session: self.scope.clone(),
            turn_id: TurnId(Uuid::from_u128(2)),
            attempt_id: AttemptId(Uuid::from_u128(3)),
            call: ToolCall {
                id: ToolCallId("call".to_owned()),
                name: name.to_owned(),
                arguments: ToolArguments::Object(arguments),
            },
            spec,
            granted_paths: Vec::new(),
            hidden_paths: Vec::new(),
            notices: Vec::new(),
            cancel: CancellationToken::new(),
        };
        for middleware in &self.chain {
            middleware.resolve_call(&mut call).await;
        }
        for middleware in &self.chain {
            if let Some(output) = middleware.run_call(&call).await {
                return output;
            }
        }
        panic!("nobody runs {name}");
    }

    pub async fn command(&self, name: &str, input: &str) -> Result<String, String> {
        for middleware in &self.chain {
            if let Some(text) = middleware.run_command(name, input).await {
                return text;
            }
        }
        panic!("nobody runs /{name}: {:?}", self.offered.commands);
    }

    /// Closes, and makes sure that no server is left.
    pub async fn close(self) {
        for middleware in &self.chain {
            assert_eq!(middleware.close(&self.scope).await, [""; 0]);
        }
        let mut serving = std::mem::take(&mut *self.connector.serving.lock().unwrap());
        while let Some(served) = serving.join_next().await {
            served.expect("no panic").expect("confirmed");
        }
        for pid in self.connector.processes.started.borrow().iter() {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is left");
        }
    }
}
