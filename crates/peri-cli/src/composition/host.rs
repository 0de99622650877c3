//! One run's host: every port with the adapter behind it, and the agent that is served to a client.
//!
//! Owns: the order of the end. Invariants: starting reads nothing but what a thread of its own reads meanwhile; after
//! [`Host::end`] no process of the run is left, or a line says which may be.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use peri_acp::{AgentSide, ClientSide, ServeError};
use peri_acp_types::ports::{Clock, HttpTransport, IdSource, KillProof, NoFileHistory, ThreadStore};
use peri_config::CommandLineOverlay;
use peri_controller::{Controller, ControllerPorts};
use peri_mcp_servers::config::{FileConfigSource, FileTrustStore};
use peri_mcp_servers::workspace::WorkspacePathResolver;
use peri_process::{SupervisedHost, SupervisorCommand};
use peri_resources::{ContextEnvironment, LocalContext, MemoryStore, SqliteConfig, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::clock::SystemClock;
use super::http::ReqwestTransport;
use super::mcp::McpServers;
use super::places::Places;
use super::spawner::TokioSpawner;
use crate::exit::Failure;

pub use peri_controller::Persistence;

/// How long the served agent may take to end, once its client is gone.
const SERVE_LIMIT: Duration = Duration::from_secs(3);
/// How long the run's processes may take to be gone.
const PROCESS_LIMIT: Duration = Duration::from_secs(2);

/// What a run wants of its host.
pub struct HostPlan {
    pub places: Places,
    pub overlay: CommandLineOverlay,
    pub persistence: Persistence,
    pub ids: Arc<dyn IdSource>,
}

/// A run's host.
pub struct Host {
    clock: Arc<dyn Clock>,
    controller: Controller,
    processes: Arc<SupervisedHost>,
    servers: Arc<McpServers>,
    /// None where sessions are kept in memory.
    store: Option<Arc<SqliteStore>>,
    /// The agent's tasks, one for each client.
    serving: Mutex<Vec<JoinHandle<Result<(), String>>>>,
    /// Output that is gone with the process. Removed when the host is dropped.
    _output: Option<TempDir>,
}

impl Host {
    /// Puts the host together. To be called on the runtime that it will live on.
    ///
    /// # Errors
    /// A [`Failure`] where the system gives no thread or no temporary folder.
    pub fn start(plan: HostPlan) -> Result<Host, Failure> {
        let HostPlan { places, overlay, persistence, ids } = plan;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let processes = Arc::new(SupervisedHost::new(SupervisorCommand::this_program()));
        let Keeping { store, sqlite, output_dir, output } = Keeping::open(&places, persistence)?;
        let trust = Arc::new(FileTrustStore::new(places.dirs()));
        let http: Arc<dyn HttpTransport> = Arc::new(ReqwestTransport::default());
        let servers = Arc::new(McpServers {
            clock: clock.clone(),
            ids: ids.clone(),
            process: processes.clone(),
            http: http.clone(),
            output_dir: output_dir.clone(),
            home: places.home(),
            running: Default::default(),
        });
        let ports = ControllerPorts {
            clock: clock.clone(),
            ids,
            spawner: Arc::new(TokioSpawner::current()),
            store,
            persistence,
            context: Arc::new(LocalContext::new(surroundings(&places), clock.clone())),
            config: Arc::new(FileConfigSource::new(
                places.settings_file().to_owned(),
                trust.clone(),
                places.variables(),
            )),
            trust,
            http,
            mcp: servers.clone(),
            paths: Arc::new(WorkspacePathResolver::new(places.home(), vec![output_dir])),
            files: Arc::new(NoFileHistory),
            overlay,
        };
        let controller = Controller::new(ports);
        Ok(Host { clock, controller, processes, servers, store: sqlite, serving: Mutex::default(), _output: output })
    }

    /// Serves the agent to a new client.
    pub fn connect(&self) -> ClientSide {
        let (agent, client) = peri_acp::in_process();
        let serving = peri_acp::serve(self.controller.clone(), self.clock.clone(), agent);
        let task = tokio::spawn(async move { serving.await.map_err(|error| error.to_string()) });
        self.serving.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        client
    }

    /// Serves the agent to a client at the other end of a transport. Whoever aborts the task owes [`Host::end_sessions`].
    pub fn serve(&self, side: AgentSide) -> JoinHandle<Result<(), ServeError>> {
        tokio::spawn(peri_acp::serve(self.controller.clone(), self.clock.clone(), side))
    }

    /// Cancels and closes every session that is still open. Tells what could not be confirmed, a line each.
    pub async fn end_sessions(&self) -> Vec<String> {
        self.controller.shutdown(SERVE_LIMIT).await
    }

    /// For a client that has to end them at once.
    pub fn processes(&self) -> Arc<SupervisedHost> {
        self.processes.clone()
    }

    /// What the user must be told of the store: damage that was moved aside, say.
    pub async fn store_notices(&self) -> Vec<String> {
        match &self.store {
            // A store that does not open has failed the run already, in the same words.
            Some(store) => store.report().await.map(|report| report.notices).unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// Ends what is left, in order, once all clients are gone. Tells what could not be confirmed, a line each.
    pub async fn end(self) -> Vec<String> {
        let mut trouble = Vec::new();
        for task in self.serving.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match timeout(SERVE_LIMIT, task).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => trouble.push(error),
                Ok(Err(error)) => trouble.push(format!("the agent broke: {error}")),
                Err(_) => trouble.push("the agent did not end in time".to_owned()),
            }
        }
        match timeout(PROCESS_LIMIT, self.servers.running.ended()).await {
            Ok(unconfirmed) => trouble.extend(unconfirmed),
            Err(_) => trouble.push("the tools did not end in time".to_owned()),
        }
        if let KillProof::Unconfirmed(what) = self.processes.shutdown(PROCESS_LIMIT).await {
            trouble.push(format!("processes may be left: {what}"));
        }
        trouble
    }
}

/// Where a run's threads and long outputs go.
struct Keeping {
    store: Arc<dyn ThreadStore>,
    sqlite: Option<Arc<SqliteStore>>,
    output_dir: PathBuf,
    output: Option<TempDir>,
}

impl Keeping {
    fn open(places: &Places, persistence: Persistence) -> Result<Keeping, Failure> {
        match persistence {
            Persistence::Kept => {
                let store = open_store(places)?;
                Ok(Keeping { store: store.clone(), sqlite: Some(store), output_dir: places.output_dir(), output: None })
            }
            Persistence::GoneWithTheProcess => {
                let output = tempfile::Builder::new().prefix("peri-").tempdir().map_err(|error| {
                    Failure::run(format!("no temporary folder can be made: {error}")).hint("set TMPDIR")
                })?;
                Ok(Keeping {
                    store: Arc::new(MemoryStore::new()),
                    sqlite: None,
                    output_dir: output.path().to_owned(),
                    output: Some(output),
                })
            }
        }
    }
}

/// Begins to open the file of sessions; what goes wrong is the first operation's error.
///
/// # Errors
/// A [`Failure`] where the system gives no thread.
fn open_store(places: &Places) -> Result<Arc<SqliteStore>, Failure> {
    let config = SqliteConfig::at(places.store_file());
    SqliteStore::open(config).map(Arc::new).map_err(|error| Failure::run(error.to_string()))
}

/// The file of sessions, if there is one.
///
/// # Errors
/// As [`open_store`].
pub fn existing_store(places: &Places) -> Result<Option<Arc<SqliteStore>>, Failure> {
    // What cannot be looked at is for the store to report.
    match places.store_file().try_exists() {
        Ok(false) => Ok(None),
        Ok(true) | Err(_) => open_store(places).map(Some),
    }
}

fn surroundings(places: &Places) -> ContextEnvironment {
    let environment = places.environment();
    ContextEnvironment {
        lc_all: environment.var("LC_ALL"),
        lc_messages: environment.var("LC_MESSAGES"),
        lang: environment.var("LANG"),
        tz: environment.var("TZ"),
        config_dir: Some(places.dirs().config.clone()),
    }
}
