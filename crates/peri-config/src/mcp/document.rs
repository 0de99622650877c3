//! What is written about MCP servers: the types behind the JSON schema.
//!
//! Invariant: `Debug` shows no value of `env` and `headers`, and no query of an address.

use std::collections::BTreeMap;
use std::fmt;

use peri_acp_types::ports::Secret;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::REDACTED;
use crate::expand::shown_secret;
use crate::path::visible;

/// An MCP server, in the shape that other tools use in `.mcp.json`. `${NAME}` and `${NAME:-default}` in `command`, `args`,
/// `env`, `url` and `headers` stand for environment variables.
#[derive(Clone, PartialEq, Default, JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    deny_unknown_fields,
    extend("anyOf" = [
        {"required": ["command"]}, {"required": ["url"]}, {"required": ["enabled"]}, {"required": ["disabled"]}
    ])
)]
pub struct McpServerDocument {
    /// How it is reached. Unset: `stdio` with `command`, `http` with `url`.
    #[schemars(rename = "type")]
    pub kind: Option<McpServerKind>,
    /// The program to start: looked up in PATH unless it holds a slash.
    #[schemars(length(min = 1))]
    pub command: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Its environment variables, on top of Peri's own.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub env: Option<BTreeMap<String, Secret>>,
    /// The address of a server that speaks streamable HTTP.
    #[schemars(regex(pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S|\$\{)"))]
    pub url: Option<String>,
    /// Headers for every request to it.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub headers: Option<BTreeMap<String, Secret>>,
    /// false: it is not started. Alone, it switches off the server of that name from a lower source.
    pub enabled: Option<bool>,
    /// The same the other way round.
    pub disabled: Option<bool>,
}

/// How an MCP server is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum McpServerKind {
    /// A program that speaks on its standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// The same as `http`.
    StreamableHttp,
}

impl McpServerKind {
    pub(crate) const WORDS: [(&'static str, McpServerKind); 3] = [
        ("stdio", McpServerKind::Stdio),
        ("http", McpServerKind::Http),
        ("streamable-http", McpServerKind::StreamableHttp),
    ];
}

/// What holds for all MCP servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpDocument {
    /// Bytes that the descriptions of all servers' tools may take in a request before tools are deferred: the model then
    /// has to look them up. 0: they are always deferred.
    #[schemars(range(min = 0, max = 1_073_741_824u32))]
    pub tool_schema_budget_bytes: Option<u64>,
}

impl McpServerDocument {
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true) && !self.disabled.unwrap_or(false)
    }

    /// True for `{"enabled": false}`: it says nothing of a server but that it is not wanted.
    pub(crate) fn only_switches(&self) -> bool {
        self.command.is_none() && self.url.is_none()
    }

    /// As it is written, for people: values that may be secret are replaced, variables are shown by name.
    pub(crate) fn to_display_json(&self) -> Value {
        let mut shown = Map::new();
        let secrets = |values: &BTreeMap<String, Secret>| -> Value {
            let shown = |(name, value): (&String, &Secret)| (visible(name), json!(shown_secret(value.reveal())));
            Value::Object(values.iter().map(shown).collect())
        };
        if let Some(command) = &self.command {
            shown.insert("command".to_owned(), json!(visible(command)));
            let args: Vec<String> = self.args.iter().flatten().map(|arg| visible(arg)).collect();
            shown.insert("args".to_owned(), json!(args));
            shown.extend(self.env.as_ref().map(|env| ("env".to_owned(), secrets(env))));
        }
        if let Some(url) = &self.url {
            shown.insert("type".to_owned(), json!("http"));
            shown.insert("url".to_owned(), json!(shown_url(url)));
            shown.extend(self.headers.as_ref().map(|headers| ("headers".to_owned(), secrets(headers))));
        }
        shown.insert("enabled".to_owned(), json!(self.is_enabled()));
        Value::Object(shown)
    }
}

impl fmt::Debug for McpServerDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpServerDocument({})", self.to_display_json())
    }
}

/// An address without what keys are often put into: its query, and a password.
fn shown_url(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, format!("?{REDACTED}")),
        None => (url, String::new()),
    };
    let authority_start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(authority_start);
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let shown = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{REDACTED}@{host}{path}{query}"),
        None => format!("{url}{query}"),
    };
    visible(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        for (url, expect) in [
            ("https://h/mcp", "https://h/mcp"),
            ("https://h/mcp?key=geheim&x=?", "https://h/mcp?[redacted]"),
            ("https://u:geheim@h/a@b", "https://[redacted]@h/a@b"),
            ("${BASE}/mcp", "${BASE}/mcp"),
            ("https://h/\u{202e}x", "https://h/\\u{202e}x"),
        ] {
            assert_eq!(shown_url(url), expect);
        }
    }
}
