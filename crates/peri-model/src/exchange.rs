//! One request and its answer: sends, waits, counts, and says how it ended.
//!
//! Knows HTTP and time, but no protocol's words: those are behind [`Wire`].
//! Invariant: [`Exchange::end`] is the only place that makes a terminal event, and with it the exchange is over.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{self, Either};
use futures::stream::{self, BoxStream};
use peri_acp_types::ports::{Clock, HttpError, HttpRequest, HttpResponse, HttpTransport};
use peri_acp_types::{ModelFailure, ModelFailureKind};

use crate::body::{BodyEnd, BodyReader};
use crate::failure::{self, FailureContext, Progress};
use crate::wire::{ReadError, Reading, Wire};
use crate::{ModelStream, ModelStreamEvent};

/// The longest answer that is read. Real ones stay under a megabyte.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;
/// The longest error body that is read, and how long it may take: the status has told the main thing already.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_ERROR_WAIT: Duration = Duration::from_secs(10);

type Body = BoxStream<'static, Result<Bytes, HttpError>>;

/// A request under way.
pub(crate) struct Exchange<W: Wire> {
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
    idle_timeout: Duration,
    failures: FailureContext,
    /// Events that are known but not taken yet: no more than one chunk of the body held.
    ready: VecDeque<ModelStreamEvent>,
    phase: Phase<W>,
    started: Duration,
    progress: Progress,
}

enum Phase<W: Wire> {
    Unsent(HttpRequest, W::Reader),
    Reading(Body, BodyReader<W::Reader>),
    Over,
}

/// What the body gave next.
enum Next {
    Bytes(Bytes),
    End,
    Broken(HttpError),
    Idle,
}

impl<W: Wire> Exchange<W> {
    pub(crate) fn new(
        http: Arc<dyn HttpTransport>,
        clock: Arc<dyn Clock>,
        idle_timeout: Duration,
        failures: FailureContext,
        request: HttpRequest,
        reader: W::Reader,
    ) -> Exchange<W> {
        Exchange {
            http,
            started: clock.monotonic(),
            clock,
            idle_timeout,
            failures,
            ready: VecDeque::new(),
            phase: Phase::Unsent(request, reader),
            progress: Progress::default(),
        }
    }

    /// The events. Nothing is sent before the first is asked for.
    pub(crate) fn into_stream(self) -> ModelStream {
        // Boxed, because the unfolding moves its state with every event.
        let exchange = Box::new(self);
        stream::unfold(exchange, |mut exchange| async move { exchange.next().await.map(|event| (event, exchange)) })
            .fuse()
            .boxed()
    }

    async fn next(&mut self) -> Option<ModelStreamEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Unsent(request, reader) => self.send(request, reader).await,
                Phase::Reading(body, reader) => self.read(body, reader).await,
                Phase::Over => return None,
            }
        }
    }

    async fn send(&mut self, request: HttpRequest, reader: W::Reader) {
        self.started = self.clock.monotonic();
        let http = Arc::clone(&self.http);
        match within(self.clock.as_ref(), self.idle_timeout, http.send(request)).await {
            None => self.fail(ModelFailureKind::IdleTimeout, &format!("no answer for {:?}", self.idle_timeout)),
            Some(Err(error)) => {
                let failure = self.failures.not_sent(&error, self.progress());
                self.end(ModelStreamEvent::Failed(failure));
            }
            Some(Ok(response)) => {
                self.progress.status = Some(response.status);
                if response.status == 200 {
                    let reader = BodyReader::new(reader, response.header("content-type"));
                    self.phase = Phase::Reading(response.body, reader);
                } else {
                    self.refused(response).await;
                }
            }
        }
    }

    async fn read(&mut self, mut body: Body, mut reader: BodyReader<W::Reader>) {
        let (end, note) = match next_bytes(self.clock.as_ref(), self.idle_timeout, &mut body).await {
            Next::Bytes(bytes) => {
                self.progress.received_bytes += bytes.len() as u64;
                if self.progress.received_bytes > MAX_ANSWER_BYTES {
                    let message = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
                    return self.fail(ModelFailureKind::Protocol, &message);
                }
                match reader.chunk(&bytes, &mut self.ready) {
                    Ok(Reading::GoesOn) => {
                        self.phase = Phase::Reading(body, reader);
                        return;
                    }
                    Ok(Reading::Done) => (reader.done(), String::new()),
                    Err(error) => (BodyEnd::Failed(error), String::new()),
                }
            }
            Next::End => (reader.finish(&mut self.ready), String::new()),
            Next::Broken(error) => (reader.interrupt(&mut self.ready), format!(": {error}")),
            Next::Idle => match reader.interrupt(&mut self.ready) {
                BodyEnd::Cut => {
                    let message = format!("no byte for {:?} on the open stream", self.idle_timeout);
                    return self.fail(ModelFailureKind::IdleTimeout, &message);
                }
                end => (end, String::new()),
            },
        };
        self.conclude(end, &note);
    }

    fn conclude(&mut self, end: BodyEnd, note: &str) {
        match end {
            BodyEnd::Answer(answer) => self.end(ModelStreamEvent::Finished(answer)),
            BodyEnd::Cut => {
                self.fail(ModelFailureKind::Cut, &format!("the stream ended before the answer was whole{note}"));
            }
            BodyEnd::Failed(ReadError::Provider(told)) => self.fail(told.kind, &told.message),
            BodyEnd::Failed(ReadError::Unreadable(reason)) => self.fail(ModelFailureKind::Protocol, &reason),
            BodyEnd::SomethingElse(opening) => {
                let excerpt = self.failures.excerpt(&opening);
                let message = format!("the body is neither an event stream nor a message of the protocol: {excerpt}");
                self.fail(ModelFailureKind::Protocol, &message);
            }
        }
    }

    async fn refused(&mut self, response: HttpResponse) {
        let progress = self.progress();
        let failure = refusal::<W>(response, &self.failures, self.clock.as_ref(), progress, self.idle_timeout).await;
        self.end(ModelStreamEvent::Failed(failure));
    }

    fn fail(&mut self, kind: ModelFailureKind, message: &str) {
        let failure: ModelFailure = self.failures.failure(kind, message, self.progress());
        self.end(ModelStreamEvent::Failed(failure));
    }

    /// The terminal event: after all that is ready, and nothing after it.
    fn end(&mut self, terminal: ModelStreamEvent) {
        self.ready.push_back(terminal);
        self.phase = Phase::Over;
    }

    fn progress(&self) -> Progress {
        Progress { elapsed: self.clock.monotonic().saturating_sub(self.started), ..self.progress }
    }
}

/// What an answer with another status than 200 says, after `progress` so far.
pub(crate) async fn refusal<W: Wire>(
    mut response: HttpResponse,
    failures: &FailureContext,
    clock: &dyn Clock,
    progress: Progress,
    idle_timeout: Duration,
) -> ModelFailure {
    let begun = clock.monotonic();
    let mut body = Vec::new();
    let reading = async {
        // A body that breaks off has said what it has said.
        while let Some(Ok(bytes)) = response.body.next().await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
    };
    // Late words are done without.
    let _ = within(clock, idle_timeout.min(MAX_ERROR_WAIT), reading).await;
    let progress = Progress {
        status: Some(response.status),
        retry_after: failure::retry_after(&response, clock.now_ms()),
        received_bytes: body.len() as u64,
        elapsed: progress.elapsed + clock.monotonic().saturating_sub(begun),
    };
    failures.refused(response.status, W::error(&body), &body, response.header("location"), progress)
}

/// The next bytes of the body. Only bytes count as a sign of life.
async fn next_bytes(clock: &dyn Clock, idle_timeout: Duration, body: &mut Body) -> Next {
    let some_bytes = async {
        loop {
            match body.next().await {
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => return Next::Bytes(bytes),
                Some(Err(error)) => return Next::Broken(error),
                None => return Next::End,
            }
        }
    };
    within(clock, idle_timeout, some_bytes).await.unwrap_or(Next::Idle)
}

/// The future's value, unless the time passes first; then the future is dropped.
pub(crate) async fn within<T>(clock: &dyn Clock, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    // The future first: where a value is there, time does not matter.
    match future::select(pin!(future), clock.sleep(limit)).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(((), _)) => None,
    }
}
