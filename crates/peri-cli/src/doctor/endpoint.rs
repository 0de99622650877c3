//! The model's endpoint: is it there, does it take the key, does it have the model?
//!
//! Invariant: what one answer leaves open is said to be unknown, never guessed.

use peri_acp_types::{ModelFailure, ModelFailureKind};
use peri_config::{ApiKey, ModelRef, ResolvedModel, Settings};
use peri_model::ListedModel;
use tokio::time::{Instant, timeout};

use super::{CHECK_LIMIT, Finding, Level};
use crate::composition::offered::ModelAccess;

/// Asks the endpoint of the chosen model for its list.
pub async fn check(settings: &Settings, access: &ModelAccess) -> Vec<Finding> {
    let chosen = settings.chosen_model().and_then(|model| Ok((model, settings.provider_for(model)?)));
    let (model, resolved) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return vec![Finding::told("model", Level::Fault, &error.to_string())],
    };
    let address = resolved.base_url.clone();
    let key = key_words(settings, &resolved);
    let endpoint = peri_controller::model_endpoint(settings, resolved);
    let asked = Instant::now();
    match timeout(CHECK_LIMIT, access.list(&endpoint)).await {
        Err(_) => vec![not_there(&address, &format!("no answer within {} s", CHECK_LIMIT.as_secs()))],
        Ok(Ok(listed)) => {
            let seconds = asked.elapsed().as_secs_f64();
            let answers = format!("{address} answers and lists {} models ({seconds:.2} s)", listed.len());
            vec![Finding::ok("endpoint", answers), accepted(&key), on_the_list(model, &listed)]
        }
        Ok(Err(failure)) => refused(&address, &key, model, &failure),
    }
}

/// Whose key it is, for people.
fn key_words(settings: &Settings, resolved: &ResolvedModel) -> Option<String> {
    match settings.providers.get(&resolved.provider).map(|provider| &provider.value.key) {
        Some(ApiKey::Plain(_)) => Some("the key in the settings".to_owned()),
        Some(ApiKey::Variable { name, .. }) => Some(format!("the key in {name}")),
        Some(ApiKey::None) | None => None,
    }
}

fn accepted(key: &Option<String>) -> Finding {
    match key {
        Some(key) => Finding::ok("key", format!("{key} is accepted")),
        None => Finding::ok("key", "none is configured, and none was asked for"),
    }
}

fn on_the_list(model: &ModelRef, listed: &[ListedModel]) -> Finding {
    let name = model.model();
    let is_exact = |listed: &&ListedModel| listed.id == name;
    let is_alike = |listed: &&ListedModel| listed.answers_to(name);
    match (listed.iter().find(is_exact), listed.iter().find(is_alike), listed) {
        (Some(_), _, _) => Finding::ok("model", format!("{model} is there")),
        (None, Some(alike), _) => Finding::ok("model", format!("{model} is there, as {}", alike.id)),
        (None, None, [only]) => Finding::warning(
            "model",
            format!("the endpoint lists only {}, not {name}", only.id),
            format!(
                "a server with one model often takes any name for it; if this one does not, choose {}/{}",
                model.provider(),
                only.id
            ),
        ),
        (None, None, _) => Finding::warning(
            "model",
            format!("{model} is not on the endpoint's list"),
            format!(
                "peri models {} shows the list; --model or `model` in the settings choose another",
                model.provider()
            ),
        ),
    }
}

/// What a failure tells about the endpoint, the key and the model.
fn refused(address: &str, key: &Option<String>, model: &ModelRef, failure: &ModelFailure) -> Vec<Finding> {
    let said = match failure.status {
        Some(status) => format!("HTTP {status}: {}", failure.message),
        None => failure.message.clone(),
    };
    match failure.kind {
        ModelFailureKind::Connect | ModelFailureKind::IdleTimeout | ModelFailureKind::Cut => {
            vec![not_there(address, &said)]
        }
        ModelFailureKind::Auth => vec![
            Finding::ok("endpoint", format!("{address} answers")),
            Finding::fault("key", not_accepted(key, &said), key_mend(key)),
            unknown("model", format!("whether {model} is there"), "mend the key first"),
        ],
        ModelFailureKind::RateLimited | ModelFailureKind::Overloaded | ModelFailureKind::Server => vec![
            Finding::warning("endpoint", format!("{address} answers, but cannot serve now: {said}"), "try again later"),
            unknown("model", format!("whether {model} is there"), "try again later"),
        ],
        ModelFailureKind::BadRequest | ModelFailureKind::Protocol | ModelFailureKind::ContextTooLong => vec![
            Finding::ok("endpoint", format!("{address} answers, but not with a list of models ({said})")),
            unknown(
                "model",
                format!("whether the key is accepted and {model} is there"),
                "run a prompt: peri -p hello; if that fails too, is the provider's baseUrl right?",
            ),
        ],
    }
}

fn not_there(address: &str, said: &str) -> Finding {
    Finding::fault(
        "endpoint",
        format!("{address} does not answer: {said}"),
        "is it up, and is the provider's baseUrl right? peri config show",
    )
}

fn unknown(area: &'static str, what: String, mend: &str) -> Finding {
    Finding::warning(area, format!("unknown: {what}"), mend)
}

fn not_accepted(key: &Option<String>, said: &str) -> String {
    match key {
        Some(key) => format!("{key} is not accepted: {said}"),
        None => format!("the endpoint wants a key, and none is configured: {said}"),
    }
}

fn key_mend(key: &Option<String>) -> &'static str {
    match key {
        Some(_) => "put in a valid key of this provider",
        None => "name the variable that holds it in the provider's apiKeyEnv",
    }
}
