//! The one trait through which an agent reaches a model.

use peri_acp_types::ports::{HeaderValue, Secret};
use std::time::Duration;

use crate::{ModelRequest, ModelStream};

/// A model at an endpoint. One request, one answer: no retries, no session, no tools' meaning.
pub trait LanguageModel: Send + Sync {
    /// `PROVIDER/MODEL`, for messages and records.
    fn name(&self) -> &str;

    /// Tokens that fit the model's context window, output included.
    fn context_window(&self) -> u64;

    /// Sends the request. Everything that can go wrong is the stream's terminal event. Dropping the stream aborts.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// About how many tokens a text of so many bytes has, for figures between two answers of the provider.
    fn estimate_tokens(&self, bytes: u64) -> u64 {
        bytes.div_ceil(4)
    }
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
    pub context_window: u64,
    /// No byte for so long on an open stream, or no answer at all: idle timeout.
    pub idle_timeout: Duration,
}

/// A wire protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelProtocol {
    AnthropicMessages,
}
