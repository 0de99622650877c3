//! `peri models`: what the endpoint of a provider offers, and what the settings say of it.
//!
//! Owns: the merge of the two, and how it is shown. Invariant: what the settings state wins over what the endpoint says, as
//! it does in a session.

use peri_acp_types::{ModelFailure, ModelFailureKind};
use peri_config::{ConfigError, ModelRef, Provider, Settings};
use peri_model::ListedModel;
use serde_json::{Value, json};

use crate::args::ReportFormat;
use crate::composition::offered::ModelAccess;
use crate::console::printable;
use crate::exit::Failure;

/// A model of a provider.
struct Entry {
    id: String,
    display_name: Option<String>,
    context_window: Option<u64>,
    max_output_tokens: Option<u32>,
    /// A session starts with it.
    is_chosen: bool,
    /// The endpoint has it on its list.
    is_listed: bool,
}

/// The list of a provider, or (None) of the chosen model's.
///
/// # Errors
/// A usage [`Failure`] where there is no such provider; one in the endpoint's own words where it gives no list.
pub async fn list(
    settings: &Settings,
    provider: Option<&str>,
    access: &ModelAccess,
    format: ReportFormat,
) -> Result<String, Failure> {
    let asked = find_model(settings, provider)?;
    let resolved = settings.provider_for(&asked).map_err(|error| unusable(&error))?;
    let address = resolved.base_url.clone();
    let endpoint = peri_controller::model_endpoint(settings, resolved);
    let listed = access.list(&endpoint).await.map_err(|failure| no_list(asked.provider(), &address, &failure))?;
    let chosen = settings.model.as_ref().filter(|model| model.provider() == asked.provider());
    let entries = merge(listed, settings.providers.get(asked.provider()).map(|provider| &provider.value), chosen);
    Ok(match format {
        ReportFormat::Json => json_of(asked.provider(), &address, chosen, &entries),
        ReportFormat::Text => text_of(asked.provider(), settings, &entries),
    })
}

/// A model of the provider that is meant. Which one is of no account: it is the endpoint that is asked.
fn find_model(settings: &Settings, provider: Option<&str>) -> Result<ModelRef, Failure> {
    let chosen = settings.model.as_ref();
    let provider = match (provider, chosen) {
        (None, Some(chosen)) => return Ok(chosen.clone()),
        (None, None) => match settings.providers.keys().next() {
            Some(only) if settings.providers.len() == 1 => only,
            _ => {
                let reason = settings.chosen_model().err().map(|error| error.to_string()).unwrap_or_default();
                return Err(match settings.providers.is_empty() {
                    true => Failure::usage(reason),
                    false => Failure::usage(reason).hint("or name a provider: peri models PROVIDER"),
                });
            }
        },
        (Some(provider), Some(chosen)) if chosen.provider() == provider => return Ok(chosen.clone()),
        (Some(provider), _) => provider,
    };
    let unknown = || {
        let known: Vec<&str> = settings.providers.keys().map(String::as_str).collect();
        let hint = match known.as_slice() {
            [] => "name one in the settings; peri config path names the file".to_owned(),
            known => format!("known are: {}", known.join(", ")),
        };
        Failure::usage(format!("no provider `{}` is configured", printable(provider))).hint(hint)
    };
    let known = settings.providers.get(provider).ok_or_else(unknown)?;
    let model = known.value.models.keys().next().map_or("any", String::as_str);
    format!("{provider}/{model}").parse().map_err(|_| unknown())
}

fn unusable(error: &ConfigError) -> Failure {
    Failure::usage(error.to_string()).hint("peri config check")
}

fn no_list(provider: &str, address: &str, failure: &ModelFailure) -> Failure {
    let status = failure.status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
    let words = failure.kind.words();
    let told = Failure::run(format!(
        "provider `{provider}` ({address}) gave no list of its models ({words}{status}): {}",
        failure.message
    ));
    told.hint(match failure.kind {
        ModelFailureKind::Connect | ModelFailureKind::IdleTimeout | ModelFailureKind::Cut => {
            "is the endpoint up, and is the provider's baseUrl right? peri doctor looks further"
        }
        ModelFailureKind::Auth => "the endpoint does not take the key; peri config check names where it comes from",
        ModelFailureKind::RateLimited | ModelFailureKind::Overloaded | ModelFailureKind::Server => "try again later",
        ModelFailureKind::BadRequest | ModelFailureKind::Protocol | ModelFailureKind::ContextTooLong => {
            "not every endpoint has a list; a model can be named all the same: --model PROVIDER/MODEL"
        }
    })
}

/// The endpoint's models in its order, then those that only the settings name.
fn merge(listed: Vec<ListedModel>, provider: Option<&Provider>, chosen: Option<&ModelRef>) -> Vec<Entry> {
    let is_chosen = |id: &str| chosen.is_some_and(|chosen| chosen.model() == id);
    let mut entries: Vec<Entry> = listed
        .into_iter()
        .map(|model| Entry {
            is_chosen: is_chosen(&model.id),
            id: model.id,
            display_name: model.display_name,
            context_window: model.context_window,
            max_output_tokens: model.max_output_tokens,
            is_listed: true,
        })
        .collect();
    let stated = provider.into_iter().flat_map(|provider| &provider.models);
    for (id, limits) in stated {
        let entry = match entries.iter().position(|entry| entry.id == *id) {
            Some(position) => &mut entries[position],
            None => push(&mut entries, id, is_chosen(id)),
        };
        entry.context_window = limits.context_window.or(entry.context_window);
        entry.max_output_tokens = limits.max_output_tokens.or(entry.max_output_tokens);
    }
    if let Some(chosen) = chosen
        && !entries.iter().any(|entry| entry.is_chosen)
    {
        push(&mut entries, chosen.model(), true);
    }
    entries
}

fn push<'a>(entries: &'a mut Vec<Entry>, id: &str, is_chosen: bool) -> &'a mut Entry {
    let entry = Entry {
        id: id.to_owned(),
        display_name: None,
        context_window: None,
        max_output_tokens: None,
        is_chosen,
        is_listed: false,
    };
    let position = entries.len();
    entries.push(entry);
    &mut entries[position]
}

fn json_of(provider: &str, address: &str, chosen: Option<&ModelRef>, entries: &[Entry]) -> String {
    let models: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "id": format!("{provider}/{}", entry.id),
                "model": entry.id,
                "display_name": entry.display_name,
                "context_window": entry.context_window,
                "max_output_tokens": entry.max_output_tokens,
                "chosen": entry.is_chosen,
                "listed": entry.is_listed,
            })
        })
        .collect();
    let list = json!({
        "provider": provider, "base_url": address, "chosen": chosen.map(ToString::to_string), "models": models,
    });
    serde_json::to_string_pretty(&list).unwrap_or_default()
}

/// A line for each, as it is named in settings; `*` before the one that a session starts with.
fn text_of(provider: &str, settings: &Settings, entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.id.chars().count()).max().unwrap_or(0).min(60);
    let mut text = String::new();
    for entry in entries {
        let mark = if entry.is_chosen { '*' } else { ' ' };
        let mut line = format!("{mark} {provider}/{:<width$}", entry.id);
        if let Some(window) = entry.context_window {
            line.push_str(&format!("  {window} tokens"));
        }
        if let Some(output) = entry.max_output_tokens {
            line.push_str(&format!("  answers up to {output}"));
        }
        if let Some(name) = entry.display_name.as_ref().filter(|name| **name != entry.id) {
            line.push_str(&format!("  {name}"));
        }
        if !entry.is_listed {
            line.push_str("  (not on the endpoint's list)");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if entries.is_empty() {
        text.push_str("the endpoint lists no models\n");
    }
    let others: Vec<&str> = settings.providers.keys().map(String::as_str).filter(|other| *other != provider).collect();
    if !others.is_empty() {
        text.push_str(&format!("\nother providers: {} (peri models PROVIDER)\n", others.join(", ")));
    }
    text
}
