//! One settings document as it is written: the types behind the JSON schema.
//!
//! Owns: which keys there are, and what the schema says of them. Must not: hold defaults or know of layers; a key that is
//! absent is None. The doc comments here are the schema's descriptions, so they speak to the user.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use peri_acp_types::ports::Secret;
use peri_acp_types::{Effort, PermissionMode};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::{McpDocument, McpServerDocument, ModelRef, PermissionRule};

/// Settings of Peri.
#[derive(Clone, PartialEq, Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, title = "Peri settings")]
pub struct SettingsDocument {
    /// Where this schema is, for editors. No effect.
    #[schemars(rename = "$schema")]
    pub schema: Option<String>,
    /// The model to work with, as PROVIDER/MODEL: the name of one of `providers`, then the model's id there.
    #[schemars(with = "Option<String>", regex(pattern = r"^[^/\s]+/\S+$"))]
    pub model: Option<ModelRef>,
    /// Where models are, by a name of your choice. A name in a higher source replaces the whole provider of a lower one.
    pub providers: Option<BTreeMap<String, ProviderDocument>>,
    /// What may run without being asked about.
    pub permissions: Option<PermissionsDocument>,
    /// Environment variables for the processes of tools.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub env: Option<BTreeMap<String, Secret>>,
    /// Recognised, but without effect in this version.
    pub hooks: Option<Map<String, Value>>,
    /// MCP servers whose tools the model gets, by a name of your choice. A name in a higher source replaces the whole server
    /// of a lower one.
    pub mcp_servers: Option<BTreeMap<String, McpServerDocument>>,
    /// What holds for all MCP servers.
    pub mcp: Option<McpDocument>,
    /// Requests to the model within one turn, at most. Unset: no bound.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    pub max_turns: Option<u32>,
    /// Tokens that one answer of the model may have, thoughts included. The model's own limit still holds.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    pub max_output_tokens: Option<u32>,
    /// How much the model may think before it answers.
    pub thinking: Option<ThinkingDocument>,
    /// Text at the end of the system prompt.
    pub append_system_prompt: Option<String>,
    /// After so many equal calls with equal results in a row the model gets a notice, after as many more the turn stops.
    /// 0 turns the guard off.
    #[schemars(range(min = 0, max = 1000))]
    pub loop_guard: Option<u32>,
    /// When a failed request to the model is tried again.
    pub retry: Option<RetryDocument>,
    /// Limits of the Bash tool.
    pub bash: Option<BashDocument>,
}

/// A place where models are.
#[derive(Clone, PartialEq, Debug, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderDocument {
    /// How to speak to it.
    pub protocol: Protocol,
    /// Its address: for `anthropic` without `/v1`, for the OpenAI protocols with it. Unset: the protocol's home.
    #[schemars(regex(pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s?#@]+$"))]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub api_key_env: Option<String>,
    /// The key itself. Better leave it out of files and use `apiKeyEnv`.
    #[schemars(with = "Option<String>", length(min = 1))]
    pub api_key: Option<Secret>,
    /// What is known of its models, by id. A model that is not listed can be used and has the default limits.
    pub models: Option<BTreeMap<String, ModelDocument>>,
    /// Headers for every request, after Peri's own. `${NAME}` and `${NAME:-default}` stand for environment variables.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub headers: Option<BTreeMap<String, Secret>>,
}

/// How to speak to a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    #[schemars(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses.
    #[schemars(rename = "openai-responses")]
    OpenAiResponses,
}

impl Protocol {
    pub(crate) const WORDS: [(&'static str, Protocol); 3] = [
        ("anthropic", Protocol::Anthropic),
        ("openai-chat", Protocol::OpenAiChat),
        ("openai-responses", Protocol::OpenAiResponses),
    ];

    /// The word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Anthropic => "anthropic",
            Protocol::OpenAiChat => "openai-chat",
            Protocol::OpenAiResponses => "openai-responses",
        }
    }

    /// The address of the protocol's own vendor.
    pub(crate) fn home(self) -> &'static str {
        match self {
            Protocol::Anthropic => "https://api.anthropic.com",
            Protocol::OpenAiChat | Protocol::OpenAiResponses => "https://api.openai.com/v1",
        }
    }
}

/// What is known of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelDocument {
    /// Tokens that fit its context window, output included.
    #[schemars(range(min = 1024, max = 1_000_000_000u32))]
    pub context_window: Option<u64>,
    /// The most tokens that one of its answers can have.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    pub max_output_tokens: Option<u32>,
}

/// What may run without being asked about. A rule is `Tool`, `Tool(pattern)`, `mcp__SERVER` or `mcp__SERVER__TOOL`.
#[derive(Clone, PartialEq, Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct PermissionsDocument {
    /// Calls that run without being asked about.
    #[schemars(with = "Option<Vec<String>>", inner(length(min = 1, max = 4096)))]
    pub allow: Option<Vec<PermissionRule>>,
    /// Calls that are asked about, whatever `allow` says.
    #[schemars(with = "Option<Vec<String>>", inner(length(min = 1, max = 4096)))]
    pub ask: Option<Vec<PermissionRule>>,
    /// Calls that are refused, whatever else says.
    #[schemars(with = "Option<Vec<String>>", inner(length(min = 1, max = 4096)))]
    pub deny: Option<Vec<PermissionRule>>,
    /// What happens to calls that no rule is about.
    #[schemars(with = "Option<ModeWord>")]
    pub mode: Option<PermissionMode>,
    /// Folders outside the workspace that tools may use like the workspace. `~/` is your home; else relative to the workspace.
    #[schemars(inner(length(min = 1)))]
    pub additional_directories: Option<Vec<String>>,
}

/// How much the model may think before it answers: an effort or a budget, not both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    deny_unknown_fields,
    extend("not" = {"required": ["effort", "budgetTokens"]})
)]
pub struct ThinkingDocument {
    /// In words that every provider understands in its own way.
    #[schemars(with = "Option<EffortWord>")]
    pub effort: Option<Effort>,
    /// Tokens for thoughts, at least 1024; 0 leaves it to the model.
    #[schemars(range(min = 0, max = 4_294_967_295u32))]
    pub budget_tokens: Option<u32>,
}

/// When a failed request to the model is tried again.
#[derive(Clone, Copy, PartialEq, Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryDocument {
    /// Attempts per request, the first included.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// The wait before the second attempt; it doubles from there.
    #[schemars(with = "Option<Seconds>")]
    pub first_delay_seconds: Option<Duration>,
    /// The longest wait between two attempts.
    #[schemars(with = "Option<Seconds>")]
    pub max_delay_seconds: Option<Duration>,
    /// A provider that asks for a longer wait than this ends the turn.
    #[schemars(with = "Option<Seconds>")]
    pub max_retry_after_seconds: Option<Duration>,
    /// A stream without a byte for so long has failed.
    #[schemars(with = "Option<Seconds>")]
    pub idle_timeout_seconds: Option<Duration>,
}

/// Limits of the Bash tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct BashDocument {
    /// How long a command runs in the foreground where the call does not say.
    #[schemars(with = "Option<Seconds>")]
    pub default_timeout_seconds: Option<Duration>,
    /// The longest foreground time that a call may ask for.
    #[schemars(with = "Option<Seconds>")]
    pub max_timeout_seconds: Option<Duration>,
}

/// How the schema sees a [`Duration`].
struct Seconds;

impl JsonSchema for Seconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": 86_400 })
    }
}

/// How the schema sees a [`PermissionMode`].
struct ModeWord;

impl JsonSchema for ModeWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PermissionMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": PermissionMode::ALL.map(PermissionMode::as_str) })
    }
}

/// How the schema sees an [`Effort`].
struct EffortWord;

impl JsonSchema for EffortWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Effort".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Effort::ALL.map(Effort::as_str) })
    }
}

/// The JSON schema of a settings document, as it is committed under docs/protocol.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(forbid_null));
    settings.into_generator().into_root_schema_for::<SettingsDocument>().to_value()
}

/// `Option` means that a key may be absent; null is no value of ours.
fn forbid_null(schema: &mut Schema) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = map.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            map.extend(only);
        }
    }
}
