//! The Responses protocol: `POST {base_url}/responses`, answered by server-sent events. Nothing is kept at the provider.
//!
//! Owns that wire's names and rules, in both directions; see docs/protocol/model-openai-responses.md.
//! Must not: send, wait, or judge statuses; that is the same for every protocol.

mod answer;
mod items;
mod reasoning;
mod request;

use peri_acp_types::ports::HeaderValue;

use crate::failure::ProviderError;
use crate::fold::AnswerFold;
use crate::openai;
use crate::wire::{Wire, url_below};
use crate::{ModelEndpoint, ModelRequest};

/// The protocol as the exchange sees it.
pub(crate) struct OpenAiResponses;

impl Wire for OpenAiResponses {
    type Reader = answer::ResponseReader;

    fn url(endpoint: &ModelEndpoint) -> String {
        url_below(&endpoint.base_url, "/responses")
    }

    fn headers(endpoint: &ModelEndpoint) -> Vec<(String, HeaderValue)> {
        openai::headers(endpoint)
    }

    fn body(endpoint: &ModelEndpoint, request: &ModelRequest) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&request::wire_request(&endpoint.model, request)?)
    }

    fn reader(fold: AnswerFold) -> answer::ResponseReader {
        answer::ResponseReader::new(fold)
    }

    fn error(body: &[u8]) -> Option<ProviderError> {
        openai::error::in_document(body)
    }

    const WANTS_OUTPUT_LIMIT: bool = false;

    fn models_url(endpoint: &ModelEndpoint, _after: Option<&str>) -> String {
        url_below(&endpoint.base_url, "/models")
    }
}
