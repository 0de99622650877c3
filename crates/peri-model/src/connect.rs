//! From an endpoint to a model: picks the protocol, and joins endpoint, transport and clock.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, future, stream};
use peri_acp_types::ModelFailureKind;
use peri_acp_types::ports::{Clock, HeaderValue, HttpMethod, HttpRequest, HttpTransport};

use crate::anthropic::AnthropicMessages;
use crate::exchange::Exchange;
use crate::failure::{FailureContext, Progress};
use crate::fold::{AnswerFold, CallIds};
use crate::wire::Wire;
use crate::{LanguageModel, ModelEndpoint, ModelLimits, ModelProtocol, ModelRequest, ModelStream, ModelStreamEvent};

const USER_AGENT: &str = concat!("peri/", env!("CARGO_PKG_VERSION"));

/// Tokens of the context window of a model of which nobody says anything.
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;

/// The model at that endpoint. Nothing is sent before a stream is read.
pub fn connect(endpoint: ModelEndpoint, http: Arc<dyn HttpTransport>, clock: Arc<dyn Clock>) -> Arc<dyn LanguageModel> {
    match endpoint.protocol {
        ModelProtocol::AnthropicMessages => Arc::new(HttpModel::<AnthropicMessages>::new(endpoint, http, clock)),
    }
}

/// A model that is reached over HTTP by the protocol `W`.
struct HttpModel<W> {
    name: String,
    endpoint: ModelEndpoint,
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
    wire: PhantomData<fn() -> W>,
}

impl<W: Wire> HttpModel<W> {
    fn new(endpoint: ModelEndpoint, http: Arc<dyn HttpTransport>, clock: Arc<dyn Clock>) -> HttpModel<W> {
        let name = format!("{}/{}", endpoint.provider, endpoint.model);
        HttpModel { name, endpoint, http, clock, wire: PhantomData }
    }

    fn headers(&self) -> Vec<(String, HeaderValue)> {
        let plain = |name: &str, value: &str| (name.to_owned(), HeaderValue::Plain(value.to_owned()));
        let mut headers = vec![
            plain("content-type", "application/json"),
            plain("accept", "text/event-stream"),
            plain("user-agent", USER_AGENT),
        ];
        headers.extend(W::headers(&self.endpoint));
        // A configured header takes the place of ours: two of one name mean different things to different servers.
        headers.retain(|(ours, _)| !self.endpoint.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(ours)));
        headers.extend(self.endpoint.headers.iter().cloned());
        headers
    }
}

impl<W: Wire> LanguageModel for HttpModel<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits {
            context_window: self.endpoint.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_output_tokens: self.endpoint.max_output_tokens,
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let url = W::url(&self.endpoint);
        let failures = FailureContext::new(&self.endpoint, &self.name, &url);
        let body = match W::body(&self.endpoint, &request) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                let message = format!("the request cannot be written: {error}");
                let failure = failures.failure(ModelFailureKind::BadRequest, &message, Progress::default());
                return stream::once(future::ready(ModelStreamEvent::Failed(failure))).boxed();
            }
        };
        let reader = W::reader(AnswerFold::new(CallIds::for_answer(&request, self.clock.now_ms())));
        let request = HttpRequest { method: HttpMethod::Post, url, headers: self.headers(), body };
        let (http, clock) = (Arc::clone(&self.http), Arc::clone(&self.clock));
        Exchange::<W>::new(http, clock, self.endpoint.idle_timeout, failures, request, reader).into_stream()
    }
}
