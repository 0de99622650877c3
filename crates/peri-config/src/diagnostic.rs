//! What is said about settings: findings in documents, and why no settings (or no model) came out.
//!
//! Invariant: no finding and no error holds the value of a key that may be secret; a value is repeated only where the key
//! is known to hold none.

use std::fmt;

use peri_acp_types::ports::ConfigSourceError;

use crate::path::visible;
use crate::{DEFAULT_OPENAI_PROVIDER, DEFAULT_PROVIDER, ModelRef, Origin};

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
    #[error("{}", all_findings(.0))]
    Invalid(Vec<Diagnostic>),
    #[error("no model is chosen; {}", choose_model(.providers, *.variable))]
    NoModel {
        providers: Vec<String>,
        /// The environment variable that would choose one, where the environment made the provider.
        variable: Option<&'static str>,
    },
    #[error("model `{model}` names a provider that is not configured; {}", known_providers(.model, .known, *.from_environment))]
    UnknownProvider {
        model: ModelRef,
        known: Vec<String>,
        /// No source names a provider: all that there are come from the environment.
        from_environment: bool,
    },
    /// Another error, after warnings that may explain it: a model that was ignored for want of trust, say.
    #[error("{error}\n{}", warning_lines(.warnings))]
    AfterWarnings {
        error: Box<ConfigError>,
        /// Not empty.
        warnings: Vec<Diagnostic>,
    },
    #[error(
        "provider `{provider}` ({origin}) takes its key from the environment variable {variable}, which is not set; \
         set it, or name another in `providers.{provider}.apiKeyEnv`"
    )]
    KeyMissing { provider: String, variable: String, origin: Origin },
    #[error(
        "header `{header}` of provider `{provider}` ({origin}) names the environment variable {variable}, which is not set; \
         set it, or write `${{{variable}:-DEFAULT}}`"
    )]
    HeaderMissing { provider: String, header: String, variable: String, origin: Origin },
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

impl ConfigError {
    /// The same error with the warnings that were found on the way to it: [`Resolution::diagnostics`](crate::Resolution).
    pub fn after_warnings(self, warnings: &[Diagnostic]) -> ConfigError {
        match warnings {
            [] => self,
            warnings => ConfigError::AfterWarnings { error: Box::new(self), warnings: warnings.to_vec() },
        }
    }
}

/// The errors, then the warnings, a line each.
fn all_findings(diagnostics: &[Diagnostic]) -> String {
    let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        diagnostics.iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
    let errors = errors.into_iter().map(Diagnostic::to_string);
    errors.chain(warnings.into_iter().map(warning_line)).collect::<Vec<_>>().join("\n")
}

fn warning_lines(warnings: &[Diagnostic]) -> String {
    warnings.iter().map(warning_line).collect::<Vec<_>>().join("\n")
}

fn warning_line(warning: &Diagnostic) -> String {
    format!("warning: {warning}")
}

fn choose_model(providers: &[String], variable: Option<&'static str>) -> String {
    match (providers, variable) {
        ([], _) => "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a provider and a model in settings.json: \
                    {\"model\": \"mine/MODEL\", \"providers\": {\"mine\": {\"protocol\": \"openai-chat\", \
                    \"baseUrl\": \"...\", \"apiKeyEnv\": \"...\"}}}"
            .to_owned(),
        ([provider, ..], Some(variable)) => format!(
            "set {variable} to the id of one that the endpoint has, or --model to `{provider}/MODEL` \
             (`peri models` lists them)"
        ),
        ([provider, ..], None) => format!(
            "set `model` in settings.json, PERI_MODEL or --model to PROVIDER/MODEL, for example `{provider}/MODEL` \
             (providers: {}; `peri models` lists what they have)",
            providers.join(", ")
        ),
    }
}

fn known_providers(model: &ModelRef, known: &[String], from_environment: bool) -> String {
    let variable = match model.provider() {
        DEFAULT_PROVIDER => Some("ANTHROPIC_API_KEY"),
        DEFAULT_OPENAI_PROVIDER => Some("OPENAI_API_KEY"),
        _ => None,
    };
    match (known, variable) {
        (_, Some(variable)) if from_environment => {
            format!("set {variable}, or name it under `providers` in settings.json")
        }
        ([], _) => "name it under `providers` in settings.json, or set ANTHROPIC_API_KEY to use `anthropic/MODEL` or \
                    OPENAI_API_KEY to use `openai/MODEL`"
            .to_owned(),
        ([only], _) => format!("the one provider is `{only}`: did you mean `{only}/{model}`?"),
        _ => format!("the providers are {}", known.join(", ")),
    }
}
