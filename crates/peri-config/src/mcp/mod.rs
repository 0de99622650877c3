//! MCP servers that the user configured: what is written about them, and what that means in this environment.
//!
//! Owns: the typed form of a server, filling in its variables. Must not: start or reach a server. Invariant: one server
//! that cannot be used never takes another with it, and never shows a value that may be secret.

mod document;
mod file;
mod name;
mod read;
mod secrets;

use std::collections::BTreeMap;
use std::fmt;

use peri_acp_types::ports::{HeaderValue, McpTransport, Secret};
use serde_json::Value;

pub use document::{McpDocument, McpServerDocument, McpServerKind};
pub(crate) use file::read_mcp_file;
pub(crate) use name::is_server_name;
use read::{check_argument, check_command, check_header_value, check_url};
pub(crate) use read::{read_mcp, read_servers};
use secrets::secrets_of_variable;

use crate::expand::{FillError, Variables, fill, variables_in};
use crate::path::{Path, shown_text};

/// What a server's texts may come to with their variables filled in, in bytes.
const MAX_FILLED_BYTES: usize = 256 * 1024;
/// Faults that are told of one server.
const MAX_FAULTS: usize = 5;

/// A configured MCP server.
#[derive(Clone, PartialEq)]
pub struct McpServer {
    /// [`McpTransport::Stdio`] or [`McpTransport::Http`], variables filled in: arguments and address may hold secrets then
    /// and must not be shown; [`McpServer::to_display_json`] may. Of a server that is not enabled, as it is written.
    pub transport: McpTransport,
    /// False: it is configured, but not to be started, since it is switched off or (reported) lacks a variable.
    pub enabled: bool,
    written: McpServerDocument,
    /// What must not be shown of what is said about it.
    secrets: Vec<Secret>,
}

/// Why a server cannot be used.
pub(crate) struct ServerFault {
    /// The key's path.
    pub(crate) key: String,
    /// Reads on from the key.
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl McpServer {
    /// The server as it is written, for people: command line and address are shown, the values of variables and headers
    /// are not, nor is a query of the address.
    pub fn to_display_json(&self) -> Value {
        self.written.to_display_json()
    }

    /// The server that the document describes in this environment, and what keeps it from being used. The document must have
    /// been read without an error.
    pub(crate) fn resolve(
        name: &str,
        written: McpServerDocument,
        variable: Variables<'_>,
    ) -> (McpServer, Vec<ServerFault>) {
        // Those of a server that is off count too: it may have run before.
        let mut texts =
            Texts { variable: Some(variable), room: MAX_FILLED_BYTES, secrets: BTreeMap::new(), faults: Vec::new() };
        let filled = texts.transport(name, &written);
        let Texts { secrets, faults, .. } = texts;
        let mut secrets: Vec<Secret> = secrets.into_values().flatten().collect();
        secrets.extend(McpServer::secrets_of(&filled));
        let is_wanted = written.is_enabled();
        if is_wanted && faults.is_empty() {
            return (McpServer { transport: filled, enabled: true, written, secrets }, faults);
        }
        let transport = Texts::as_written().transport(name, &written);
        let faults = if is_wanted { faults } else { Vec::new() };
        (McpServer { transport, enabled: false, written, secrets }, faults)
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpServer({})", self.to_display_json())
    }
}

/// What is wrong with a text: a message that reads on from the key, and a mend. Neither repeats the text.
type Check = fn(&str) -> Result<(), (&'static str, &'static str)>;

/// Fills a server's texts in, and collects what is wrong with them.
struct Texts<'a> {
    /// None: texts stay as they are written.
    variable: Option<Variables<'a>>,
    /// Bytes that they may still take.
    room: usize,
    /// What the variables hold that they name, by name: one that is named often counts once.
    secrets: BTreeMap<String, Vec<Secret>>,
    faults: Vec<ServerFault>,
}

impl Texts<'_> {
    fn as_written() -> Texts<'static> {
        Texts { variable: None, room: 0, secrets: BTreeMap::new(), faults: Vec::new() }
    }

    fn transport(&mut self, name: &str, written: &McpServerDocument) -> McpTransport {
        let servers = Path::ROOT.key("mcpServers");
        let server = servers.key(name);
        match (&written.command, &written.url) {
            (Some(command), _) => McpTransport::Stdio {
                command: self.filled(&server.key("command"), command, check_command),
                args: self.args(&server.key("args"), written.args.as_deref().unwrap_or_default()),
                env: self.secrets(&server.key("env"), written.env.as_ref(), check_argument),
            },
            (None, url) => McpTransport::Http {
                url: self.filled(&server.key("url"), url.as_deref().unwrap_or_default(), check_url),
                headers: self
                    .secrets(&server.key("headers"), written.headers.as_ref(), check_header_value)
                    .into_iter()
                    .map(|(name, value)| (name, HeaderValue::Secret(value)))
                    .collect(),
            },
        }
    }

    /// The text filled in, or (reported) an empty one.
    fn filled(&mut self, path: &Path<'_>, text: &str, check: Check) -> String {
        let Some(variable) = self.variable else { return text.to_owned() };
        for name in variables_in(text) {
            if !self.secrets.contains_key(name) {
                let held = variable(name).map(|value| secrets_of_variable(name, &value));
                self.secrets.insert(name.to_owned(), held.unwrap_or_default());
            }
        }
        match fill(text, variable, &mut self.room) {
            Ok(filled) => match check(&filled) {
                Ok(()) => return filled,
                Err((message, mend)) => {
                    self.fault(path, format!("{message}, with its variables filled in"), mend.to_owned())
                }
            },
            Err(FillError::Unset(name)) => {
                let name = shown_text(name);
                let message = format!("names the environment variable `{name}`, which is not set");
                self.fault(path, message, format!("set it, or write `${{{name}:-DEFAULT}}`"));
            }
            Err(FillError::TooLarge) => {
                let message = format!("makes the server's texts larger than {MAX_FILLED_BYTES} bytes");
                self.fault(path, message, "look at what its variables hold".to_owned());
            }
        }
        String::new()
    }

    fn args(&mut self, path: &Path<'_>, args: &[String]) -> Vec<String> {
        args.iter().enumerate().map(|(index, arg)| self.filled(&path.index(index), arg, check_argument)).collect()
    }

    fn secrets(
        &mut self,
        path: &Path<'_>,
        secrets: Option<&BTreeMap<String, Secret>>,
        check: Check,
    ) -> BTreeMap<String, Secret> {
        let filled = |(name, value): (&String, &Secret)| {
            (name.clone(), Secret::new(self.filled(&path.key(name), value.reveal(), check)))
        };
        secrets.into_iter().flatten().map(filled).collect()
    }

    fn fault(&mut self, path: &Path<'_>, message: String, hint: String) {
        // Once the room is used up every further text would say so.
        if self.faults.len() < MAX_FAULTS && !self.faults.iter().any(|known| known.message == message) {
            self.faults.push(ServerFault { key: path.shown().unwrap_or_default(), message, hint });
        }
    }
}
