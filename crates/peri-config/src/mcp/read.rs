//! From JSON to [`McpServerDocument`].
//!
//! Invariant: a server of which any part cannot be read is not there at all: half a command line is another command.

use std::collections::BTreeMap;

use peri_acp_types::ports::Secret;

use super::Check;
use super::document::{McpDocument, McpServerDocument, McpServerKind};
use super::name::{SERVER_NAME_FORM, is_server_name};
use crate::base_url::check_http_url;
use crate::expand::names_variables;
use crate::read_document::{OWN_HEADERS, is_header_name, is_header_value, read_variable};
use crate::reader::{Fields, Node};

/// Servers of one document.
const MAX_SERVERS: usize = 100;
/// The largest budget that can be set, in bytes.
const MAX_BUDGET: u64 = 1 << 30;
/// Headers that belong to MCP's own transport, beside those of every HTTP request.
const TRANSPORT_HEADERS: [&str; 4] = ["accept", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

pub(crate) fn read_servers(node: Node<'_>) -> Option<BTreeMap<String, McpServerDocument>> {
    if node.object()?.len() > MAX_SERVERS {
        return node.error(format!("holds more than {MAX_SERVERS} servers"), "keep those that are used");
    }
    node.map(|name, node| {
        let errors_before = node.errors();
        let server = read_server(name, node)?;
        (node.errors() == errors_before).then_some(server)
    })
}

pub(crate) fn read_mcp(node: Node<'_>) -> Option<McpDocument> {
    let mut fields = node.fields()?;
    let tool_schema_budget_bytes = fields.get("toolSchemaBudgetBytes", |node| node.integer(0..=MAX_BUDGET));
    fields.finish();
    Some(McpDocument { tool_schema_budget_bytes })
}

fn read_server(name: &str, node: Node<'_>) -> Option<McpServerDocument> {
    if !is_server_name(name) {
        return node.error("has a name that permission rules could not use", SERVER_NAME_FORM);
    }
    let mut fields = node.fields()?;
    let kind = fields.get("type", |node| Some(read_kind(node)));
    let server = McpServerDocument {
        kind: kind.flatten(),
        command: fields.get("command", |node| checked(node, check_command)),
        args: fields.get("args", |node| node.list(|node| checked(node, check_argument))),
        env: fields.get("env", |node| node.map(read_variable)),
        url: fields.get("url", |node| checked(node, check_url)),
        headers: fields.get("headers", |node| node.map(read_header)).map(without_own),
        enabled: fields.get("enabled", |node| node.truth()),
        disabled: fields.get("disabled", |node| node.truth()),
    };
    let kind_is_known = kind.is_none_or(|kind| kind.is_some());
    let fits = !kind_is_known || is_whole(server.kind, &fields);
    fields.finish();
    (kind_is_known && fits).then_some(server)
}

/// None, reported, for a kind that is not spoken.
fn read_kind(node: Node<'_>) -> Option<McpServerKind> {
    if node.text()? == "sse" {
        node.warn(
            "is `sse`, which Peri does not speak: the server is left out",
            "most such servers speak streamable HTTP as well: write `http`, with the address that is meant for it",
        );
        return None;
    }
    node.word(&McpServerKind::WORDS)
}

/// Checks that what belongs together is there, and names what has no effect beside it.
fn is_whole(kind: Option<McpServerKind>, fields: &Fields<'_>) -> bool {
    let is_program = match (kind, fields.has("command"), fields.has("url")) {
        (Some(McpServerKind::Stdio), ..) => true,
        (Some(McpServerKind::Http | McpServerKind::StreamableHttp), ..) => false,
        (None, true, true) => {
            fields.error_at("url", "stands beside `command`", "keep the one that is meant, or set `type`");
            return false;
        }
        (None, command, url) => command || !url,
    };
    if fields.has("enabled") && fields.has("disabled") {
        fields.error_at("disabled", "stands beside `enabled`", "keep one of them");
        return false;
    }
    let (wanted, without_effect): (&'static str, &[&'static str]) =
        if is_program { ("command", &["url", "headers"]) } else { ("url", &["command", "args", "env"]) };
    let is_switch = kind.is_none() && (fields.has("enabled") || fields.has("disabled"));
    if !fields.has(wanted) && !is_switch {
        let hint = match kind {
            None => "set `command` (a program to start) or `url` (a server over HTTP)",
            Some(_) if is_program => "set it to the program to start",
            Some(_) => "set it to the server's address",
        };
        fields.error_at(wanted, "is missing", hint);
        return false;
    }
    for name in without_effect.iter().filter(|name| fields.has(name)) {
        fields.warn_at(name, "has no effect on a server of this kind", "");
    }
    true
}

/// A text that is checked now if it is whole, else when its variables are filled in.
fn checked(node: Node<'_>, check: Check) -> Option<String> {
    let text = node.text()?;
    if !names_variables(text)
        && let Err((message, mend)) = check(text)
    {
        return node.error(message, mend);
    }
    Some(text.to_owned())
}

pub(super) fn check_command(text: &str) -> Result<(), (&'static str, &'static str)> {
    match text.trim().is_empty() {
        true => Err(("must not be empty", "set it to the program to start")),
        false => check_argument(text),
    }
}

pub(super) fn check_argument(text: &str) -> Result<(), (&'static str, &'static str)> {
    match text.contains('\0') {
        true => Err(("must not hold a NUL character", "")),
        false => Ok(()),
    }
}

pub(super) fn check_url(text: &str) -> Result<(), (&'static str, &'static str)> {
    check_http_url(text)?;
    match text.contains('#') {
        true => Err(("must not hold `#`", "a part behind `#` is never sent")),
        false => Ok(()),
    }
}

pub(super) fn check_header_value(text: &str) -> Result<(), (&'static str, &'static str)> {
    match is_header_value(text) {
        true => Ok(()),
        false => Err(("must be printable ASCII, 8192 bytes at most", "")),
    }
}

/// The inner None: Peri sets that header itself, which is said. Files of other tools often name such headers, so that it
/// is no reason to refuse the server.
fn read_header(name: &str, node: Node<'_>) -> Option<Option<Secret>> {
    if !is_header_name(name) {
        return node.error("is not the name of an HTTP header", "");
    }
    let value = checked(node, check_header_value)?;
    let lower = name.to_ascii_lowercase();
    if OWN_HEADERS.contains(&lower.as_str()) || TRANSPORT_HEADERS.contains(&lower.as_str()) {
        node.warn("has no effect: Peri sets this header itself", "leave it out");
        return Some(None);
    }
    if matches!(lower.as_str(), "authorization" | "x-api-key" | "api-key") && !names_variables(&value) {
        node.warn(
            "holds a secret in plain text",
            "better keep it in an environment variable and write `${NAME}` in its place",
        );
    }
    Some(Some(Secret::new(value)))
}

fn without_own(headers: BTreeMap<String, Option<Secret>>) -> BTreeMap<String, Secret> {
    headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
