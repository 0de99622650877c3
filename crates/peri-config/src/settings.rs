//! The settings in force: every source merged, every default filled in.
//!
//! Owns: the defaults, and the step from a model's name to everything that a request to it needs. Must not: know which
//! source won; [`Origins`](crate::Origins) does. Invariant: `Debug` shows no secret.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use peri_acp_types::ports::{HeaderValue, Secret};
use peri_acp_types::{DEFAULT_MAX_OUTPUT_TOKENS, Effort, PermissionMode};

use crate::default_providers::OPENAI_MODEL_VARIABLE;
use crate::expand::{FillError, fill};
use crate::path::shown_text;
use crate::read_document::{MAX_HEADER_BYTES, is_header_value};
use crate::{ConfigError, Layer, McpServer, ModelDocument, ModelRef, Origin, PermissionRule, Protocol};

/// The provider that `ANTHROPIC_API_KEY` or `ANTHROPIC_BASE_URL` defines where settings name none.
pub const DEFAULT_PROVIDER: &str = "anthropic";
/// The model of [`DEFAULT_PROVIDER`] where neither settings nor `ANTHROPIC_MODEL` choose one.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
/// The provider that `OPENAI_API_KEY` or `OPENAI_BASE_URL` defines where settings name none.
pub const DEFAULT_OPENAI_PROVIDER: &str = "openai";
/// The model of [`DEFAULT_OPENAI_PROVIDER`] at OpenAI's own address where neither settings nor `OPENAI_MODEL` choose one.
pub const DEFAULT_OPENAI_MODEL: &str = "gpt-6.1-sol";
/// Bytes that the descriptions of MCP servers' tools may take where settings do not say.
pub const DEFAULT_MCP_TOOL_SCHEMA_BUDGET: u64 = 40 * 1024;

/// The settings in force.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// None where nothing chooses one: see [`Settings::chosen_model`].
    pub model: Option<ModelRef>,
    pub providers: BTreeMap<String, Sourced<Provider>>,
    pub permissions: Permissions,
    /// By name. The same name in a rule (`mcp__NAME`) is about this server's tools.
    pub mcp_servers: BTreeMap<String, Sourced<McpServer>>,
    /// Bytes that the descriptions of all servers' tools may take before tools are deferred. 0: always deferred.
    pub mcp_tool_schema_budget: u64,
    /// Variables for the processes of tools. Secret, since tokens are handed to tools this way.
    pub env: BTreeMap<String, Secret>,
    /// Requests to the model within one turn, at least 1. None: no bound.
    pub max_turns: Option<u32>,
    /// What was asked for; the model's own limit still holds.
    pub max_output_tokens: Option<u32>,
    /// How much to think, in words. Never beside `thinking_budget`. None: the request does not mention it.
    pub effort: Option<Effort>,
    /// Tokens for thoughts, at least 1024. Never beside `effort`. None: the request does not mention it.
    pub thinking_budget: Option<u32>,
    pub append_system_prompt: Option<String>,
    /// Equal calls with equal results until the model gets a notice. 0: off.
    pub loop_guard: u32,
    pub retry: RetrySettings,
    pub bash: BashSettings,
}

/// A value and the file, variable or option that set it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

/// Rules of all sources, lowest first, and the mode for what no rule is about. deny > ask > allow.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Permissions {
    pub allow: Vec<Sourced<PermissionRule>>,
    pub ask: Vec<Sourced<PermissionRule>>,
    pub deny: Vec<Sourced<PermissionRule>>,
    pub mode: PermissionMode,
    /// Absolute, but not resolved: links, `..` and existence are the reader's to check.
    pub additional_directories: Vec<Sourced<String>>,
}

/// A place where models are.
#[derive(Clone, PartialEq, Debug)]
pub struct Provider {
    pub protocol: Protocol,
    /// Anthropic without `/v1`, OpenAI with it. No slash at the end.
    pub base_url: String,
    pub key: ApiKey,
    pub models: BTreeMap<String, ModelDocument>,
    /// As they are written; [`ResolvedModel::headers`] has their variables filled in.
    pub headers: BTreeMap<String, Secret>,
    /// The environment variables that `headers` name, and what they hold; None where one is not set or empty.
    pub header_variables: BTreeMap<String, Option<Secret>>,
}

/// Where a provider's key comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApiKey {
    /// The endpoint wants none.
    None,
    /// It stands in the settings.
    Plain(Secret),
    /// It is in an environment variable; None where that is not set or empty.
    Variable { name: String, value: Option<Secret> },
}

/// When a failed request is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetrySettings {
    /// Attempts per request, the first included. At least 1.
    pub max_attempts: u32,
    pub first_delay: Duration,
    pub max_delay: Duration,
    /// A Retry-After beyond this ends the turn instead of holding it.
    pub max_retry_after: Duration,
    /// No byte for so long on an open stream, or no answer at all.
    pub idle_timeout: Duration,
}

/// Limits of the Bash tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BashSettings {
    /// Foreground time where the call does not say. Never more than `max_timeout`.
    pub default_timeout: Duration,
    /// The longest foreground time that a call may ask for.
    pub max_timeout: Duration,
}

/// Everything that a request to a model needs.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedModel {
    /// The provider's configured name.
    pub provider: String,
    pub protocol: Protocol,
    /// As in [`Provider::base_url`].
    pub base_url: String,
    pub api_key: Option<Secret>,
    pub headers: Vec<(String, HeaderValue)>,
    /// The model's id at the provider.
    pub model: String,
    /// Tokens of its context window, output included; None where settings do not state them.
    pub context_window: Option<u64>,
    /// The most tokens of one answer; None where settings do not state them.
    pub max_output_tokens: Option<u32>,
}

/// As a refusal names it: ``rule `Bash(rm:*)` from /path/settings.json``.
impl fmt::Display for Sourced<PermissionRule> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}` from {}", self.value, self.origin)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: None,
            providers: BTreeMap::new(),
            permissions: Permissions::default(),
            mcp_servers: BTreeMap::new(),
            mcp_tool_schema_budget: DEFAULT_MCP_TOOL_SCHEMA_BUDGET,
            env: BTreeMap::new(),
            max_turns: None,
            max_output_tokens: None,
            effort: None,
            thinking_budget: None,
            append_system_prompt: None,
            loop_guard: 4,
            retry: RetrySettings::default(),
            bash: BashSettings::default(),
        }
    }
}

impl Default for RetrySettings {
    fn default() -> RetrySettings {
        RetrySettings {
            max_attempts: 6,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(180),
        }
    }
}

impl Default for BashSettings {
    fn default() -> BashSettings {
        BashSettings { default_timeout: Duration::from_secs(120), max_timeout: Duration::from_secs(600) }
    }
}

impl Settings {
    /// The model that a session starts with.
    ///
    /// # Errors
    /// [`ConfigError::NoModel`], which says how to choose one.
    pub fn chosen_model(&self) -> Result<&ModelRef, ConfigError> {
        let unchosen = || ConfigError::NoModel {
            providers: self.provider_names(),
            variable: self.is_made_by_environment(DEFAULT_OPENAI_PROVIDER).then_some(OPENAI_MODEL_VARIABLE),
        };
        self.model.as_ref().ok_or_else(unchosen)
    }

    /// Everything that a request to that model needs. A model that settings do not list has the default limits.
    ///
    /// # Errors
    /// [`ConfigError::UnknownProvider`], [`ConfigError::KeyMissing`], [`ConfigError::KeyUnusable`],
    /// [`ConfigError::HeaderMissing`] or [`ConfigError::ThinkingBudget`]; each says what to set.
    pub fn provider_for(&self, model: &ModelRef) -> Result<ResolvedModel, ConfigError> {
        let Some(Sourced { value: provider, origin }) = self.providers.get(model.provider()) else {
            let known = self.provider_names();
            let from_environment = known.iter().all(|name| self.is_made_by_environment(name));
            return Err(ConfigError::UnknownProvider { model: model.clone(), known, from_environment });
        };
        let limits = provider.models.get(model.model()).copied().unwrap_or_default();
        let ModelDocument { context_window, max_output_tokens } = limits;
        let max_output = self.output_tokens(max_output_tokens, context_window);
        if let Some(budget) = self.thinking_budget.filter(|budget| *budget >= max_output) {
            return Err(ConfigError::ThinkingBudget { model: model.clone(), budget, max_output });
        }
        Ok(ResolvedModel {
            provider: model.provider().to_owned(),
            protocol: provider.protocol,
            base_url: provider.base_url.clone(),
            api_key: provider.key.usable(model.provider(), origin)?,
            headers: provider.usable_headers(model.provider(), origin)?,
            model: model.model().to_owned(),
            context_window,
            max_output_tokens,
        })
    }

    /// The environment variables that hold keys of providers: no tool's process has any business with them.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.providers.values().flat_map(|provider| provider.value.key_variables())
    }

    fn is_made_by_environment(&self, provider: &str) -> bool {
        self.providers.get(provider).is_some_and(|provider| provider.origin.layer == Layer::Default)
    }

    fn provider_names(&self) -> Vec<String> {
        self.providers.keys().cloned().collect()
    }

    /// What an answer may have as far as settings tell, without crowding the input out of the window.
    fn output_tokens(&self, limit: Option<u32>, context_window: Option<u64>) -> u32 {
        let asked = self.max_output_tokens.unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS);
        let half_window = context_window.and_then(|window| u32::try_from(window / 2).ok()).unwrap_or(u32::MAX);
        asked.min(limit.unwrap_or(u32::MAX)).min(half_window)
    }
}

impl Provider {
    fn key_variables(&self) -> impl Iterator<Item = &str> {
        let of_key = match &self.key {
            ApiKey::Variable { name, .. } => Some(name.as_str()),
            ApiKey::Plain(_) | ApiKey::None => None,
        };
        of_key.into_iter().chain(self.header_variables.keys().map(String::as_str))
    }

    /// The headers as they can be sent.
    fn usable_headers(&self, provider: &str, origin: &Origin) -> Result<Vec<(String, HeaderValue)>, ConfigError> {
        let variable = |name: &str| self.header_variables.get(name)?.as_ref().map(|value| value.reveal().to_owned());
        let usable = |(header, value): (&String, &Secret)| {
            let unusable = || ConfigError::KeyUnusable {
                provider: provider.to_owned(),
                place: format!("`headers.{header}` in {origin}, with its variables filled in"),
            };
            let mut room = MAX_HEADER_BYTES;
            match fill(value.reveal(), &variable, &mut room) {
                Ok(value) if is_header_value(&value) => Ok((header.clone(), HeaderValue::Secret(Secret::new(value)))),
                Ok(_) | Err(FillError::TooLarge) => Err(unusable()),
                Err(FillError::Unset(variable)) => Err(ConfigError::HeaderMissing {
                    provider: provider.to_owned(),
                    header: header.clone(),
                    variable: shown_text(variable),
                    origin: origin.clone(),
                }),
            }
        };
        self.headers.iter().map(usable).collect()
    }
}

impl ApiKey {
    /// The key as it can be sent. White space around it (a line break from a file, say) is no part of it.
    fn usable(&self, provider: &str, origin: &Origin) -> Result<Option<Secret>, ConfigError> {
        let (secret, place) = match self {
            ApiKey::None => return Ok(None),
            ApiKey::Plain(secret) => (secret, format!("`apiKey` in {origin}")),
            ApiKey::Variable { name, value: Some(secret) } => (secret, format!("environment variable {name}")),
            ApiKey::Variable { name, value: None } => {
                let (provider, variable) = (provider.to_owned(), name.clone());
                return Err(ConfigError::KeyMissing { provider, variable, origin: origin.clone() });
            }
        };
        let key = secret.reveal().trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ConfigError::KeyUnusable { provider: provider.to_owned(), place });
        }
        Ok(Some(Secret::new(key)))
    }
}
