//! From a JSON object to a [`SettingsDocument`], key by key.
//!
//! Owns: what each key takes. Invariant: every key of the schema is asked for here under the same name (a test compares).

use peri_acp_types::ports::Secret;
use peri_acp_types::{Effort, PermissionMode};
use serde_json::{Map, Value};

use crate::base_url::check_base_url;
use crate::expand::names_variables;
use crate::mcp::{read_mcp, read_servers};
use crate::path::steers_display;
use crate::reader::{Fields, Node, Sink};
use crate::*;

const ANY_U32: std::ops::RangeInclusive<u64> = 1..=u32::MAX as u64;
/// The smallest budget that providers accept.
const MIN_THINKING_BUDGET: u32 = 1024;
/// The longest value of a header, in bytes.
pub(crate) const MAX_HEADER_BYTES: usize = 8192;
/// Headers that belong to the connection or to the protocol.
pub(crate) const OWN_HEADERS: [&str; 7] =
    ["connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];

/// Reads all that can be read; the rest is reported.
pub(crate) fn read_document(map: &Map<String, Value>, sink: &Sink) -> SettingsDocument {
    let mut fields = Fields::of_document(map, sink);
    let document = SettingsDocument {
        schema: fields.get("$schema", |node| node.text().map(str::to_owned)),
        model: fields.get("model", |node| node.parsed()),
        providers: fields.get("providers", |node| node.map(read_provider)),
        permissions: fields.get("permissions", read_permissions),
        env: fields.get("env", |node| node.map(read_variable)),
        hooks: fields.get("hooks", read_without_effect),
        mcp_servers: fields.get("mcpServers", read_servers),
        mcp: fields.get("mcp", read_mcp),
        max_turns: fields.get("maxTurns", |node| node.integer(ANY_U32)),
        max_output_tokens: fields.get("maxOutputTokens", |node| node.integer(ANY_U32)),
        thinking: fields.get("thinking", read_thinking),
        append_system_prompt: fields.get("appendSystemPrompt", |node| node.text().map(str::to_owned)),
        loop_guard: fields.get("loopGuard", |node| node.integer(0..=1000)),
        retry: fields.get("retry", read_retry),
        bash: fields.get("bash", read_bash),
    };
    fields.finish();
    document
}

fn read_provider(name: &str, node: Node<'_>) -> Option<ProviderDocument> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return node.error(
            "has a name that `model` could not use",
            "name it with letters, digits, `.`, `_` and `-`, 64 at most",
        );
    }
    let mut fields = node.fields()?;
    if !fields.has("protocol") {
        let words: Vec<&str> = Protocol::WORDS.iter().map(|(word, _)| *word).collect();
        fields.error_at("protocol", "is missing", format!("set it to one of {}", words.join(", ")));
    }
    let protocol = fields.get("protocol", |node| node.word(&Protocol::WORDS));
    let base_url = fields.get("baseUrl", |node| read_base_url(node, protocol));
    let api_key_env = fields.get("apiKeyEnv", read_variable_name);
    let api_key = fields.get("apiKey", read_key);
    let models = fields.get("models", |node| node.map(read_model));
    let headers = fields.get("headers", |node| node.map(read_header));
    if fields.has("apiKeyEnv") && fields.has("apiKey") {
        fields.error_at("apiKey", "stands beside `apiKeyEnv`", "keep one of them, best `apiKeyEnv`");
    }
    fields.finish();
    Some(ProviderDocument { protocol: protocol?, base_url, api_key_env, api_key, models, headers })
}

/// Without a protocol the address cannot be judged; that the protocol is missing is said already.
fn read_base_url(node: Node<'_>, protocol: Option<Protocol>) -> Option<String> {
    match check_base_url(node.text()?, protocol?) {
        Ok(base) => {
            if let Some((message, mend)) = base.odd {
                node.warn(message, mend);
            }
            Some(base.url)
        }
        Err((message, mend)) => node.error(message, mend),
    }
}

fn read_variable_name(node: Node<'_>) -> Option<String> {
    let name = node.text()?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        Some(name.to_owned())
    } else {
        node.error(
            "must be the name of an environment variable",
            "it names the variable that holds the key, not the key itself",
        )
    }
}

fn read_key(node: Node<'_>) -> Option<Secret> {
    let key = node.nonempty_text()?;
    warn_of_plain_secret(node, "apiKeyEnv");
    Some(Secret::new(key))
}

fn warn_of_plain_secret(node: Node<'_>, instead: &str) {
    node.warn(
        "holds a secret in plain text",
        format!("better keep it in an environment variable and name that in `{instead}`"),
    );
}

fn read_model(id: &str, node: Node<'_>) -> Option<ModelDocument> {
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || steers_display(c)) {
        return node.error("has a name that `model` could not use", "write the model's id without spaces");
    }
    let mut fields = node.fields()?;
    let model = ModelDocument {
        context_window: fields.get("contextWindow", |node| node.integer(1024..=1_000_000_000)),
        max_output_tokens: fields.get("maxOutputTokens", |node| node.integer(ANY_U32)),
    };
    if let (Some(window), Some(output)) = (model.context_window, model.max_output_tokens)
        && u64::from(output) >= window
    {
        fields.error_at(
            "maxOutputTokens",
            "must be less than `contextWindow`",
            "the window holds input and output together",
        );
    }
    fields.finish();
    Some(model)
}

pub(crate) fn is_header_name(name: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(token)
}

pub(crate) fn is_header_value(value: &str) -> bool {
    value.len() <= MAX_HEADER_BYTES && value.chars().all(|c| c == '\t' || (' '..='~').contains(&c))
}

fn read_header(name: &str, node: Node<'_>) -> Option<Secret> {
    if !is_header_name(name) {
        return node.error("is not the name of an HTTP header", "");
    }
    if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return node.error("is a header that Peri sets itself", "leave it out");
    }
    let value = node.text()?;
    if !names_variables(value) && !is_header_value(value) {
        return node.error("must be printable ASCII, 8192 bytes at most", "");
    }
    if matches!(name.to_ascii_lowercase().as_str(), "authorization" | "x-api-key" | "api-key")
        && !names_variables(value)
    {
        warn_of_plain_secret(node, "apiKeyEnv");
    }
    Some(Secret::new(value))
}

fn read_permissions(node: Node<'_>) -> Option<PermissionsDocument> {
    let modes: Vec<(&'static str, PermissionMode)> =
        PermissionMode::ALL.into_iter().map(|mode| (mode.as_str(), mode)).collect();
    let mut fields = node.fields()?;
    let permissions = PermissionsDocument {
        allow: fields.get("allow", |node| node.list(read_rule)),
        ask: fields.get("ask", |node| node.list(read_rule)),
        deny: fields.get("deny", |node| node.list(read_rule)),
        mode: fields.get("mode", |node| node.word(&modes)),
        additional_directories: fields.get("additionalDirectories", |node| node.list(read_directory)),
    };
    fields.finish();
    Some(permissions)
}

fn read_rule(node: Node<'_>) -> Option<PermissionRule> {
    let rule: PermissionRule = node.parsed()?;
    if let Some((message, meant)) = rule.unknown_tool() {
        node.warn(message, meant.unwrap_or_default());
    }
    Some(rule)
}

fn read_directory(node: Node<'_>) -> Option<String> {
    match node.nonempty_text()? {
        text if text.contains('\0') => node.error("must not hold a NUL character", ""),
        text => Some(text.to_owned()),
    }
}

pub(crate) fn read_variable(name: &str, node: Node<'_>) -> Option<Secret> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return node.error("is not the name of an environment variable", "");
    }
    match node.text()? {
        text if text.contains('\0') => node.error("must not hold a NUL character", ""),
        text => Some(Secret::new(text)),
    }
}

/// What this version knows of, but does nothing with: said, so that nobody counts on it.
fn read_without_effect(node: Node<'_>) -> Option<Map<String, Value>> {
    let entries = node.object()?;
    node.warn("is recognised, but has no effect in this version", "");
    Some(entries.clone())
}

fn read_thinking(node: Node<'_>) -> Option<ThinkingDocument> {
    let mut fields = node.fields()?;
    let effort = fields.get("effort", |node| node.word(&Effort::ALL.map(|effort| (effort.as_str(), effort))));
    let budget_tokens = fields.get("budgetTokens", |node| match node.integer::<u32>(0..=u64::from(u32::MAX))? {
        budget @ 1..MIN_THINKING_BUDGET => {
            node.error(format!("({budget}) must be at least {MIN_THINKING_BUDGET}"), "or 0 to leave it to the model")
        }
        budget => Some(budget),
    });
    if fields.has("effort") && fields.has("budgetTokens") {
        fields.error_at("budgetTokens", "stands beside `effort`", "keep one of them, best `effort`");
    }
    fields.finish();
    Some(ThinkingDocument { effort, budget_tokens })
}

fn read_retry(node: Node<'_>) -> Option<RetryDocument> {
    let mut fields = node.fields()?;
    let retry = RetryDocument {
        max_attempts: fields.get("maxAttempts", |node| node.integer(1..=100)),
        first_delay_seconds: fields.get("firstDelaySeconds", |node| node.seconds()),
        max_delay_seconds: fields.get("maxDelaySeconds", |node| node.seconds()),
        max_retry_after_seconds: fields.get("maxRetryAfterSeconds", |node| node.seconds()),
        idle_timeout_seconds: fields.get("idleTimeoutSeconds", |node| node.seconds()),
    };
    fields.finish();
    Some(retry)
}

fn read_bash(node: Node<'_>) -> Option<BashDocument> {
    let mut fields = node.fields()?;
    let bash = BashDocument {
        default_timeout_seconds: fields.get("defaultTimeoutSeconds", |node| node.seconds()),
        max_timeout_seconds: fields.get("maxTimeoutSeconds", |node| node.seconds()),
    };
    fields.finish();
    Some(bash)
}
