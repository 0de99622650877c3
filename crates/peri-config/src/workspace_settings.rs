//! What the files of a trusted workspace set: the list that a person sees before trusting it.
//!
//! Invariant: everything that takes trust and has, or could come to have, an effect is in the list, in words that show no
//! secret and do not steer a terminal.

use std::fmt;

use serde_json::{Value, json};

use crate::path::visible;
use crate::{Origin, Resolution, Sourced};

/// A setting that takes trust. `Display` is one line: ``mcpServers.git = {"command":"uvx"} (/ws/.mcp.json)``.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkspaceSetting {
    /// As in [`Resolution::origins`], or the list to which the value is added.
    pub key: String,
    /// As in [`Settings::to_display_json`](crate::Settings::to_display_json).
    pub value: Value,
    pub origin: Origin,
}

impl fmt::Display for WorkspaceSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", visible(&self.key), visible(&self.value.to_string()), self.origin)
    }
}

impl Resolution {
    /// What the workspace's own files set, as far as it takes trust. MCP servers are as they are written, those among them
    /// that lack a variable now.
    pub fn set_by_workspace(&self) -> Vec<WorkspaceSetting> {
        let shown = self.settings.to_display_json();
        let of_key = |(key, origin): (&String, &Origin)| {
            let value = shown_value(&shown, key).cloned().unwrap_or(Value::Null);
            WorkspaceSetting { key: key.clone(), value, origin: origin.clone() }
        };
        let permissions = &self.settings.permissions;
        let rules =
            permissions.allow.iter().map(|rule| added("permissions.allow", json!(rule.value.to_string()), rule));
        let directories = permissions
            .additional_directories
            .iter()
            .map(|directory| added("permissions.additionalDirectories", json!(directory.value), directory));
        let all = self.origins.iter().map(of_key).chain(rules).chain(directories);
        all.filter(|setting| setting.origin.layer.needs_trust()).collect()
    }
}

fn added<T>(key: &str, value: Value, item: &Sourced<T>) -> WorkspaceSetting {
    WorkspaceSetting { key: key.to_owned(), value, origin: item.origin.clone() }
}

/// The value at a key of [`Resolution::origins`]: `KEY`, `KEY.KEY`, `MAP.NAME` or `MAP.NAME.KEY`, where a name may hold dots.
fn shown_value<'a>(shown: &'a Value, key: &str) -> Option<&'a Value> {
    let Some((first, rest)) = key.split_once('.') else { return shown.get(key) };
    let map = shown.get(first)?;
    let of_entry = || rest.rsplit_once('.').and_then(|(name, key)| map.get(name)?.get(key));
    map.get(rest).or_else(of_entry)
}
