//! HTTP out. One request, one answer, bytes as they come; retries and meaning belong to the caller.

use std::fmt;

use bytes::Bytes;
use futures::stream::BoxStream;

/// Sends requests. Follows no redirects, keeps no cookies, retries nothing.
#[async_trait::async_trait]
pub trait HttpTransport: Send + Sync {
    /// Resolves when status and headers are there. May wait as long as the peer does: the caller bounds it.
    /// Dropping the future or the body closes the connection.
    ///
    /// # Errors
    /// [`HttpError`] where no answer came.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError>;
}

/// A request, whole.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: HttpMethod,
    /// Absolute `http` or `https` URL.
    pub url: String,
    pub headers: Vec<(String, HeaderValue)>,
    pub body: Bytes,
}

/// The methods that Peri uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpMethod {
    Get,
    Post,
    Delete,
}

/// A header's value; a secret one is never shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderValue {
    Plain(String),
    Secret(Secret),
}

/// Shorter text is a placeholder.
const LEAST_SECRET_BYTES: usize = 8;

/// Text that must not be printed, logged or stored. `Debug` shows that it is there, no more.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes this secret out of a text that came from outside, before anyone sees it. One of a few letters, as local
    /// endpoints are given, is no secret: it would be found in half the words.
    pub fn redact(&self, text: &str) -> String {
        match self.0.len() < LEAST_SECRET_BYTES {
            true => text.to_owned(),
            false => text.replace(&self.0, "[redacted]"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// An answer whose body is still to come.
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: BoxStream<'static, Result<Bytes, HttpError>>,
}

impl HttpResponse {
    /// The first header of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// No answer, or a body that broke off.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HttpError {
    /// The request never reached the peer: name, route, refusal, TLS.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection broke after the request was sent.
    #[error("connection broke: {0}")]
    Broken(String),
    /// The request itself cannot be sent (its URL, a header).
    #[error("bad request: {0}")]
    Invalid(String),
}
