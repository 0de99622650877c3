//! From an endpoint to a model: picks the protocol, and joins endpoint, transport and clock.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, future, stream};
use peri_acp_types::ModelFailureKind;
use peri_acp_types::ports::{Clock, HeaderValue, HttpMethod, HttpRequest, HttpTransport};

use crate::anthropic::AnthropicMessages;
use crate::exchange::Exchange;
use crate::failure::{FailureContext, Progress};
use crate::fold::{AnswerFold, CallIds};
use crate::models::{self, ListedModel};
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::wire::Wire;
use crate::{LanguageModel, ModelEndpoint, ModelLimits, ModelProtocol, ModelRequest, ModelStream, ModelStreamEvent};

const USER_AGENT: &str = concat!("peri/", env!("CARGO_PKG_VERSION"));

/// Tokens of the context window of a model of which nobody says anything.
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;
/// How long the endpoint may take to tell limits. Until then, and without an answer, the defaults hold.
const LEARNING_TIME: Duration = Duration::from_secs(5);

/// The model at that endpoint. Nothing is sent before a stream is read.
pub fn connect(endpoint: ModelEndpoint, http: Arc<dyn HttpTransport>, clock: Arc<dyn Clock>) -> Arc<dyn LanguageModel> {
    match endpoint.protocol {
        ModelProtocol::AnthropicMessages => Arc::new(HttpModel::<AnthropicMessages>::new(endpoint, http, clock)),
        ModelProtocol::OpenAiChat => Arc::new(HttpModel::<OpenAiChat>::new(endpoint, http, clock)),
        ModelProtocol::OpenAiResponses => Arc::new(HttpModel::<OpenAiResponses>::new(endpoint, http, clock)),
    }
}

/// The headers of every request to that endpoint, in the order: ours, the protocol's, the configured ones.
pub(crate) fn headers<W: Wire>(endpoint: &ModelEndpoint, accept: &str) -> Vec<(String, HeaderValue)> {
    let plain = |name: &str, value: &str| (name.to_owned(), HeaderValue::Plain(value.to_owned()));
    let mut headers =
        vec![plain("content-type", "application/json"), plain("accept", accept), plain("user-agent", USER_AGENT)];
    headers.extend(W::headers(endpoint));
    // A configured header takes the place of ours: two of one name mean different things to different servers.
    headers.retain(|(ours, _)| !endpoint.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(ours)));
    headers.extend(endpoint.headers.iter().cloned());
    headers
}

/// A model that is reached over HTTP by the protocol `W`.
struct HttpModel<W> {
    name: String,
    endpoint: ModelEndpoint,
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
    /// What the endpoint says of this model, once it was asked; None in it where it said nothing.
    learned: OnceLock<Option<ListedModel>>,
    wire: PhantomData<fn() -> W>,
}

impl<W: Wire> HttpModel<W> {
    fn new(endpoint: ModelEndpoint, http: Arc<dyn HttpTransport>, clock: Arc<dyn Clock>) -> HttpModel<W> {
        let name = format!("{}/{}", endpoint.provider, endpoint.model);
        HttpModel { name, endpoint, http, clock, learned: OnceLock::new(), wire: PhantomData }
    }

    /// Settings leave something open that matters here.
    fn has_to_learn(&self) -> bool {
        let output_is_open = W::WANTS_OUTPUT_LIMIT && self.endpoint.max_output_tokens.is_none();
        self.endpoint.context_window.is_none() || output_is_open
    }

    async fn learn(&self) {
        if !self.has_to_learn() || self.learned.get().is_some() {
            return;
        }
        let (http, clock) = (self.http.as_ref(), self.clock.as_ref());
        let listed = models::listed::<W>(&self.endpoint, http, clock, LEARNING_TIME).await;
        // An endpoint without a list is as good as any: the defaults hold. Who was asked at the same time says the same.
        let _ = self.learned.set(listed.ok().and_then(|models| models::of_model(models, &self.endpoint.model)));
    }
}

impl<W: Wire> LanguageModel for HttpModel<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        let learned = self.learned.get().and_then(Option::as_ref);
        let window = self.endpoint.context_window.or_else(|| learned?.context_window);
        // Where the wire needs no figure, none is better: routers reserve what a request could cost.
        let learned_output = learned.filter(|_| W::WANTS_OUTPUT_LIMIT).and_then(|listed| listed.max_output_tokens);
        ModelLimits {
            context_window: window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_output_tokens: self.endpoint.max_output_tokens.or(learned_output),
        }
    }

    fn learn_limits(&self) -> BoxFuture<'_, ()> {
        self.learn().boxed()
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
        let headers = headers::<W>(&self.endpoint, "text/event-stream");
        let request = HttpRequest { method: HttpMethod::Post, url, headers, body };
        let (http, clock) = (Arc::clone(&self.http), Arc::clone(&self.clock));
        Exchange::<W>::new(http, clock, self.endpoint.idle_timeout, failures, request, reader).into_stream()
    }
}
