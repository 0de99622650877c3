//! Tools that are not listed: where the external ones would take too much of every request, two tools stand for all of
//! them, one that finds and one that calls.
//!
//! Invariant: the two are the same for the whole session, and a call by name is judged as the call that it stands for.

use std::collections::BTreeMap;

use peri_acp_types::{ToolArguments, ToolKind, ToolOrigin, ToolOutput, ToolSpec};
use serde_json::{Map, Value, json};

use super::pool::{Pool, PooledTool};

/// Finds tools.
pub(super) const SEARCH: &str = "McpSearch";
/// Calls one.
pub(super) const CALL: &str = "McpCall";
/// The module that the two belong to.
const MODULE: &str = "mcp";

/// Tools whose schemas are shown where the search does not say.
const DEFAULT_SHOWN: usize = 5;
const MAX_SHOWN: usize = 20;
/// Further tools of which the name is shown.
const MAX_NAMED: usize = 50;
/// The text of one tool, and of all that are shown, in bytes.
const MAX_TOOL: usize = 16 * 1024;
const MAX_TEXT: usize = 48 * 1024;
/// Servers that the description names.
const MAX_SERVERS: usize = 50;

/// What the tool costs in every request, in bytes.
pub(super) fn size_of(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()
}

/// The two tools.
pub(super) fn specs(pool: &Pool) -> [ToolSpec; 2] {
    let spec = |name: &str, description: String, input_schema: Value, kind| ToolSpec {
        name: name.to_owned(),
        description,
        input_schema,
        kind,
        // A call by name is judged as what it stands for. What stands for nothing does nothing.
        read_only: true,
        origin: ToolOrigin::Builtin(MODULE.to_owned()),
    };
    let search = spec(
        SEARCH,
        format!(
            "Finds tools of MCP servers: their names, descriptions and input schemas. Call what it finds with `{CALL}`. \
             Servers: {}.",
            servers(pool)
        ),
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words that the tool's name or description should hold, or its exact name. Empty: all tools."},
                "limit": {"type": "integer", "description": format!("Tools to show with their schemas; {DEFAULT_SHOWN} if not given, at most {MAX_SHOWN}.")},
            },
            "required": ["query"],
        }),
        ToolKind::Search,
    );
    let call = spec(
        CALL,
        format!("Calls a tool of an MCP server by the name that `{SEARCH}` gave."),
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "For example `mcp__server__tool`."},
                "arguments": {"type": "object", "description": "As the tool's input schema wants them."},
            },
            "required": ["name", "arguments"],
        }),
        ToolKind::Other,
    );
    [search, call]
}

fn external(pool: &Pool) -> impl Iterator<Item = &PooledTool> {
    pool.tools.iter().filter(|tool| tool.is_external())
}

/// `docs (12 tools), git (3 tools)`, in the order of the servers.
fn servers(pool: &Pool) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut counts = BTreeMap::<&str, usize>::new();
    for tool in external(pool) {
        let count = counts.entry(&tool.server).or_default();
        if *count == 0 {
            names.push(&tool.server);
        }
        *count += 1;
    }
    let counted = |name: &&str| match counts.get(name) {
        Some(1) => format!("{name} (1 tool)"),
        count => format!("{name} ({} tools)", count.copied().unwrap_or_default()),
    };
    let mut words: Vec<String> = names.iter().take(MAX_SERVERS).map(counted).collect();
    if names.len() > MAX_SERVERS {
        words.push(format!("{} more", names.len() - MAX_SERVERS));
    }
    words.join(", ")
}

/// The call that a call by name stands for.
///
/// # Errors
/// Why it stands for none, as its result.
pub(super) fn resolve<'a>(
    pool: &'a Pool,
    arguments: &ToolArguments,
) -> Result<(&'a PooledTool, Map<String, Value>), ToolOutput> {
    let refused = |why: String| ToolOutput::error(format!("`{CALL}` called nothing: {why}."));
    let Some(name) = arguments.str("name") else {
        return Err(refused("it needs `name`, a text".to_owned()));
    };
    let Some(tool) = external(pool).find(|tool| tool.spec.name == name) else {
        return Err(refused(format!("there is no tool `{name}`; find names with `{SEARCH}`")));
    };
    match arguments.object().and_then(|arguments| arguments.get("arguments")) {
        Some(Value::Object(inner)) => Ok((tool, inner.clone())),
        None | Some(Value::Null) => Ok((tool, Map::new())),
        // Some models write an object in quotes.
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(inner)) => Ok((tool, inner)),
            _ => Err(refused("`arguments` must be an object".to_owned())),
        },
        Some(_) => Err(refused("`arguments` must be an object".to_owned())),
    }
}

/// Runs a search.
pub(super) fn search(pool: &Pool, arguments: &ToolArguments) -> ToolOutput {
    let query = arguments.str("query").unwrap_or_default();
    let limit = arguments.object().and_then(|arguments| arguments.get("limit")).and_then(Value::as_u64);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(DEFAULT_SHOWN).clamp(1, MAX_SHOWN);
    let found = matches(pool, query);
    if found.is_empty() {
        return ToolOutput::text(format!("No tool matches `{query}`. Servers: {}.", servers(pool)));
    }
    let mut text = String::new();
    let mut shown = 0;
    for tool in found.iter().take(limit) {
        let entry = describe(&tool.spec);
        if shown > 0 && text.len() + entry.len() > MAX_TEXT {
            break;
        }
        text.push_str(&entry);
        shown += 1;
    }
    let named: Vec<&str> = found.iter().skip(shown).take(MAX_NAMED).map(|tool| tool.spec.name.as_str()).collect();
    if !named.is_empty() {
        text.push_str(&format!("Not shown: {}", named.join(", ")));
    }
    if found.len() > shown + named.len() {
        text.push_str(&format!(" and {} more; say more in `query`", found.len() - shown - named.len()));
    }
    ToolOutput::text(text)
}

fn describe(tool: &ToolSpec) -> String {
    let entry = format!("{}\n{}\nInput schema: {}\n\n", tool.name, tool.description, tool.input_schema);
    match entry.len() <= MAX_TOOL {
        true => entry,
        false => {
            format!("{}\n[its description and schema are too long to be shown: {} bytes]\n\n", tool.name, entry.len())
        }
    }
}

/// The best first; among equals in the order of their servers.
fn matches<'a>(pool: &'a Pool, query: &str) -> Vec<&'a PooledTool> {
    let query = query.trim().to_lowercase();
    let words: Vec<&str> = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut found: Vec<(usize, &PooledTool)> = external(pool)
        .map(|tool| (score(tool, &query, &words), tool))
        .filter(|(score, _)| *score > 0 || query.is_empty())
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, tool)| tool).collect()
}

/// A word in the name counts more than any number in the description.
fn score(tool: &PooledTool, query: &str, words: &[&str]) -> usize {
    let name = tool.spec.name.to_lowercase();
    if name == query || tool.served_as.to_lowercase() == query {
        return usize::MAX;
    }
    let description = tool.spec.description.to_lowercase();
    let weight = |word: &&str| match (name.contains(word), description.contains(word)) {
        (true, _) => words.len() + 1,
        (false, true) => 1,
        (false, false) => 0,
    };
    words.iter().map(weight).sum()
}
