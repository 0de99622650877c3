//! What differs from one protocol to the next: how a request is written and how an answer is read.
//!
//! A new protocol is a new folder beside [`crate::anthropic`] that implements these two traits, and a line in
//! [`crate::connect`]. Sending, time, bounds, statuses and framing are the business of [`crate::exchange`].

use std::collections::VecDeque;

use peri_acp_types::ports::HeaderValue;

use crate::failure::ProviderError;
use crate::fold::{AnswerFold, FoldError};
use crate::sse::SseEvent;
use crate::{ModelAnswer, ModelEndpoint, ModelRequest, ModelStreamEvent};

/// A protocol's requests, and the errors that answer them.
pub(crate) trait Wire: Send + Sync + 'static {
    type Reader: AnswerReader + Send + 'static;

    fn url(endpoint: &ModelEndpoint) -> String;

    /// The headers that the protocol wants, its authentication included. Names in lower case.
    fn headers(endpoint: &ModelEndpoint) -> Vec<(String, HeaderValue)>;

    /// The body of the request. The same request gives the same bytes.
    ///
    /// # Errors
    /// Where a value has no JSON form.
    fn body(endpoint: &ModelEndpoint, request: &ModelRequest) -> Result<Vec<u8>, serde_json::Error>;

    /// Reads the answer to one request.
    fn reader(fold: AnswerFold) -> Self::Reader;

    /// The error in the body of an answer with an error status, if it is one of this protocol.
    fn error(body: &[u8]) -> Option<ProviderError>;

    /// True where a request must say how long its answer may be, so that the model's limit has to be known.
    const WANTS_OUTPUT_LIMIT: bool;

    /// Where the list of models is; `after` is the cursor of the page before, None for the beginning.
    fn models_url(endpoint: &ModelEndpoint, after: Option<&str>) -> String;
}

/// A path below a base URL, before the query that some gateways want at its end.
pub(crate) fn url_below(base_url: &str, path: &str) -> String {
    match base_url.split_once('?') {
        None => format!("{}{path}", base_url.trim_end_matches('/')),
        Some((base, query)) => format!("{}{path}?{query}", base.trim_end_matches('/')),
    }
}

/// Reads one answer, event by event.
pub(crate) trait AnswerReader {
    /// Takes an event and puts what a client should see into `out`. Unknown events are no error.
    ///
    /// # Errors
    /// [`ReadError`]; nothing more can be read then.
    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ModelStreamEvent>) -> Result<Reading, ReadError>;

    /// Takes an answer that came whole, as a JSON document instead of a stream.
    ///
    /// # Errors
    /// [`ReadError`], also where the document is no answer.
    fn document(&mut self, body: &[u8], out: &mut VecDeque<ModelStreamEvent>) -> Result<(), ReadError>;

    /// The whole answer; None where neither a finish reason nor an end marker has come.
    fn finish(self) -> Option<ModelAnswer>;
}

/// What an event means for the reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    GoesOn,
    /// The end marker has come.
    Done,
}

/// Why an answer cannot be read on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReadError {
    /// The provider says that it failed.
    Provider(ProviderError),
    /// It is not the protocol; the text says where it leaves it.
    Unreadable(String),
}

impl From<FoldError> for ReadError {
    fn from(error: FoldError) -> ReadError {
        ReadError::Unreadable(error.to_string())
    }
}
