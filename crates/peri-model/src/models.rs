//! The models that an endpoint offers, and what it says of their limits.
//!
//! Endpoints of one protocol name their limits in a dozen ways; all that are known are read here. What an endpoint says is
//! believed within reason only. Invariant: asking is bounded in pages, bytes, models and time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use peri_acp_types::ports::{Clock, HttpMethod, HttpRequest, HttpResponse, HttpTransport};
use peri_acp_types::{ModelFailure, ModelFailureKind};
use serde::Deserialize;
use serde_json::Value;

use crate::anthropic::AnthropicMessages;
use crate::connect::headers;
use crate::exchange::{self, within};
use crate::failure::{FailureContext, Progress};
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::wire::Wire;
use crate::{ModelEndpoint, ModelProtocol};

/// The longest list, with a page of it, that is read. Routers offer some hundred models in a megabyte.
const MAX_PAGES: usize = 20;
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
const MAX_MODELS: usize = 20_000;
/// The longest id or name of a model that is believed, in bytes.
const MAX_NAME_BYTES: usize = 512;
/// No window is believed above this, and no answer: figures of a session must not overflow.
const MAX_WINDOW: u64 = 1 << 32;
/// How long the whole list may take. People wait for it.
const LIST_TIME: Duration = Duration::from_secs(30);

/// A model that an endpoint offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedModel {
    /// As requests name it.
    pub id: String,
    /// For people, where it differs from the id.
    pub display_name: Option<String>,
    /// Tokens of the context window, output included, where the endpoint says.
    pub context_window: Option<u64>,
    /// The most tokens that one answer can have, where the endpoint says.
    pub max_output_tokens: Option<u32>,
}

impl ListedModel {
    /// True where that name means this model: its id, the id without a date, or either with `latest` for a date.
    pub fn answers_to(&self, name: &str) -> bool {
        is_name_of(name, &self.id)
    }
}

/// Asks the endpoint for its models, in its own order. Takes no longer than 30 seconds; may be dropped.
///
/// # Errors
/// [`ModelFailure`], with the endpoint's own words where it sent some. One without a list answers 404: `BadRequest`.
pub async fn list_models(
    endpoint: &ModelEndpoint,
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
) -> Result<Vec<ListedModel>, ModelFailure> {
    let (http, clock) = (http.as_ref(), clock.as_ref());
    match endpoint.protocol {
        ModelProtocol::AnthropicMessages => listed::<AnthropicMessages>(endpoint, http, clock, LIST_TIME).await,
        ModelProtocol::OpenAiChat => listed::<OpenAiChat>(endpoint, http, clock, LIST_TIME).await,
        ModelProtocol::OpenAiResponses => listed::<OpenAiResponses>(endpoint, http, clock, LIST_TIME).await,
    }
}

/// As [`list_models`], within that time.
pub(crate) async fn listed<W: Wire>(
    endpoint: &ModelEndpoint,
    http: &dyn HttpTransport,
    clock: &dyn Clock,
    limit: Duration,
) -> Result<Vec<ListedModel>, ModelFailure> {
    let url = W::models_url(endpoint, None);
    let failures = FailureContext::new(endpoint, &format!("{}/{}", endpoint.provider, endpoint.model), &url);
    let started = clock.monotonic();
    let reading = within(clock, limit, pages::<W>(endpoint, http, clock, &failures)).await;
    reading.unwrap_or_else(|| {
        let progress = Progress { elapsed: clock.monotonic().saturating_sub(started), ..Progress::default() };
        let message = format!("{url} did not give its list within {limit:?}");
        Err(failures.failure(ModelFailureKind::IdleTimeout, &message, progress))
    })
}

/// What the list says of the model; where it has one model only, it is that one, whatever it is called: local servers
/// serve one and take any name for it.
pub(crate) fn of_model(mut models: Vec<ListedModel>, model: &str) -> Option<ListedModel> {
    let exact = models.iter().position(|listed| listed.id == model);
    match exact.or_else(|| models.iter().position(|listed| listed.answers_to(model))) {
        Some(place) => Some(models.swap_remove(place)),
        None if models.len() == 1 => models.pop(),
        None => None,
    }
}

fn is_name_of(name: &str, id: &str) -> bool {
    let (name, undated) = (without_latest(name), without_latest(id));
    name == undated || id.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_date)
}

fn without_latest(name: &str) -> &str {
    name.strip_suffix("-latest").or_else(|| name.strip_suffix(":latest")).unwrap_or(name)
}

/// `20250929` or `2025-09-29`.
fn is_date(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [date] => date.len() == 8 && digits(date),
        [year, month, day] => [year.len(), month.len(), day.len()] == [4, 2, 2] && parts.iter().all(|it| digits(it)),
        _ => false,
    }
}

async fn pages<W: Wire>(
    endpoint: &ModelEndpoint,
    http: &dyn HttpTransport,
    clock: &dyn Clock,
    failures: &FailureContext,
) -> Result<Vec<ListedModel>, ModelFailure> {
    let mut models: Vec<ListedModel> = Vec::new();
    let mut after: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: W::models_url(endpoint, after.as_deref()),
            headers: headers::<W>(endpoint, "application/json"),
            body: Bytes::new(),
        };
        let page = page::<W>(endpoint, request, http, clock, failures).await?;
        models.extend(page.models);
        models.truncate(MAX_MODELS);
        // An endpoint that does not know the cursor begins anew for ever.
        if page.next.is_none() || page.next == after || models.len() == MAX_MODELS {
            break;
        }
        after = page.next;
    }
    Ok(models)
}

async fn page<W: Wire>(
    endpoint: &ModelEndpoint,
    request: HttpRequest,
    http: &dyn HttpTransport,
    clock: &dyn Clock,
    failures: &FailureContext,
) -> Result<ModelsPage, ModelFailure> {
    let started = clock.monotonic();
    let progress = || Progress { elapsed: clock.monotonic().saturating_sub(started), ..Progress::default() };
    let mut response = http.send(request).await.map_err(|error| failures.not_sent(&error, progress()))?;
    if response.status != 200 {
        return Err(exchange::refusal::<W>(response, failures, clock, progress(), endpoint.idle_timeout).await);
    }
    let failed = |kind, message: &str, received: usize| {
        let progress = Progress { status: Some(200), received_bytes: received as u64, ..progress() };
        Err(failures.failure(kind, message, progress))
    };
    let body = match whole_body(&mut response).await {
        Ok(body) => body,
        Err((kind, message, received)) => return failed(kind, &message, received),
    };
    match serde_json::from_slice::<Value>(&body).ok().as_ref().and_then(read_page) {
        Some(page) => Ok(page),
        None => {
            let excerpt = failures.excerpt(&body);
            failed(ModelFailureKind::Protocol, &format!("the answer is no list of models: {excerpt}"), body.len())
        }
    }
}

async fn whole_body(response: &mut HttpResponse) -> Result<Vec<u8>, (ModelFailureKind, String, usize)> {
    let mut body = Vec::new();
    while let Some(piece) = response.body.next().await {
        let piece = piece.map_err(|error| (ModelFailureKind::Cut, error.to_string(), body.len()))?;
        if body.len() + piece.len() > MAX_PAGE_BYTES {
            let message = format!("the list of models is longer than {MAX_PAGE_BYTES} bytes");
            return Err((ModelFailureKind::Protocol, message, body.len()));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// A page of the list.
#[derive(PartialEq, Eq, Debug)]
struct ModelsPage {
    models: Vec<ListedModel>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

#[derive(Deserialize)]
struct Cursor {
    #[serde(default)]
    has_more: bool,
    last_id: Option<String>,
}

/// None where it is no list.
fn read_page(list: &Value) -> Option<ModelsPage> {
    let items = list.as_array().or_else(|| list.get("data")?.as_array()).or_else(|| list.get("models")?.as_array())?;
    let models = items.iter().filter_map(read_model).collect();
    let cursor = Cursor::deserialize(list).ok();
    let next = cursor.and_then(|cursor| cursor.last_id.filter(|id| cursor.has_more && is_sane(id)));
    Some(ModelsPage { models, next })
}

/// None for an entry without a usable id.
fn read_model(item: &Value) -> Option<ListedModel> {
    let word = |name: &str| item.get(name).and_then(Value::as_str).filter(|word| is_sane(word)).map(str::to_owned);
    let id = word("id").or_else(|| word("model")).or_else(|| word("key")).or_else(|| word("name"))?;
    let display_name = word("display_name").or_else(|| word("name")).filter(|name| *name != id);
    Some(ListedModel {
        display_name,
        context_window: context_window(item),
        max_output_tokens: max_output_tokens(item),
        id,
    })
}

fn is_sane(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control)
}

/// What a server runs with comes before what its model was made for.
fn context_window(item: &Value) -> Option<u64> {
    let provider = figure(item, "/top_provider/context_length");
    [
        "/loaded_context_length",     // LM Studio, its own list
        "/meta/n_ctx",                // llama.cpp
        "/max_model_len",             // vLLM, SGLang
        "/context_window",            // Groq
        "/context_length",            // OpenRouter, Together, Fireworks
        "/max_context_length",        // LM Studio, Mistral
        "/max_input_tokens",          // Anthropic
        "/max_context_window_tokens", // gateways
        "/meta/n_ctx_train",          // older llama.cpp: may be more than it runs with
    ]
    .into_iter()
    .find_map(|place| figure(item, place))
    // OpenRouter states the model's window, and that of the provider which it would choose.
    .map(|window| provider.map_or(window, |provider| window.min(provider)))
}

fn max_output_tokens(item: &Value) -> Option<u32> {
    let places = [
        "/top_provider/max_completion_tokens", // OpenRouter
        "/max_completion_tokens",              // Groq
        "/max_output_tokens",
        "/max_tokens", // Anthropic
    ];
    places.into_iter().find_map(|place| figure(item, place)).and_then(|tokens| u32::try_from(tokens).ok())
}

/// A figure of tokens. Zero is how some say that they do not know.
fn figure(item: &Value, place: &str) -> Option<u64> {
    item.pointer(place)?.as_u64().filter(|tokens| (1..=MAX_WINDOW).contains(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(item: &Value, window: Option<u64>, output: Option<u32>) {
        let page = read_page(&json!({"data": [item]})).expect("a list");
        let [model] = &page.models[..] else { panic!("{page:?}") };
        assert_eq!((model.context_window, model.max_output_tokens), (window, output), "{item}");
    }

    #[test]
    fn limits_are_read_in_every_form_that_is_met() {
        check(&json!({"id": "a", "object": "model", "created": 1, "owned_by": "x"}), None, None);
        check(&json!({"id": "a", "meta": {"n_ctx_train": 131_072, "n_ctx": 4096}}), Some(4096), None);
        check(&json!({"id": "a", "meta": {"n_ctx_train": 131_072}}), Some(131_072), None);
        check(&json!({"id": "a", "meta": null, "max_model_len": 32_768}), Some(32_768), None);
        check(
            &json!({"id": "a", "context_window": 131_072, "max_completion_tokens": 65_536}),
            Some(131_072),
            Some(65_536),
        );
        let provider = json!({"context_length": 64_000, "max_completion_tokens": 8000});
        check(&json!({"id": "a", "context_length": 128_000, "top_provider": provider}), Some(64_000), Some(8000));
        let no_output = json!({"context_length": null, "max_completion_tokens": null});
        check(&json!({"id": "a", "context_length": 128_000, "top_provider": no_output}), Some(128_000), None);
        check(&json!({"id": "a", "max_context_length": 8192, "loaded_context_length": 4096}), Some(4096), None);
        check(&json!({"id": "a", "max_input_tokens": 200_000, "max_tokens": 64_000}), Some(200_000), Some(64_000));
        check(&json!({"id": "a", "max_input_tokens": 0, "max_tokens": 0}), None, None);
        check(&json!({"id": "a", "context_length": -1, "max_tokens": 1e300}), None, None);
        check(&json!({"id": "a", "context_length": u64::MAX, "max_tokens": u64::MAX}), None, None);
    }

    #[test]
    fn lists_come_in_several_forms() {
        let ids = |list: Value| {
            let models = read_page(&list).map(|page| page.models);
            models.map(|models| models.into_iter().map(|model| model.id).collect::<Vec<_>>())
        };
        let some = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
        assert_eq!(ids(json!({"data": [{"id": "a"}, {"id": "b", "x": []}]})), some(&["a", "b"]));
        assert_eq!(ids(json!([{"id": "a"}])), some(&["a"]));
        assert_eq!(ids(json!({"models": [{"name": "n", "model": "m"}, {"key": "k"}]})), some(&["m", "k"]));
        assert_eq!(ids(json!({"data": [7, null, {}, {"id": ""}, {"id": "a\nb"}, {"id": "x".repeat(600)}]})), some(&[]));
        assert_eq!(ids(json!({"data": null})), None);
        assert_eq!(ids(json!({"error": "no"})), None);
    }

    #[test]
    fn a_model_is_found_under_its_other_names() {
        let listed = |ids: &[&str]| -> Vec<ListedModel> {
            let model = |id: &&str| ListedModel {
                id: (*id).to_owned(),
                display_name: None,
                context_window: None,
                max_output_tokens: None,
            };
            ids.iter().map(model).collect()
        };
        let found = |ids: &[&str], model: &str| of_model(listed(ids), model).map(|model| model.id);
        assert_eq!(found(&["m-1", "m-1-mini"], "m-1").as_deref(), Some("m-1"));
        assert_eq!(found(&["m-1-mini", "m-1-20250929"], "m-1").as_deref(), Some("m-1-20250929"));
        assert_eq!(found(&["x", "m-1-20250929"], "m-1-latest").as_deref(), Some("m-1-20250929"));
        assert_eq!(found(&["m-1-20250929", "m-1"], "m-1").as_deref(), Some("m-1"), "the very name goes first");
        assert_eq!(found(&["x", "m-1-2025-09-29"], "m-1").as_deref(), Some("m-1-2025-09-29"));
        assert_eq!(found(&["x", "m-1-latest"], "m-1").as_deref(), Some("m-1-latest"));
        assert_eq!(found(&["x", "qwen3"], "qwen3:latest").as_deref(), Some("qwen3"));
        assert_eq!(found(&["m1", "m2"], "m"), None);
        assert_eq!(found(&["m-1-2025-9-29", "m-1-2025092"], "m-1"), None);
        assert_eq!(found(&["x", "qwen3:latest"], "qwen3").as_deref(), Some("qwen3:latest"));
        assert_eq!(found(&["models/some.gguf"], "anything").as_deref(), Some("models/some.gguf"));
        assert_eq!(found(&["a", "b"], "c"), None);
        assert_eq!(found(&[], "c"), None);
    }
}
