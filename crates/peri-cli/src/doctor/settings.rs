//! The settings: can they be read, what is odd in them, and does the workspace's own part count?

use peri_config::{CommandLineOverlay, ConfigError, Diagnostic, Resolution, Severity, TrustGrounds, load};
use peri_mcp_servers::config::FileTrustStore;

use super::{Finding, Level};
use crate::composition::{Places, sources};

/// The settings, where they can be followed, and what there is to say about them.
pub async fn read(places: &Places, overlay: &CommandLineOverlay) -> (Option<Resolution>, Vec<Finding>) {
    let (source, trust) = sources(places);
    match load(&source, trust.as_ref(), &places.workspace(), overlay).await {
        Ok(resolution) => {
            let mut findings = vec![Finding::ok("settings", files(&resolution))];
            findings.extend(resolution.diagnostics.iter().map(diagnosed));
            findings.push(trusted(&resolution.trust.grounds, &trust));
            (Some(resolution), findings)
        }
        Err(ConfigError::Invalid(diagnostics)) => (None, diagnostics.iter().map(diagnosed).collect()),
        Err(error) => (None, vec![Finding::told("settings", Level::Fault, &error.to_string())]),
    }
}

fn files(resolution: &Resolution) -> String {
    match resolution.documents.as_slice() {
        [] => "there are none; every value is a default".to_owned(),
        documents => {
            let names: Vec<String> = documents.iter().map(ToString::to_string).collect();
            format!("read from {}", names.join(", "))
        }
    }
}

fn diagnosed(diagnostic: &Diagnostic) -> Finding {
    let key = diagnostic.key.as_deref().map(|key| format!("key `{key}` ")).unwrap_or_default();
    let what = format!("{}: {key}{}", diagnostic.origin, diagnostic.message);
    let mend = diagnostic.hint.clone().unwrap_or_else(|| "peri config path names the files".to_owned());
    match diagnostic.severity {
        Severity::Error => Finding::fault("settings", what, mend),
        Severity::Warning => Finding::warning("settings", what, mend),
    }
}

fn trusted(grounds: &TrustGrounds, store: &FileTrustStore) -> Finding {
    const ONLY_TIGHTENS: &str = "what its own settings allow or configure is ignored";
    match grounds {
        TrustGrounds::Recorded => Finding::ok("trust", "this workspace is trusted"),
        TrustGrounds::ThisRun => Finding::ok("trust", "this workspace is trusted for this run"),
        TrustGrounds::NothingToTrust => Finding::ok("trust", "this workspace has nothing that needs trust"),
        TrustGrounds::Untrusted => Finding::warning(
            "trust",
            format!("this workspace is not trusted: {ONLY_TIGHTENS}"),
            "peri trust shows what it would enable, then asks",
        ),
        TrustGrounds::Changed => Finding::warning(
            "trust",
            format!("this workspace has changed since it was trusted: {ONLY_TIGHTENS}"),
            "peri trust shows what it would enable, then asks",
        ),
        TrustGrounds::Unknown(reason) => Finding::fault(
            "trust",
            format!("it cannot be found out whether this workspace is trusted: {reason}"),
            format!("look at {}", store.file().display()),
        ),
    }
}
