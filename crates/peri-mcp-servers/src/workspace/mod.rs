//! The `workspace` server: files and a terminal for one session, as MCP tools.
//!
//! Owns: Read, Write, Edit, Glob, Grep, Bash, BashOutput, KillBash. Must not: ask for permission (the caller has, and
//! grants what lies outside the roots by `_meta`), read the environment, or keep anything when the connection ends.
//! Invariants: no file tool touches a place outside the roots that was not granted for that very call; when
//! [`WorkspaceServer::serve`] has returned, no process that the session started is left, or the error says which may be.

mod arguments;
mod catalog;
mod failure;
mod files;
mod paths;
mod search;
mod server;
mod session;
mod terminal;
mod threads;
mod transport;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::CancellationToken;
use peri_acp_types::ports::{Clock, McpDuplex, ProcessHost};
use rmcp::ServiceExt as _;

use paths::Territory;
pub use paths::{RootError, WorkspacePathResolver};
use server::Handler;
use session::Session;
use terminal::Tasks;
use transport::DuplexTransport;

/// The name under which sessions know this server.
pub const SERVER_NAME: &str = "workspace";

/// The way to the outside, and what the host decides.
pub struct WorkspacePorts {
    pub process: Arc<dyn ProcessHost>,
    pub clock: Arc<dyn Clock>,
    /// Where output goes that is too long to be shown. Of this session alone: everything in it may be read by the
    /// tools. Created when it is needed.
    pub spill_dir: PathBuf,
    pub limits: BashLimits,
    /// Set or (None) removed for commands, on top of the environment that the process host gives.
    pub env: BTreeMap<String, Option<String>>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

/// How long a command holds its call before it goes on in the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BashLimits {
    pub default_timeout: Duration,
    /// A call that asks for more gets this.
    pub max_timeout: Duration,
}

impl Default for BashLimits {
    fn default() -> BashLimits {
        BashLimits { default_timeout: Duration::from_secs(120), max_timeout: Duration::from_secs(600) }
    }
}

/// How a server can end other than well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client never got as far as a first request.
    #[error("workspace server: the connection could not be set up: {0}")]
    Handshake(String),
    /// Reported, not assumed: they may be gone as well.
    #[error("workspace server: processes may be left: {}", .0.join("; "))]
    MayBeLeft(Vec<String>),
}

/// One session's server.
pub struct WorkspaceServer {
    session: Arc<Session>,
    closing: CancellationToken,
}

impl WorkspaceServer {
    /// A server for the roots, of which the first is the working directory. Looks at the file system, briefly.
    ///
    /// # Errors
    /// [`RootError`] where a root is not there.
    pub fn new(ports: &WorkspacePorts, roots: &[PathBuf]) -> Result<WorkspaceServer, RootError> {
        let closing = CancellationToken::new();
        let territory = Territory::new(roots, ports.home.clone(), ports.spill_dir.clone())?;
        let tasks = Tasks::new(ports, territory.cwd(), closing.clone());
        Ok(WorkspaceServer { session: Arc::new(Session::new(territory, tasks)), closing })
    }

    /// Serves one client until its side of the duplex ends, then stops the calls under way, ends every process and
    /// returns. To be run as a task by whoever owns the connection, on a tokio runtime. Dropping the future ends
    /// everything as well, without waiting for it.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn serve(self, duplex: McpDuplex) -> Result<(), ServeError> {
        let _ends_with_this_future = self.closing.clone().drop_guard();
        let transport = DuplexTransport::new(duplex, self.closing.clone());
        let handler = Handler::new(self.session.clone(), self.closing.clone());
        let handshake = match handler.serve_with_ct(transport, self.closing.clone()).await {
            Ok(running) => {
                // How the loop ended makes no difference: the client is gone.
                let _reason = running.waiting().await;
                Ok(())
            }
            Err(error) => Err(ServeError::Handshake(error.to_string())),
        };
        let may_be_left = self.session.end().await;
        if may_be_left.is_empty() { handshake } else { Err(ServeError::MayBeLeft(may_be_left)) }
    }
}
