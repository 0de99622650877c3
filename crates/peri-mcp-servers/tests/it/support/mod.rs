//! A workspace, a server for it and a client, as a session has them.

pub mod clock;
pub mod host;
pub mod scripted;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use peri_acp_types::ports::{Clock, META_GRANTED_PATHS, META_HIDDEN_PATHS, META_TOOL_DETAILS, McpDuplex, ProcessHost};
use peri_mcp_servers::workspace::{BashLimits, ServeError, WorkspacePorts, WorkspaceServer};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, ServerResult};
use rmcp::service::{
    ClientLifecycleMode, PeerRequestOptions, RequestHandle, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
    serve_client_with_lifecycle,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use clock::{ManualClock, RealClock};
pub use host::PlainHost;
pub use scripted::ScriptedHost;

/// Longer than anything here takes on the busiest machine; a test that gets there hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Session {
    pub client: RunningService<RoleClient, ()>,
    pub server: tokio::task::JoinHandle<Result<(), ServeError>>,
    pub host: Arc<PlainHost>,
    /// Canonical.
    pub root: PathBuf,
    /// Beside the root.
    pub outside: PathBuf,
    pub spill_dir: PathBuf,
    _temp: TempDir,
}

/// A session on an empty workspace.
pub async fn session() -> Session {
    Opening::default().session().await
}

/// Where things are before a session starts.
pub struct Layout {
    pub root: PathBuf,
    pub outside: PathBuf,
    pub base: PathBuf,
}

/// What a session starts with, where it is not the usual.
pub struct Opening {
    pub clock: Arc<dyn Clock>,
    /// None: a [`PlainHost`].
    pub process: Option<Arc<dyn ProcessHost>>,
    pub lifecycle: ClientLifecycleMode,
}

impl Default for Opening {
    fn default() -> Opening {
        Opening { clock: Arc::new(RealClock), process: None, lifecycle: ClientLifecycleMode::Initialize }
    }
}

impl Opening {
    pub async fn session(self) -> Session {
        self.session_with_roots(|layout| vec![layout.root.clone()]).await
    }

    pub async fn session_with_roots(self, roots: impl FnOnce(&Layout) -> Vec<PathBuf>) -> Session {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let layout = Layout { root: base.join("ws"), outside: base.join("outside"), base };
        std::fs::create_dir(&layout.root).unwrap();
        std::fs::create_dir(&layout.outside).unwrap();
        let roots = roots(&layout);
        let host = Arc::new(PlainHost::default());
        let spill_dir = layout.base.join("spill");
        let ports = WorkspacePorts {
            process: self.process.unwrap_or_else(|| host.clone()),
            clock: self.clock,
            spill_dir: spill_dir.clone(),
            limits: BashLimits::default(),
            env: BTreeMap::from([("FROM_HOST".to_owned(), Some("yes".to_owned()))]),
            home: Some(layout.outside.clone()),
        };
        let server = WorkspaceServer::new(&ports, &roots).unwrap();
        let (ours, theirs) = McpDuplex::pair(8);
        let server = tokio::spawn(server.serve(theirs));
        let client = client(ours, self.lifecycle).await;
        Session { client, server, host, root: layout.root, outside: layout.outside, spill_dir, _temp: temp }
    }
}

async fn client(duplex: McpDuplex, lifecycle: ClientLifecycleMode) -> RunningService<RoleClient, ()> {
    let outgoing = duplex.outgoing.with(|message: TxJsonRpcMessage<RoleClient>| {
        std::future::ready(Ok::<_, futures::channel::mpsc::SendError>(serde_json::to_value(message).unwrap()))
    });
    let incoming =
        duplex.incoming.map(|message| serde_json::from_value::<RxJsonRpcMessage<RoleClient>>(message).unwrap());
    serve_client_with_lifecycle((), (outgoing, incoming), lifecycle).await.unwrap()
}

impl Session {
    /// Writes a file of the workspace, outside the tools.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn get(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root.join(path)).unwrap()
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.call_granting(tool, arguments, &[]).await
    }

    /// A call for which permission has opened places outside the roots.
    pub async fn call_granting(&self, tool: &str, arguments: Value, granted: &[&Path]) -> Reply {
        let handle = self.start(tool, arguments, granted).await;
        let response = tokio::time::timeout(PATIENCE, handle.await_response()).await.expect("no answer").unwrap();
        let ServerResult::CallToolResult(result) = response else { panic!("not a tool result: {response:?}") };
        Reply { result }
    }

    /// A call from which permission has hidden files.
    pub async fn call_hiding(&self, tool: &str, arguments: Value, hidden: &[&str]) -> Reply {
        let handle = self.start_with(tool, arguments, json!({META_HIDDEN_PATHS: hidden})).await;
        let response = tokio::time::timeout(PATIENCE, handle.await_response()).await.expect("no answer").unwrap();
        let ServerResult::CallToolResult(result) = response else { panic!("not a tool result: {response:?}") };
        Reply { result }
    }

    /// Sends a call without waiting for it.
    pub async fn start(&self, tool: &str, arguments: Value, granted: &[&Path]) -> RequestHandle<RoleClient> {
        let meta = if granted.is_empty() { json!({}) } else { json!({META_GRANTED_PATHS: granted}) };
        self.start_with(tool, arguments, meta).await
    }

    async fn start_with(&self, tool: &str, arguments: Value, meta: Value) -> RequestHandle<RoleClient> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().unwrap().clone());
        let mut options = PeerRequestOptions::no_options();
        if meta != json!({}) {
            options.meta = Some(meta.as_object().unwrap().clone().into());
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.client.peer().send_cancellable_request(request, options).await.unwrap()
    }

    /// Reads a file so that it may be edited.
    pub async fn read(&self, path: &str) -> Reply {
        self.call("Read", json!({"file_path": path})).await
    }

    pub async fn bash(&self, command: &str) -> Reply {
        self.call("Bash", json!({"command": command})).await
    }

    /// Ends the connection and waits until the server is done.
    pub async fn close(self) -> Arc<PlainHost> {
        self.client.cancel().await.unwrap();
        tokio::time::timeout(PATIENCE, self.server).await.expect("server does not end").unwrap().unwrap();
        self.host
    }
}

pub struct Reply {
    pub result: CallToolResult,
}

impl Reply {
    /// The text, of a result that must be no error.
    #[track_caller]
    pub fn ok(&self) -> String {
        assert_eq!(self.result.is_error, Some(false), "{}", self.text());
        self.text()
    }

    /// The text, of a result that must be an error.
    #[track_caller]
    pub fn error(&self) -> String {
        assert_eq!(self.result.is_error, Some(true), "{}", self.text());
        self.text()
    }

    pub fn text(&self) -> String {
        let texts = self.result.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub fn details(&self) -> Value {
        self.result.meta.as_ref().and_then(|meta| meta.get(META_TOOL_DETAILS)).cloned().unwrap_or_default()
    }
}

/// Waits for something that shows itself in no other way than by looking.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}
