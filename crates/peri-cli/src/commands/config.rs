//! `peri config show|path|check`.
//!
//! Owns: how settings and findings are shown. Must not: decide what a setting means, or show a secret: peri-config says
//! what may be displayed.

use peri_acp_types::ports::{ConfigSource, TrustStore};
use peri_config::{
    ApiKey, CommandLineOverlay, ConfigError, Diagnostic, Resolution, Severity, Sourced, TrustGrounds, load,
};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};

/// What a command has to say.
pub struct Report {
    /// For standard output.
    pub text: String,
    /// For standard error, each once.
    pub notices: Vec<String>,
    pub exit: Exit,
}

/// Where settings are looked for.
pub struct Lookup<'a> {
    pub source: &'a dyn ConfigSource,
    pub trust: &'a dyn TrustStore,
    /// Absolute.
    pub workspace: &'a str,
    pub overlay: &'a CommandLineOverlay,
}

impl Lookup<'_> {
    /// The settings in effect, and which file or option set what.
    ///
    /// # Errors
    /// A configuration [`Failure`] where they cannot be followed.
    pub async fn show(&self) -> Result<Report, Failure> {
        let found = self.resolve().await.map_err(|error| config_failure(&error))?;
        let origins: serde_json::Map<String, Value> =
            found.origins.iter().map(|(key, origin)| (key.clone(), json!(origin.to_string()))).collect();
        let documents: Vec<String> = found.documents.iter().map(ToString::to_string).collect();
        let shown = json!({
            "settings": found.settings.to_display_json(),
            "setBy": origins,
            "files": documents,
            "workspace": {"root": self.workspace, "trust": trust_words(&found.trust.grounds)},
        });
        Ok(Report { text: pretty(&shown), notices: warnings(&found.diagnostics), exit: Exit::Success })
    }

    /// Every fault, with file, key and mend.
    pub async fn check(&self) -> Report {
        let found = match self.resolve().await {
            Ok(found) => found,
            Err(ConfigError::Invalid(findings)) => return faults(&findings),
            Err(error) => {
                return Report { text: String::new(), notices: vec![format!("error: {error}")], exit: Exit::Usage };
            }
        };
        let mut notices = warnings(&found.diagnostics);
        let chosen = found.settings.chosen_model().and_then(|model| Ok((model, found.settings.provider_for(model)?)));
        let (text, exit) = match chosen {
            Ok((model, resolved)) => {
                let key = key_words(found.settings.providers.get(&resolved.provider));
                (format!("settings are in order: {model} at {}, {key}", resolved.base_url), Exit::Success)
            }
            Err(error) => {
                notices.push(format!("error: {error}"));
                (String::new(), Exit::Usage)
            }
        };
        Report { text, notices, exit }
    }

    async fn resolve(&self) -> Result<Resolution, ConfigError> {
        load(self.source, self.trust, self.workspace, self.overlay).await
    }
}

/// A [`ConfigError`] as the end of a run. It says itself what to do.
pub fn config_failure(error: &ConfigError) -> Failure {
    Failure::usage(error.to_string())
}

fn faults(findings: &[Diagnostic]) -> Report {
    let notices = findings
        .iter()
        .map(|finding| match finding.severity {
            Severity::Error => format!("error: {finding}"),
            Severity::Warning => format!("warning: {finding}"),
        })
        .collect();
    Report { text: String::new(), notices, exit: Exit::Usage }
}

fn warnings(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|diagnostic| format!("warning: {diagnostic}")).collect()
}

fn key_words(provider: Option<&Sourced<peri_config::Provider>>) -> String {
    match provider.map(|provider| &provider.value.key) {
        Some(ApiKey::Plain(_)) => "with the key in the settings".to_owned(),
        Some(ApiKey::Variable { name, .. }) => format!("with the key in {name}"),
        Some(ApiKey::None) | None => "without a key".to_owned(),
    }
}

fn trust_words(grounds: &TrustGrounds) -> String {
    match grounds {
        TrustGrounds::Recorded => "trusted".to_owned(),
        TrustGrounds::ThisRun => "trusted for this run".to_owned(),
        TrustGrounds::NothingToTrust => "nothing to trust".to_owned(),
        TrustGrounds::Untrusted => "not trusted".to_owned(),
        TrustGrounds::Changed => "changed since it was trusted".to_owned(),
        TrustGrounds::Unknown(reason) => format!("not trusted: {reason}"),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
