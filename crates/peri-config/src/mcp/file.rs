//! `.mcp.json` of a workspace: a file that several tools read.
//!
//! Invariant: nothing in it stops Peri. It restricts nothing, so that what cannot be followed is named and left out.

use std::collections::BTreeMap;

use super::document::McpServerDocument;
use super::read::read_servers;
use crate::parse::parse_object;
use crate::reader::{Fields, Sink};
use crate::{Diagnostic, Origin, Severity};

/// The servers of the file, and what is to be said of it: warnings only.
pub(crate) fn read_mcp_file(origin: &Origin, bytes: &[u8]) -> (BTreeMap<String, McpServerDocument>, Vec<Diagnostic>) {
    let sink = Sink::new(origin.clone());
    let servers = parse_object(bytes, &sink).and_then(|map| {
        let mut fields = Fields::of_document(&map, &sink);
        fields.get("$schema", |node| node.text().map(str::to_owned));
        let servers = fields.get("mcpServers", read_servers);
        if !map.is_empty() && !fields.has("mcpServers") {
            fields.warn_at("mcpServers", "is missing", "write `{\"mcpServers\": {\"NAME\": {\"command\": ...}}}`");
        }
        fields.finish();
        servers
    });
    (servers.unwrap_or_default(), sink.into_findings().into_iter().map(as_warning).collect())
}

fn as_warning(mut finding: Diagnostic) -> Diagnostic {
    if finding.severity == Severity::Error {
        let is_of_server = finding.key.as_ref().is_some_and(|key| key.starts_with("mcpServers."));
        finding.message.push_str(if is_of_server { ": the server is left out" } else { ": the file is left out" });
        finding.severity = Severity::Warning;
    }
    finding
}
