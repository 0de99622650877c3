//! Settings as people may see them.
//!
//! Owns: the shape of a document, filled from the settings in force. Invariant: no secret is in it, and it is a document
//! again, so that what is shown can be copied.

use std::collections::BTreeMap;

use peri_acp_types::DEFAULT_MAX_OUTPUT_TOKENS;
use peri_acp_types::ports::Secret;
use serde_json::{Map, Value, json};

use crate::expand::shown_secret;
use crate::*;

/// What a display shows in a secret's place.
pub const REDACTED: &str = "[redacted]";

impl Settings {
    /// The settings in the shape of a document, for people: secrets are replaced by [`REDACTED`].
    pub fn to_display_json(&self) -> Value {
        let rules = |rules: &[Sourced<PermissionRule>]| -> Vec<String> {
            rules.iter().map(|rule| rule.value.to_string()).collect()
        };
        let directories: Vec<&str> =
            self.permissions.additional_directories.iter().map(|directory| directory.value.as_str()).collect();
        let providers: Map<String, Value> =
            self.providers.iter().map(|(name, provider)| (name.clone(), provider.value.to_display_json())).collect();
        let servers: Map<String, Value> =
            self.mcp_servers.iter().map(|(name, server)| (name.clone(), server.value.to_display_json())).collect();
        let shown = json!({
            "model": self.model.as_ref().map(ModelRef::to_string),
            "providers": providers,
            "permissions": {
                "allow": rules(&self.permissions.allow),
                "ask": rules(&self.permissions.ask),
                "deny": rules(&self.permissions.deny),
                "mode": self.permissions.mode.as_str(),
                "additionalDirectories": directories,
            },
            "mcpServers": servers,
            "mcp": { "toolSchemaBudgetBytes": self.mcp_tool_schema_budget },
            "env": redacted(&self.env),
            "maxTurns": self.max_turns,
            "maxOutputTokens": self.max_output_tokens.unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS),
            "thinking": match self.effort {
                Some(effort) => json!({ "effort": effort.as_str() }),
                None => json!({ "budgetTokens": self.thinking_budget.unwrap_or(0) }),
            },
            "appendSystemPrompt": self.append_system_prompt,
            "loopGuard": self.loop_guard,
            "retry": {
                "maxAttempts": self.retry.max_attempts,
                "firstDelaySeconds": self.retry.first_delay.as_secs_f64(),
                "maxDelaySeconds": self.retry.max_delay.as_secs_f64(),
                "maxRetryAfterSeconds": self.retry.max_retry_after.as_secs_f64(),
                "idleTimeoutSeconds": self.retry.idle_timeout.as_secs_f64(),
            },
            "bash": {
                "defaultTimeoutSeconds": self.bash.default_timeout.as_secs_f64(),
                "maxTimeoutSeconds": self.bash.max_timeout.as_secs_f64(),
            },
        });
        without_nulls(shown)
    }
}

impl Provider {
    fn to_display_json(&self) -> Value {
        let limits = |model: &ModelDocument| {
            let mut shown = Map::new();
            shown.extend(model.context_window.map(|window| ("contextWindow".to_owned(), json!(window))));
            shown.extend(model.max_output_tokens.map(|output| ("maxOutputTokens".to_owned(), json!(output))));
            Value::Object(shown)
        };
        let mut shown = Map::new();
        shown.insert("protocol".to_owned(), json!(self.protocol.as_str()));
        shown.insert("baseUrl".to_owned(), json!(self.base_url));
        match &self.key {
            ApiKey::None => {}
            ApiKey::Plain(_) => shown.extend([("apiKey".to_owned(), json!(REDACTED))]),
            ApiKey::Variable { name, .. } => shown.extend([("apiKeyEnv".to_owned(), json!(name))]),
        }
        let models: Map<String, Value> = self.models.iter().map(|(id, model)| (id.clone(), limits(model))).collect();
        shown.insert("models".to_owned(), Value::Object(models));
        let header = |(name, value): (&String, &Secret)| (name.clone(), json!(shown_secret(value.reveal())));
        let headers: Map<String, Value> = self.headers.iter().map(header).collect();
        shown.insert("headers".to_owned(), Value::Object(headers));
        Value::Object(shown)
    }
}

/// What is not set does not appear.
fn without_nulls(mut shown: Value) -> Value {
    if let Value::Object(map) = &mut shown {
        map.retain(|_, value| !value.is_null());
    }
    shown
}

fn redacted(secrets: &BTreeMap<String, Secret>) -> Value {
    Value::Object(secrets.keys().map(|name| (name.clone(), json!(REDACTED))).collect())
}
