//! Where a session's model comes from, and which others there are to choose from.

use std::sync::Arc;

use peri_acp_types::ports::{Clock, HttpTransport};
use peri_config::{ModelRef, Protocol, ResolvedModel, Settings};
use peri_model::{LanguageModel, ModelEndpoint, ModelProtocol};

use crate::ModelChoice;

/// Models that a client is told of.
const MAX_CHOICES: usize = 200;

/// Gives the model that stands behind an endpoint.
pub trait ModelConnector: Send + Sync {
    /// Sends nothing yet: a wrong address shows at the first request.
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel>;
}

/// Models over HTTP: the ones that users have.
pub(crate) struct HttpModels {
    pub http: Arc<dyn HttpTransport>,
    pub clock: Arc<dyn Clock>,
}

impl ModelConnector for HttpModels {
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
        peri_model::connect(endpoint, self.http.clone(), self.clock.clone())
    }
}

/// The endpoint at which settings say that the model is.
pub fn model_endpoint(settings: &Settings, model: ResolvedModel) -> ModelEndpoint {
    let protocol = match model.protocol {
        Protocol::Anthropic => ModelProtocol::AnthropicMessages,
        Protocol::OpenAiChat => ModelProtocol::OpenAiChat,
        Protocol::OpenAiResponses => ModelProtocol::OpenAiResponses,
    };
    ModelEndpoint {
        provider: model.provider,
        protocol,
        base_url: model.base_url,
        api_key: model.api_key,
        headers: model.headers,
        model: model.model,
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        idle_timeout: settings.retry.idle_timeout,
    }
}

/// A model's bare name with the provider that it can only be of.
pub(crate) fn with_the_one_provider(settings: &Settings, name: &str) -> Option<ModelRef> {
    let mut providers = settings.providers.keys();
    match (providers.next(), providers.next()) {
        (Some(only), None) => format!("{only}/{name}").parse().ok(),
        _ => None,
    }
}

/// The models that settings list and the one in use: first those of its provider, then the others, by name.
pub(crate) fn model_choices(settings: &Settings, in_use: &ModelRef) -> Vec<ModelChoice> {
    let ids_of = |provider: &str| -> Vec<String> {
        let models = settings.providers.get(provider).into_iter().flat_map(|provider| provider.value.models.keys());
        models.map(|model| format!("{provider}/{model}")).collect()
    };
    let others = settings.providers.keys().filter(|provider| *provider != in_use.provider());
    let mut ids = ids_of(in_use.provider());
    let in_use_id = in_use.to_string();
    if !ids.contains(&in_use_id) {
        ids.insert(0, in_use_id.clone());
    }
    ids.extend(others.flat_map(|provider| ids_of(provider)));
    // However long the list: the one in use is on it.
    if ids.iter().skip(MAX_CHOICES).any(|id| *id == in_use_id) {
        ids.insert(0, in_use_id);
    }
    ids.truncate(MAX_CHOICES);
    ids.into_iter().map(|id| ModelChoice { id }).collect()
}
