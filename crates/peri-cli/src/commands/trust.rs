//! `peri trust [DIR]`: shows what trust would enable, then asks.
//!
//! Owns: the question. Must not: decide what needs trust. Invariant: what is granted is what was shown: the digest of the
//! files goes with the answer.

use peri_acp_types::ports::{ConfigSource, TrustState, TrustStore, TrustVerdict};
use peri_config::{CommandLineOverlay, ConfigError, Diagnostic, WorkspaceSetting, load};

use super::question::{Consent, Question, is_agreed};
use crate::console::Console;
use crate::exit::{Exit, Failure};

const QUESTION: Question = Question {
    words: "Trust it?",
    deed: "trust it",
    hint: "read the list above; peri trust --yes trusts without asking",
};

/// Shows what lies in the workspace, asks, and records the answer.
///
/// # Errors
/// A [`Failure`] where it cannot be asked or recorded, or the files changed meanwhile.
pub async fn trust(
    source: &dyn ConfigSource,
    store: &dyn TrustStore,
    root: &str,
    consent: Consent,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let verdict = store.verdict(root).await.map_err(|reason| Failure::run(format!("{root}: {reason}")))?;
    match verdict.state {
        TrustState::NothingToTrust => {
            say(console, &format!("{}: nothing here needs trust", verdict.root)).await;
            return Ok(Exit::Success);
        }
        TrustState::Trusted => {
            say(console, &format!("{}: trusted already", verdict.root)).await;
            return Ok(Exit::Success);
        }
        TrustState::Untrusted | TrustState::Changed => {}
    }
    say(console, &describe(&verdict, &would_enable(source, store, root).await)).await;
    if !is_agreed(consent, QUESTION, console).await? {
        say(console, "not trusted").await;
        return Ok(Exit::Failure);
    }
    store.grant(root, &verdict.digest).await.map_err(|reason| {
        Failure::run(format!("{root} is not trusted: {reason}")).hint("run peri trust again to see how it is now")
    })?;
    say(console, &format!("trusted: {}", verdict.root)).await;
    Ok(Exit::Success)
}

/// What the workspace's own files would set, a line each, and what is wrong with them.
async fn would_enable(source: &dyn ConfigSource, store: &dyn TrustStore, root: &str) -> Vec<String> {
    let overlay = CommandLineOverlay { trust_workspace: true, ..CommandLineOverlay::default() };
    match load(source, store, root, &overlay).await {
        Ok(trusted) => {
            let set = trusted.set_by_workspace();
            let mut lines: Vec<String> = set.iter().map(WorkspaceSetting::to_string).collect();
            lines.extend(trusted.diagnostics.iter().map(Diagnostic::to_string));
            lines
        }
        Err(ConfigError::Invalid(findings)) => findings.iter().map(Diagnostic::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

fn describe(verdict: &TrustVerdict, enabled: &[String]) -> String {
    let mut text = match verdict.state {
        TrustState::Changed => format!("{} has changed since it was trusted.\n", verdict.root),
        _ => format!("{} is not trusted.\n", verdict.root),
    };
    text.push_str("Trust is for these files, as they are now:\n");
    for file in &verdict.files {
        text.push_str(&format!("  {file}\n"));
    }
    if !enabled.is_empty() {
        text.push_str("It would enable:\n");
        for line in enabled {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// A report that nobody reads any more needs no error.
async fn say(console: &mut Console, text: &str) {
    drop(console.text(text).await);
}
