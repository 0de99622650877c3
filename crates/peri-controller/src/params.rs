//! What the controller is given, and what it gives back.

use std::sync::Arc;

use peri_acp_types::ports::{
    Clock, ConfigSource, ContextSource, FileHistory, HttpTransport, IdSource, McpConnector, McpTransport, PathResolver,
    Spawner, ThreadStore, TrustStore, UserInteractionBroker,
};
use peri_acp_types::{CommandSpec, Effort, PermissionMode, SessionEpoch, SessionId, SessionSettings};
use peri_agent::ShownTool;
use peri_config::CommandLineOverlay;
use peri_runtime::StampedEvents;

/// Everything of the process that sessions may need, put together by the composition root.
#[derive(Clone)]
pub struct ControllerPorts {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub spawner: Arc<dyn Spawner>,
    pub store: Arc<dyn ThreadStore>,
    pub persistence: Persistence,
    pub context: Arc<dyn ContextSource>,
    pub config: Arc<dyn ConfigSource>,
    pub trust: Arc<dyn TrustStore>,
    pub http: Arc<dyn HttpTransport>,
    pub mcp: Arc<dyn McpConnector>,
    pub paths: Arc<dyn PathResolver>,
    /// What the agent's own tools did to files.
    pub files: Arc<dyn FileHistory>,
    /// What the command line says about settings.
    pub overlay: CommandLineOverlay,
}

/// Whether the store outlives the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persistence {
    Kept,
    GoneWithTheProcess,
}

/// The few parameters from which a session is put together.
#[derive(Clone)]
pub struct LiteParams {
    /// The agent definition's reference: `main`.
    pub agent: String,
    /// Absolute; links are resolved.
    pub cwd: String,
    /// MCP servers that the client offers, in its order.
    pub offered_servers: Vec<OfferedServer>,
    /// The way to whoever can answer for this session.
    pub broker: Arc<dyn UserInteractionBroker>,
    /// Whether a session that another live process has open is taken over. That process then loses it: its later writes are
    /// refused.
    pub take_over: TakeOver,
}

/// What to do about a session that another process has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TakeOver {
    /// It stays there, and opening it here is refused.
    #[default]
    No,
    Yes,
}

/// An MCP server of the client's choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfferedServer {
    pub name: String,
    pub transport: McpTransport,
}

/// A session that runs here now.
pub struct OpenedSession {
    pub facts: SessionFacts,
    /// To be read by one reader until they end.
    pub events: StampedEvents,
}

/// A session that runs here now and has a history.
pub struct LoadedSession {
    pub opened: OpenedSession,
    /// Messages of the conversation when it was opened: what a client that wants the history is to be told. They can be
    /// read by `Controller::history`; those that come later are told by events.
    pub messages: u64,
}

/// What a client chooses for a session that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingChoice {
    /// `PROVIDER/MODEL`, of a provider that settings name.
    Model(String),
    PermissionMode(PermissionMode),
    /// None: requests say what settings say of thinking.
    Effort(Option<Effort>),
}

/// A model that a client can offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelChoice {
    /// `PROVIDER/MODEL`.
    pub id: String,
}

/// What a client may want to show of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionFacts {
    pub session_id: SessionId,
    pub session_epoch: SessionEpoch,
    /// Absolute, links resolved.
    pub cwd: String,
    /// What the session was opened with. Its events tell what becomes of it.
    pub settings: SessionSettings,
    /// The models that settings list, and the one in use if they do not; those of its provider come first. Others can be
    /// chosen too: settings need not list a model.
    pub models: Vec<ModelChoice>,
    /// What a prompt that begins with a slash may run.
    pub commands: Vec<CommandSpec>,
    /// As the model is shown them.
    pub tools: Vec<ShownTool>,
    pub persistence: Persistence,
}
