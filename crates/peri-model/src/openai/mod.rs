//! What the two protocols of OpenAI share: authentication, errors, and what single hosts want otherwise.
//!
//! Must not: know either protocol's messages or events.

pub(crate) mod error;

use peri_acp_types::Image;
use peri_acp_types::ports::{HeaderValue, Secret};

use crate::{ModelEndpoint, ModelRequest};

/// The longest name of a tool that these wires take, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// The headers that both protocols want.
pub(crate) fn headers(endpoint: &ModelEndpoint) -> Vec<(String, HeaderValue)> {
    let bearer = |key: &Secret| HeaderValue::Secret(Secret::new(format!("Bearer {}", key.reveal())));
    endpoint.api_key.iter().map(|key| ("authorization".to_owned(), bearer(key))).collect()
}

/// What is known to be special about a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    /// OpenAI itself, or its models at Azure.
    OpenAi,
    Mistral,
    Other,
}

impl Host {
    pub(crate) fn of(base_url: &str) -> Host {
        let authority = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
        let host = host.to_ascii_lowercase();
        let is_below =
            |domain: &str| host.strip_suffix(domain).is_some_and(|left| left.is_empty() || left.ends_with('.'));
        if is_below("openai.com") || is_below("openai.azure.com") || is_below("services.ai.azure.com") {
            Host::OpenAi
        } else if is_below("mistral.ai") {
            Host::Mistral
        } else {
            Host::Other
        }
    }
}

/// The most tokens to ask for. None: the endpoint knows best, since what it takes depends on the model.
pub(crate) fn output_tokens(request: &ModelRequest) -> Option<u32> {
    request.max_output_tokens.map(|tokens| tokens.min(request.output_room).max(1))
}

/// An image as the URL that both wires take.
pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.mime_type, image.base64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_by_their_names_alone() {
        for (url, host) in [
            ("https://api.openai.com/v1", Host::OpenAi),
            ("https://eu.api.OpenAI.com:443/v1", Host::OpenAi),
            ("https://mine.openai.azure.com/openai/v1?api-version=preview", Host::OpenAi),
            ("https://api.mistral.ai/v1", Host::Mistral),
            ("https://notopenai.com/v1", Host::Other),
            ("https://openai.com@example.net/v1", Host::Other),
            ("http://127.0.0.1:8080/openai.com", Host::Other),
            ("", Host::Other),
        ] {
            assert_eq!(Host::of(url), host, "{url}");
        }
    }
}
