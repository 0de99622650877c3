//! The one trait through which an agent reaches a model.

use std::time::Duration;

use futures::future::BoxFuture;
use peri_acp_types::ports::{HeaderValue, Secret};

use crate::{ModelRequest, ModelStream};

/// A model at an endpoint. One request, one answer: no retries, no session, no tools' meaning.
pub trait LanguageModel: Send + Sync {
    /// `PROVIDER/MODEL`, for messages and records.
    fn name(&self) -> &str;

    /// How much the model takes and gives, as far as is known now: what was learned since the last call is in it.
    fn limits(&self) -> ModelLimits;

    /// Asks the endpoint for limits that settings do not state; what it says is in [`LanguageModel::limits`] from then on.
    /// Never fails and takes no longer than a few seconds: without an answer the defaults stay. May be dropped.
    fn learn_limits(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Sends the request. Everything that can go wrong is the stream's terminal event. Dropping the stream aborts.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// About how many tokens a text of so many bytes has, for figures between two answers of the provider.
    fn estimate_tokens(&self, bytes: u64) -> u64 {
        bytes.div_ceil(4)
    }
}

/// How much a model takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelLimits {
    /// Tokens that fit its context window, output included.
    pub context_window: u64,
    /// The most tokens that one of its answers can have; None where nobody said.
    pub max_output_tokens: Option<u32>,
}

/// Where a model is and how to speak to it. Comes from settings.
#[derive(Clone, Debug)]
pub struct ModelEndpoint {
    /// The configured name of the provider.
    pub provider: String,
    pub protocol: ModelProtocol,
    /// As each ecosystem writes it: Anthropic without `/v1`, OpenAI with it. No trailing slash.
    pub base_url: String,
    /// None for endpoints that want none.
    pub api_key: Option<Secret>,
    /// Sent with every request, after ours.
    pub headers: Vec<(String, HeaderValue)>,
    /// The model's id at the provider.
    pub model: String,
    /// Tokens of the context window, output included, where settings state them.
    pub context_window: Option<u64>,
    /// The most tokens that one answer can have, where settings state them.
    pub max_output_tokens: Option<u32>,
    /// No byte for so long on an open stream, or no answer at all: idle timeout.
    pub idle_timeout: Duration,
}

/// A wire protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelProtocol {
    AnthropicMessages,
    /// `POST {base_url}/chat/completions`, as OpenAI and many others speak it.
    OpenAiChat,
    /// `POST {base_url}/responses`.
    OpenAiResponses,
}
