//! What is said about settings: findings in documents, and why no settings (or no model) came out.
//!
//! Invariant: no finding and no error holds the value of a key that may be secret; a value is repeated only where the key
//! is known to hold none.

use std::fmt;

use peri_acp_types::ports::ConfigSourceError;

use crate::path::visible;
use crate::{ModelRef, Origin};

/// How grave a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Something has no effect or is unwise; Peri starts.
    Warning,
    /// The document says something that cannot be followed; Peri does not start.
    Error,
}

/// A finding: where, what, and how to mend it. `Display` is one line without the severity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    pub origin: Origin,
    /// The key's path within the document: `permissions.deny[1]`. None where it is about the whole.
    pub key: Option<String>,
    /// Reads on from the key: ``must be a list, not text``.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    pub(crate) fn whole(severity: Severity, origin: &Origin, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity, origin: origin.clone(), key: None, message: message.into(), hint: None }
    }

    pub(crate) fn with_key(mut self, key: impl Into<String>) -> Diagnostic {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(key) = &self.key {
            write!(f, "key `{}` ", visible(key))?;
        }
        f.write_str(&visible(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "; {}", visible(hint)),
            None => Ok(()),
        }
    }
}

/// Why there are no settings, or no model that can be asked. All are the user's to mend.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// All findings, in the order of the sources, warnings among them; at least one is an error.
    #[error("{}", errors_of(.0))]
    Invalid(Vec<Diagnostic>),
    #[error("no model is chosen; {}", choose_model(.providers))]
    NoModel { providers: Vec<String> },
    #[error("model `{model}` names a provider that is not configured; {}", known_providers(.model, .known))]
    UnknownProvider { model: ModelRef, known: Vec<String> },
    #[error(
        "provider `{provider}` ({origin}) takes its key from the environment variable {variable}, which is not set; \
         set it, or name another in `providers.{provider}.apiKeyEnv`"
    )]
    KeyMissing { provider: String, variable: String, origin: Origin },
    #[error("the key of provider `{provider}` ({place}) holds characters that no HTTP header may carry; copy it anew")]
    KeyUnusable { provider: String, place: String },
    #[error(
        "key `thinking.budgetTokens` ({budget}) must be less than the {max_output} tokens that an answer of {model} may have; \
         lower it, or raise `maxOutputTokens`"
    )]
    ThinkingBudget { model: ModelRef, budget: u32, max_output: u32 },
    /// A rule was to be kept in a workspace whose rules do not apply.
    #[error("a rule in {workspace} would have no effect: {reason}; run `peri trust` first")]
    RuleWouldNotApply { workspace: String, reason: String },
    #[error(transparent)]
    Source(#[from] ConfigSourceError),
}

fn errors_of(diagnostics: &[Diagnostic]) -> String {
    let lines: Vec<String> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(Diagnostic::to_string)
        .collect();
    lines.join("\n")
}

fn choose_model(providers: &[String]) -> String {
    match providers {
        [] => "set ANTHROPIC_API_KEY, or name a provider and a model in settings.json: \
               {\"model\": \"mine/MODEL\", \"providers\": {\"mine\": {\"protocol\": \"anthropic\", \"baseUrl\": \"...\", \
               \"apiKeyEnv\": \"...\"}}}"
            .to_owned(),
        [provider, ..] => format!(
            "set `model` in settings.json, PERI_MODEL or --model to PROVIDER/MODEL, for example `{provider}/MODEL` \
             (providers: {})",
            providers.join(", ")
        ),
    }
}

fn known_providers(model: &ModelRef, known: &[String]) -> String {
    match known {
        [] => {
            "name it under `providers` in settings.json, or set ANTHROPIC_API_KEY to use `anthropic/MODEL`".to_owned()
        }
        [only] => format!("the one provider is `{only}`: did you mean `{only}/{model}`?"),
        _ => format!("the providers are {}", known.join(", ")),
    }
}
