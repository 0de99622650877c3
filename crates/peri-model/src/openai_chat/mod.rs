//! The Chat Completions protocol: `POST {base_url}/chat/completions`, answered by server-sent events.
//!
//! Owns that wire's names and rules, in both directions, and the ways in which servers of it differ; see
//! docs/protocol/model-openai-chat.md. Must not: send, wait, or judge statuses; that is the same for every protocol.

mod answer;
mod calls;
mod reasoning;
mod request;

use peri_acp_types::ports::HeaderValue;

use crate::failure::ProviderError;
use crate::fold::AnswerFold;
use crate::openai::{self, Host};
use crate::wire::{Wire, url_below};
use crate::{ModelEndpoint, ModelRequest};

/// The protocol as the exchange sees it.
pub(crate) struct OpenAiChat;

impl Wire for OpenAiChat {
    type Reader = answer::ChunkReader;

    fn url(endpoint: &ModelEndpoint) -> String {
        url_below(&endpoint.base_url, "/chat/completions")
    }

    fn headers(endpoint: &ModelEndpoint) -> Vec<(String, HeaderValue)> {
        openai::headers(endpoint)
    }

    fn body(endpoint: &ModelEndpoint, request: &ModelRequest) -> Result<Vec<u8>, serde_json::Error> {
        let host = Host::of(&endpoint.base_url);
        serde_json::to_vec(&request::wire_request(&endpoint.model, host, request)?)
    }

    fn reader(fold: AnswerFold) -> answer::ChunkReader {
        answer::ChunkReader::new(fold)
    }

    fn error(body: &[u8]) -> Option<ProviderError> {
        openai::error::in_document(body)
    }

    const WANTS_OUTPUT_LIMIT: bool = false;

    fn models_url(endpoint: &ModelEndpoint, _after: Option<&str>) -> String {
        url_below(&endpoint.base_url, "/models")
    }
}
