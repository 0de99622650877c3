//! The way to MCP servers: builtin ones in this process, by an in-memory pair; others as processes or over HTTP.
//!
//! Owns: the tasks that serve connections, and what they could not confirm when they ended. Must not: know a tool.
//! Invariant: each connection has a server of its own; a builtin one has a folder of its own for output that is too long
//! to be shown.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use peri_acp_types::ports::{
    BuiltinSettings, Clock, HttpTransport, IdSource, McpConnectError, McpConnector, McpDuplex, McpServerSpec,
    McpTransport, ProcessHost,
};
use peri_mcp_servers::workspace::{BashLimits, SERVER_NAME, WorkspacePorts, WorkspaceServer};
use peri_middlewares::mcp::{Link, http, stdio};
use tokio::task::JoinSet;

/// Messages that wait in each direction before a sender waits.
const DUPLEX_CAPACITY: usize = 16;

/// [`McpConnector`] of this process.
pub struct McpServers {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub process: Arc<dyn ProcessHost>,
    pub http: Arc<dyn HttpTransport>,
    /// Each builtin server gets a folder in it.
    pub output_dir: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    pub running: Running,
}

/// The servers that run.
#[derive(Default)]
pub struct Running(Mutex<JoinSet<Result<(), String>>>);

#[async_trait::async_trait]
impl McpConnector for McpServers {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        match &server.transport {
            McpTransport::Builtin(settings) if server.name == SERVER_NAME => self.workspace(server, settings),
            McpTransport::Builtin(_) => {
                Err(McpConnectError::Unsupported { server: server.name.clone(), what: "builtin server of that name" })
            }
            McpTransport::Stdio { .. } => {
                let link = stdio::open(self.process.as_ref(), self.clock.clone(), server).await?;
                Ok(self.serve(link))
            }
            McpTransport::Http { .. } => Ok(self.serve(http::open(self.http.clone(), self.clock.clone(), server)?)),
        }
    }
}

impl McpServers {
    fn serve(&self, link: Link) -> McpDuplex {
        self.running.spawn(link.serving);
        link.duplex
    }

    fn workspace(&self, spec: &McpServerSpec, settings: &BuiltinSettings) -> Result<McpDuplex, McpConnectError> {
        let ports = WorkspacePorts {
            process: self.process.clone(),
            clock: self.clock.clone(),
            spill_dir: self.output_dir.join(self.ids.uuid().to_string()),
            limits: BashLimits { default_timeout: settings.command_timeout, max_timeout: settings.max_command_timeout },
            env: variables(&spec.hidden_env, settings),
            home: self.home.clone(),
        };
        let roots: Vec<PathBuf> = spec.roots.iter().map(PathBuf::from).collect();
        let failed = |reason: String| McpConnectError::Failed { server: spec.name.clone(), reason };
        let server = WorkspaceServer::new(&ports, &roots).map_err(|error| failed(error.to_string()))?;
        let (ours, theirs) = McpDuplex::pair(DUPLEX_CAPACITY);
        self.running.spawn(async move { server.serve(theirs).await.map_err(|error| error.to_string()) });
        Ok(ours)
    }
}

impl Running {
    fn spawn(&self, serving: impl Future<Output = Result<(), String>> + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spawn(serving);
    }

    /// Waits until every server has ended, and tells what they could not confirm. Their clients must be gone.
    pub async fn ended(&self) -> Vec<String> {
        let mut running = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut trouble = Vec::new();
        while let Some(served) = running.join_next().await {
            match served {
                Ok(Ok(())) => {}
                Ok(Err(error)) => trouble.push(error),
                Err(error) => trouble.push(format!("an MCP server broke: {error}")),
            }
        }
        trouble
    }
}

/// The environment of commands, as far as it differs from ours. What settings give by name wins over what is hidden.
fn variables(hidden: &[String], settings: &BuiltinSettings) -> BTreeMap<String, Option<String>> {
    let hidden = hidden.iter().map(|name| (name.clone(), None));
    let given = settings.env.iter().map(|(name, value)| (name.clone(), Some(value.reveal().to_owned())));
    hidden.chain(given).collect()
}
