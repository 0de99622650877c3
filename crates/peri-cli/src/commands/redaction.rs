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

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use peri_acp_types::ports::{
        ConfigDocument, ConfigPlace, ConfigRevision, ConfigSource, ConfigSourceError, TrustState, TrustStore,
        TrustVerdict,
    };
    use peri_config::{CommandLineOverlay, load};
    use serde_json::json;

    /// The user's settings and nothing else.
    struct UserSettings(Value);

    #[async_trait::async_trait]
    impl ConfigSource for UserSettings {
        async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
            let document = ConfigDocument {
                origin: "settings.json".to_owned(),
                revision: ConfigRevision("1".to_owned()),
                bytes: self.0.to_string().into_bytes(),
            };
            Ok((*place == ConfigPlace::User).then_some(document))
        }

        async fn write(
            &self,
            _place: &ConfigPlace,
            _expected: Option<&ConfigRevision>,
            _bytes: Vec<u8>,
        ) -> Result<ConfigRevision, ConfigSourceError> {
            Err(ConfigSourceError::Changed { origin: "settings.json".to_owned() })
        }

        fn env(&self, name: &str) -> Option<String> {
            match name {
                "TOKEN" => Some("geheim-variable".to_owned()),
                "HOME" => Some("/home/someone".to_owned()),
                _ => None,
            }
        }
    }

    #[async_trait::async_trait]
    impl TrustStore for UserSettings {
        async fn verdict(&self, root: &str) -> Result<TrustVerdict, String> {
            let (root, digest) = (root.to_owned(), "1".to_owned());
            Ok(TrustVerdict { root, digest, files: Vec::new(), state: TrustState::Untrusted })
        }

        async fn grant(&self, _root: &str, _digest: &str) -> Result<(), String> {
            Ok(())
        }
    }

    #[track_caller]
    fn check(server: Value, text: &str, expect: &str) {
        let source = UserSettings(json!({"mcpServers": {"a": server}}));
        let loading = load(&source, &source, "/ws", &CommandLineOverlay::default()).now_or_never();
        let settings = loading.expect("no wait").expect("sound settings").settings;
        let value = Redaction::of(&settings, |_| None).value(json!({ text: [text] }));
        assert_eq!(value, json!({ expect: [expect] }));
    }

    #[test]
    fn what_servers_are_given_is_known_in_its_parts() {
        for scheme in ["Bearer", "Basic"] {
            let by_variable = json!({"url": "https://h", "headers": {"Authorization": format!("{scheme} ${{TOKEN}}")}});
            check(by_variable, "bad token: geheim-variable", "bad token: [redacted]");
            let literal = json!({"url": "https://h", "headers": {"Authorization": format!("{scheme} geheim-literal")}});
            check(literal, "bad token: geheim-literal", "bad token: [redacted]");
        }
        check(json!({"command": "c", "env": {"A": "geheim-literal"}}), "geheim-literal", "[redacted]");
        check(json!({"command": "c", "env": {"A": "x:${TOKEN}"}}), "geheim-variable", "[redacted]");
        check(json!({"command": "c", "args": ["-t${TOKEN}"]}), "geheim-variable", "[redacted]");
        check(json!({"url": "https://h/${TOKEN}"}), "geheim-variable", "[redacted]");
        check(json!({"command": "c", "args": ["${TOKEN}"], "disabled": true}), "geheim-variable", "[redacted]");
        check(json!({"command": "c", "args": ["${HOME}/docs"]}), "/home/someone/docs", "/home/someone/docs");
    }
}
