//! MCP servers that a client brings, as the controller knows them.
//!
//! Invariant: what may hold a credential is a secret from here on.

use std::path::PathBuf;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{HttpHeader, McpServer, McpServerHttp, McpServerStdio};
use peri_acp_types::ports::{HeaderValue, McpTransport, Secret};
use peri_controller::OfferedServer;

use crate::errors::invalid_params;

/// A server of the client's.
///
/// # Errors
/// -32602 where it is of a kind that is not offered.
pub(crate) fn offered_server(server: McpServer) -> Result<OfferedServer, Error> {
    match server {
        McpServer::Stdio(McpServerStdio { name, command, args, env, .. }) => {
            let env = env.into_iter().map(|variable| (variable.name, Secret::new(variable.value))).collect();
            let transport = McpTransport::Stdio { command: path_text(command)?, args, env };
            Ok(OfferedServer { name, transport })
        }
        McpServer::Http(McpServerHttp { name, url, headers, .. }) => {
            let secret = |header: HttpHeader| (header.name, HeaderValue::Secret(Secret::new(header.value)));
            let transport = McpTransport::Http { url, headers: headers.into_iter().map(secret).collect() };
            Ok(OfferedServer { name, transport })
        }
        McpServer::Sse(server) => Err(invalid_params(&format!(
            "MCP server `{}`: the SSE transport is not offered; use streamable HTTP or stdio",
            server.name
        ))),
        _ => Err(invalid_params("an MCP server has a transport that is not known here")),
    }
}

/// JSON is text, so every path that came is.
///
/// # Errors
/// -32602.
pub(crate) fn path_text(path: PathBuf) -> Result<String, Error> {
    path.into_os_string().into_string().map_err(|_| invalid_params("a path must be UTF-8"))
}
