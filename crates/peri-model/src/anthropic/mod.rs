//! The Anthropic Messages protocol: `POST {base_url}/v1/messages`, answered by server-sent events.
//!
//! Owns that wire's names and rules, in both directions; see docs/protocol/model-anthropic.md.
//! Must not: send, wait, or judge statuses; that is the same for every protocol.

mod answer;
mod error;
mod request;
mod thinking;

use peri_acp_types::ports::HeaderValue;

use crate::failure::ProviderError;
use crate::fold::AnswerFold;
use crate::wire::{Wire, url_below};
use crate::{ModelEndpoint, ModelRequest};

/// The version of the protocol that is spoken here.
const VERSION: &str = "2023-06-01";

/// The protocol as the exchange sees it.
pub(crate) struct AnthropicMessages;

impl Wire for AnthropicMessages {
    type Reader = answer::MessageReader;

    fn url(endpoint: &ModelEndpoint) -> String {
        url_below(&endpoint.base_url, "/v1/messages")
    }

    fn headers(endpoint: &ModelEndpoint) -> Vec<(String, HeaderValue)> {
        let key = endpoint.api_key.iter().map(|key| ("x-api-key".to_owned(), HeaderValue::Secret(key.clone())));
        let version = ("anthropic-version".to_owned(), HeaderValue::Plain(VERSION.to_owned()));
        std::iter::once(version).chain(key).collect()
    }

    fn body(endpoint: &ModelEndpoint, request: &ModelRequest) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&request::wire_request(&endpoint.model, request))
    }

    fn reader(fold: AnswerFold) -> answer::MessageReader {
        answer::MessageReader::new(fold)
    }

    fn error(body: &[u8]) -> Option<ProviderError> {
        error::in_document(body)
    }

    const WANTS_OUTPUT_LIMIT: bool = true;

    fn models_url(endpoint: &ModelEndpoint, after: Option<&str>) -> String {
        let url = url_below(&endpoint.base_url, "/v1/models");
        let join = if url.contains('?') { '&' } else { '?' };
        let after = after.map(|id| format!("&after_id={}", query_value(id))).unwrap_or_default();
        format!("{url}{join}limit=1000{after}")
    }
}

/// A text as the value of a query.
fn query_value(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => value.push(char::from(byte)),
            _ => value.push_str(&format!("%{byte:02X}")),
        }
    }
    value
}
