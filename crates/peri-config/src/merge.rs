//! Laying one document over another.
//!
//! Owns the merge rules: rules and directories are concatenated, maps are merged by key, everything else is overridden.
//! A provider or an MCP server is replaced whole, so that a key never goes to an address that came from another source.

use std::collections::BTreeMap;

use peri_acp_types::ports::{ConfigSource, Secret};

use crate::expand::variables_in;
use crate::*;

/// Settings under construction. Documents are applied from the lowest layer to the highest.
pub(crate) struct Merge<'a> {
    source: &'a dyn ConfigSource,
    pub(crate) settings: Settings,
    pub(crate) origins: Origins,
    /// What is written about MCP servers; what it means is settled once all documents are applied, so that nothing is said
    /// of a server that a higher source replaces.
    pub(crate) mcp_servers: BTreeMap<String, Sourced<McpServerDocument>>,
    /// Switches for servers of which no lower source knows.
    pub(crate) idle_switches: Vec<Sourced<String>>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(source: &'a dyn ConfigSource) -> Merge<'a> {
        Merge {
            source,
            settings: Settings::default(),
            origins: Origins::new(),
            mcp_servers: BTreeMap::new(),
            idle_switches: Vec::new(),
        }
    }

    pub(crate) fn apply(&mut self, document: SettingsDocument, origin: &Origin) {
        for (name, provider) in document.providers.unwrap_or_default() {
            let provider = self.provider(provider);
            self.origins.insert(format!("providers.{name}"), origin.clone());
            self.settings.providers.insert(name, sourced(provider, origin));
        }
        for (name, value) in document.env.unwrap_or_default() {
            self.origins.insert(format!("env.{name}"), origin.clone());
            self.settings.env.insert(name, value);
        }
        self.apply_permissions(document.permissions.unwrap_or_default(), origin);
        self.apply_servers(document.mcp_servers.unwrap_or_default(), origin);

        self.apply_thinking(document.thinking.unwrap_or_default(), origin);

        let Merge { settings, origins, .. } = self;
        let mut layer = Overrides { origin, origins };
        layer.put("model", document.model.map(Some), &mut settings.model);
        layer.put("maxTurns", document.max_turns.map(Some), &mut settings.max_turns);
        layer.put("maxOutputTokens", document.max_output_tokens.map(Some), &mut settings.max_output_tokens);
        layer.put("appendSystemPrompt", document.append_system_prompt.map(Some), &mut settings.append_system_prompt);
        layer.put("loopGuard", document.loop_guard, &mut settings.loop_guard);

        let budget = document.mcp.unwrap_or_default().tool_schema_budget_bytes;
        layer.put("mcp.toolSchemaBudgetBytes", budget, &mut settings.mcp_tool_schema_budget);

        let retry = document.retry.unwrap_or_default();
        layer.put("retry.maxAttempts", retry.max_attempts, &mut settings.retry.max_attempts);
        layer.put("retry.firstDelaySeconds", retry.first_delay_seconds, &mut settings.retry.first_delay);
        layer.put("retry.maxDelaySeconds", retry.max_delay_seconds, &mut settings.retry.max_delay);
        layer.put("retry.maxRetryAfterSeconds", retry.max_retry_after_seconds, &mut settings.retry.max_retry_after);
        layer.put("retry.idleTimeoutSeconds", retry.idle_timeout_seconds, &mut settings.retry.idle_timeout);

        let bash = document.bash.unwrap_or_default();
        layer.put("bash.defaultTimeoutSeconds", bash.default_timeout_seconds, &mut settings.bash.default_timeout);
        layer.put("bash.maxTimeoutSeconds", bash.max_timeout_seconds, &mut settings.bash.max_timeout);
    }

    /// Effort and budget say the same thing in two ways: either replaces the other of a lower source.
    fn apply_thinking(&mut self, document: ThinkingDocument, origin: &Origin) {
        const EFFORT: &str = "thinking.effort";
        const BUDGET: &str = "thinking.budgetTokens";
        let Merge { settings, origins, .. } = self;
        let (key, replaced) = match document {
            ThinkingDocument { effort: Some(effort), .. } => {
                (settings.effort, settings.thinking_budget) = (Some(effort), None);
                (EFFORT, BUDGET)
            }
            ThinkingDocument { budget_tokens: Some(tokens), .. } => {
                (settings.effort, settings.thinking_budget) = (None, (tokens > 0).then_some(tokens));
                (BUDGET, EFFORT)
            }
            ThinkingDocument { effort: None, budget_tokens: None } => return,
        };
        origins.remove(replaced);
        origins.insert(key.to_owned(), origin.clone());
    }

    pub(crate) fn apply_servers(&mut self, servers: BTreeMap<String, McpServerDocument>, origin: &Origin) {
        for (name, server) in servers {
            if !server.only_switches() {
                self.origins.insert(format!("mcpServers.{name}"), origin.clone());
                self.origins.remove(&format!("mcpServers.{name}.enabled"));
                self.mcp_servers.insert(name, sourced(server, origin));
            } else if let Some(known) = self.mcp_servers.get_mut(&name) {
                (known.value.enabled, known.value.disabled) = (server.enabled, server.disabled);
                self.origins.insert(format!("mcpServers.{name}.enabled"), origin.clone());
            } else {
                self.idle_switches.push(sourced(name, origin));
            }
        }
    }

    /// A variable of the environment; an empty one counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.source.env(name).filter(|value| !value.trim().is_empty())
    }

    fn apply_permissions(&mut self, document: PermissionsDocument, origin: &Origin) {
        let permissions = &mut self.settings.permissions;
        let rules = |rules: Option<Vec<PermissionRule>>| {
            rules.unwrap_or_default().into_iter().map(|rule| sourced(rule, origin))
        };
        permissions.allow.extend(rules(document.allow));
        permissions.ask.extend(rules(document.ask));
        permissions.deny.extend(rules(document.deny));
        for directory in document.additional_directories.unwrap_or_default() {
            permissions.additional_directories.push(sourced(directory, origin));
        }
        Overrides { origin, origins: &mut self.origins }.put("permissions.mode", document.mode, &mut permissions.mode);
    }

    fn provider(&self, document: ProviderDocument) -> Provider {
        let key = match (document.api_key, document.api_key_env) {
            (Some(secret), _) => ApiKey::Plain(secret),
            (None, Some(name)) => ApiKey::Variable { value: self.variable(&name).map(Secret::new), name },
            (None, None) => ApiKey::None,
        };
        let headers = document.headers.unwrap_or_default();
        let variables = headers.values().flat_map(|value| variables_in(value.reveal()));
        let with_value = |name: &str| (name.to_owned(), self.variable(name).map(Secret::new));
        Provider {
            header_variables: variables.map(with_value).collect(),
            protocol: document.protocol,
            base_url: document.base_url.unwrap_or_else(|| document.protocol.home().to_owned()),
            key,
            models: document.models.unwrap_or_default(),
            headers,
        }
    }
}

/// One layer's overriding of single values.
struct Overrides<'a> {
    origin: &'a Origin,
    origins: &'a mut Origins,
}

impl Overrides<'_> {
    fn put<T>(&mut self, key: &str, value: Option<T>, slot: &mut T) {
        if let Some(value) = value {
            *slot = value;
            self.origins.insert(key.to_owned(), self.origin.clone());
        }
    }
}

fn sourced<T>(value: T, origin: &Origin) -> Sourced<T> {
    Sourced { value, origin: origin.clone() }
}
