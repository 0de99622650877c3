//! rmcp's HTTP client on the [`HttpTransport`] port.
//!
//! Invariants: a body is held up to a bound; configured headers, which may be secret, are kept here and shown nowhere; a
//! server that breaks its streams cannot make us ask again without pause.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderName, HeaderValue as WireValue};
use peri_acp_types::CancellationToken;
use peri_acp_types::ports::{Clock, HeaderValue, HttpError, HttpMethod, HttpRequest, HttpResponse, HttpTransport};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use super::super::redaction::Redaction;
use super::awaited::{Awaited, Events};
use super::bounded::{Bounded, MAX_EVENT};

/// The longest body that is one JSON message, in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// What is read of an error's body, in bytes.
const MAX_ERROR_BODY: usize = 2048;
/// Streams that are taken up again without a pause.
const FREE_RESUMPTIONS: u32 = 10;
const RESUMPTION_PAUSE: Duration = Duration::from_secs(1);

const SESSION_ID: &str = "mcp-session-id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

type Failure = StreamableHttpError<Fault>;

/// What went wrong, in words for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Fault(pub(super) String);

/// One server's client.
#[derive(Clone)]
pub(super) struct PortClient(Arc<Inner>);

struct Inner {
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
    /// As configured.
    headers: Vec<(String, HeaderValue)>,
    redaction: Redaction,
    /// An event was too long: no stream is taken up again, since it would come again.
    is_over_bound: Arc<AtomicBool>,
    resumptions: AtomicU32,
    /// Fires when nobody waits for an answer any more.
    closed: CancellationToken,
}

impl PortClient {
    pub(super) fn new(
        http: Arc<dyn HttpTransport>,
        clock: Arc<dyn Clock>,
        headers: Vec<(String, HeaderValue)>,
        redaction: Redaction,
        closed: CancellationToken,
    ) -> PortClient {
        let (is_over_bound, resumptions) = (Arc::default(), AtomicU32::new(0));
        PortClient(Arc::new(Inner { http, clock, headers, redaction, is_over_bound, resumptions, closed }))
    }

    async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            () = self.0.closed.cancelled() => Err(fault_of("the connection is closed".to_owned())),
        }
    }

    async fn send(&self, call: Call, custom: HashMap<HeaderName, WireValue>) -> Result<HttpResponse, Failure> {
        let plain = |value: &str| HeaderValue::Plain(value.to_owned());
        let mut headers = self.0.headers.clone();
        headers.push(("accept".to_owned(), plain(&format!("{JSON}, {EVENTS}"))));
        for (name, value) in
            [(SESSION_ID, call.session_id.as_deref()), ("last-event-id", call.last_event_id.as_deref())]
        {
            headers.extend(value.map(|value| (name.to_owned(), plain(value))));
        }
        if call.method == HttpMethod::Post {
            headers.push(("content-type".to_owned(), plain(JSON)));
        }
        // What rmcp adds: the protocol's version.
        let custom =
            custom.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), plain(value.to_str().ok()?))));
        headers.extend(custom);
        let request = HttpRequest { method: call.method, url: call.url.to_string(), headers, body: call.body };
        self.0.http.send(request).await.map_err(fault)
    }

    /// Sends a message and reads what is not a stream of its answer.
    async fn post(
        &self,
        call: Call,
        custom: HashMap<HeaderName, WireValue>,
        awaited: Option<Awaited>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let in_session = call.session_id.is_some();
        let response = self.send(call, custom).await?;
        let status = response.status;
        if status == 404 && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !(200..300).contains(&status) {
            return self.refusal(response, awaited).await;
        }
        let Some(awaited) = awaited else { return Ok(StreamableHttpPostResponse::Accepted) };
        let session_id = response.header(SESSION_ID).map(str::to_owned);
        match media_type(&response).as_deref() {
            Some(EVENTS) => {
                Ok(StreamableHttpPostResponse::Sse(awaited.without_strays(self.events(response)), session_id))
            }
            Some(JSON) => {
                let body = whole_body(response).await?;
                let message = serde_json::from_slice(&body)
                    .map_err(|error| fault_of(format!("its answer cannot be understood: {error}")))?;
                match awaited.answer(message) {
                    Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, session_id)),
                    None => Err(fault_of("its answer is for another request than it was sent".to_owned())),
                }
            }
            other => {
                let kind = other.unwrap_or("no type");
                Err(fault_of(format!("its answer (HTTP {status}) is neither JSON nor an event stream: {kind}")))
            }
        }
    }

    /// What a status that is no success means. Its body may be the protocol's own error.
    async fn refusal(
        &self,
        response: HttpResponse,
        awaited: Option<Awaited>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status;
        match status {
            401 => return Err(unauthorized(&response)),
            300..=399 => {
                return Err(fault_of(format!(
                    "it answered HTTP {status}: the URL has moved; configure the one it moved to"
                )));
            }
            _ => {}
        }
        let is_json = media_type(&response).as_deref() == Some(JSON);
        let body = beginning_of_body(response).await;
        if let Some(awaited) = awaited
            && is_json
            && let Ok(message @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
            && let Some(answer) = awaited.answer(message)
        {
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        let text = self.0.redaction.beginning(&String::from_utf8_lossy(&body));
        Err(fault_of(match text.trim() {
            "" => format!("it answered HTTP {status}"),
            text => format!("it answered HTTP {status}: {text}"),
        }))
    }

    fn events(&self, response: HttpResponse) -> Events {
        SseStream::from_bytes_stream(Bounded::new(response.body, self.0.is_over_bound.clone())).boxed()
    }

    /// Keeps a server from having us ask again and again.
    async fn pause_before_resumption(&self) {
        if self.0.resumptions.fetch_add(1, Ordering::Relaxed) >= FREE_RESUMPTIONS {
            self.0.clock.sleep(RESUMPTION_PAUSE).await;
        }
    }
}

/// A request to be.
struct Call {
    method: HttpMethod,
    url: Arc<str>,
    session_id: Option<Arc<str>>,
    last_event_id: Option<String>,
    body: Bytes,
}

impl StreamableHttpClient for PortClient {
    type Error = Fault;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth: Option<String>,
        custom_headers: HashMap<HeaderName, WireValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let awaited = Awaited::of(&message);
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let call = Call { method: HttpMethod::Post, url, session_id, last_event_id: None, body };
        self.unless_closed(self.post(call, custom_headers, awaited)).await
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session_id: Arc<str>,
        _auth: Option<String>,
        custom_headers: HashMap<HeaderName, WireValue>,
    ) -> Result<(), Failure> {
        let (method, session_id) = (HttpMethod::Delete, Some(session_id));
        let call = Call { method, url, session_id, last_event_id: None, body: Bytes::new() };
        match self.send(call, custom_headers).await?.status {
            // The server keeps its sessions to itself, or has ended this one already.
            404 | 405 | 200..=299 => Ok(()),
            status => Err(fault_of(format!("it answered HTTP {status}"))),
        }
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth: Option<String>,
        custom_headers: HashMap<HeaderName, WireValue>,
    ) -> Result<Events, Failure> {
        if self.0.is_over_bound.load(Ordering::Acquire) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if last_event_id.is_some() {
            self.pause_before_resumption().await;
        }
        let call = Call { method: HttpMethod::Get, url, session_id, last_event_id, body: Bytes::new() };
        let response = self.unless_closed(self.send(call, custom_headers)).await?;
        match (response.status, media_type(&response).as_deref()) {
            (200..=299, Some(EVENTS)) => Ok(self.events(response)),
            // Most servers have nothing to say of their own accord.
            (200..=299 | 405, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (401, _) => Err(unauthorized(&response)),
            (status, _) => Err(fault_of(format!("it answered HTTP {status}"))),
        }
    }
}

fn fault_of(words: String) -> Failure {
    StreamableHttpError::Client(Fault(words))
}

fn fault(error: HttpError) -> Failure {
    fault_of(error.to_string())
}

fn unauthorized(response: &HttpResponse) -> Failure {
    let challenge = response.header("www-authenticate").unwrap_or_default().to_owned();
    StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
}

/// The media type without its parameters, in lower case.
fn media_type(response: &HttpResponse) -> Option<String> {
    let value = response.header("content-type")?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

async fn beginning_of_body(mut response: HttpResponse) -> Vec<u8> {
    let mut body = Vec::new();
    // A body that breaks off is as good as what came of it.
    while let Some(Ok(chunk)) = response.body.next().await {
        body.extend(chunk.iter().take(MAX_ERROR_BODY - body.len()));
        if body.len() == MAX_ERROR_BODY {
            break;
        }
    }
    body
}

async fn whole_body(mut response: HttpResponse) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.body.next().await {
        let chunk = chunk.map_err(fault)?;
        if body.len() + chunk.len() > MAX_BODY {
            return Err(fault_of(format!("its answer is longer than {} MiB", MAX_BODY / 1024 / 1024)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

const _: () = assert!(MAX_EVENT >= MAX_BODY);
