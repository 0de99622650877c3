//! Secrets out of what leaves the machine.
//!
//! Owns: which secrets are known: those that the settings hold or name. Must not: guess; what a tool printed besides them
//! stays. Invariant: no known secret of eight bytes or more is in a value that went through here.

use peri_acp_types::ports::Secret;
use peri_config::{ApiKey, Settings};
use serde_json::Value;

/// Variables that hold keys, whether the settings name them or not.
const KEY_VARIABLES: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// The secrets that are taken out.
pub struct Redaction {
    secrets: Vec<Secret>,
}

impl Redaction {
    /// All that these settings hold: keys and headers of providers, variables for tools, what MCP servers are given, each
    /// part by itself where one could be repeated so. The usual variables for keys count too, whatever the settings say.
    pub fn of(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Redaction {
        let mut secrets: Vec<Secret> = settings.env.values().cloned().collect();
        secrets.extend(KEY_VARIABLES.into_iter().filter_map(variable).map(|key| Secret::new(key.trim())));
        for provider in settings.providers.values().map(|provider| &provider.value) {
            secrets.extend(provider.headers.values().cloned());
            match &provider.key {
                ApiKey::Plain(secret) | ApiKey::Variable { value: Some(secret), .. } => {
                    // Without the white space that a file may have put around it.
                    secrets.push(Secret::new(secret.reveal().trim()));
                }
                ApiKey::Variable { value: None, .. } | ApiKey::None => {}
            }
        }
        secrets.extend(settings.mcp_servers.values().flat_map(|server| server.value.secrets()));
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
        Redaction { secrets }
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    /// Every text in a value, names of members included.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (self.text(&name), self.value(value))).collect()
            }
            other => other,
        }
    }
}
