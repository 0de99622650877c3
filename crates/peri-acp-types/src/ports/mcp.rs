//! The way to an MCP server: a duplex of JSON-RPC messages, whatever carries it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::channel::mpsc;
use serde_json::Value;

/// Opens servers.
#[async_trait::async_trait]
pub trait McpConnector: Send + Sync {
    /// Connects to a server, starting it if need be. Waits as long as the start takes: the caller bounds it. Dropping
    /// both ends of the duplex closes the connection and ends what was started for it.
    ///
    /// # Errors
    /// [`McpConnectError`] where it cannot be reached.
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError>;
}

/// A server, and what the session grants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpServerSpec {
    /// The configured name, or the module name of a builtin server.
    pub name: String,
    /// Workspace roots of the session, absolute; the first is its working directory.
    pub roots: Vec<String>,
    /// Variables of Peri's own environment that processes of the server must not see: the keys of model providers. What is
    /// given to the server by name wins.
    pub hidden_env: Vec<String>,
    pub transport: McpTransport,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum McpTransport {
    /// In this process, by an in-memory pair.
    Builtin(BuiltinSettings),
    /// A process that speaks on its standard input and output.
    Stdio {
        /// Looked up in PATH unless it holds a slash.
        command: String,
        args: Vec<String>,
        /// On top of Peri's own environment. Secret: tokens are handed over this way.
        env: BTreeMap<String, super::Secret>,
    },
    /// MCP's streamable HTTP.
    Http {
        /// Absolute `http` or `https` URL.
        url: String,
        headers: Vec<(String, super::HeaderValue)>,
    },
}

/// What settings say to a builtin server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuiltinSettings {
    /// Variables for the processes that its tools start, on top of Peri's own. Secret: tokens are handed over this way.
    pub env: BTreeMap<String, super::Secret>,
    /// Foreground time of a command where the call does not say.
    pub command_timeout: Duration,
    /// The longest foreground time that a call may ask for.
    pub max_command_timeout: Duration,
}

/// Both directions. Messages are whole JSON-RPC 2.0 messages; the incoming half ends when the server is gone.
pub struct McpDuplex {
    pub incoming: mpsc::Receiver<Value>,
    pub outgoing: mpsc::Sender<Value>,
}

impl McpDuplex {
    /// Two connected ends, each direction holding `capacity` messages before its sender waits.
    pub fn pair(capacity: usize) -> (McpDuplex, McpDuplex) {
        let (left_tx, left_rx) = mpsc::channel(capacity);
        let (right_tx, right_rx) = mpsc::channel(capacity);
        (McpDuplex { incoming: left_rx, outgoing: right_tx }, McpDuplex { incoming: right_rx, outgoing: left_tx })
    }
}

/// A server that could not be reached.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum McpConnectError {
    #[error("MCP server `{server}`: {reason}")]
    Failed { server: String, reason: String },
    #[error("MCP server `{server}`: this host has no {what}")]
    Unsupported { server: String, what: &'static str },
}

/// The key of `_meta` in a `tools/list` entry of a builtin server: the word of [`crate::ToolKind`].
pub const META_TOOL_KIND: &str = "peri/kind";
/// The key of `_meta` in a `tools/call` request to a builtin server: an array of absolute, canonical paths that permission
/// has granted for this call although they lie outside the roots. Only the host sets it; the model cannot.
pub const META_GRANTED_PATHS: &str = "peri/grantedPaths";
/// The key of `_meta` in a `tools/call` request to a builtin server: an array of globs on absolute, canonical paths that
/// a search must leave out, since a rule denies reading them. Only the host sets it.
pub const META_HIDDEN_PATHS: &str = "peri/hiddenPaths";
/// The key of `_meta` in a `tools/call` result of a builtin server: `{"locations": [{"path", "line"?}],
/// "diffs": [{"path", "oldText"?, "newText"}]}`, for display.
pub const META_TOOL_DETAILS: &str = "peri/details";
/// The key of `_meta` in a `tools/call` request to a builtin server: `{"sessionId", "turnId"}`, for the file history. Only the
/// host sets it.
pub const META_TURN: &str = "peri/turn";
