//! Waiting: for the head of an answer, and between the bytes of its body.

use std::time::Duration;

use futures::StreamExt;
use peri_acp_types::ModelFailureKind;
use peri_model::{ModelStream, ModelStreamEvent};
use peri_testkit::runtime::FakeClock;
use tokio::sync::mpsc;

use crate::endpoint::{IDLE, endpoint, hello, model};
use crate::transport::{Answer, Piece};

/// Polls once; the stream must have nothing to say.
#[track_caller]
fn assert_waits(stream: &mut ModelStream) {
    let next = futures::FutureExt::now_or_never(stream.next());
    assert!(next.is_none(), "{next:?}");
}

async fn failed(stream: &mut ModelStream, kind: ModelFailureKind) -> peri_acp_types::ModelFailure {
    match stream.next().await {
        Some(ModelStreamEvent::Failed(failure)) if failure.kind == kind => failure,
        other => panic!("no {kind:?}: {other:?}"),
    }
}

#[tokio::test]
async fn silence_instead_of_an_answer_is_bounded() {
    let (model, clock) = model(Answer::Silence);
    let mut stream = model.stream(hello());
    assert_waits(&mut stream);
    clock.advance(IDLE - Duration::from_millis(1));
    assert_waits(&mut stream);
    clock.advance(Duration::from_millis(1));
    let failure = failed(&mut stream, ModelFailureKind::IdleTimeout).await;
    assert_eq!((failure.status, failure.elapsed), (None, IDLE));
    assert!(stream.next().await.is_none());
}

/// A body whose chunks the test sends one by one.
struct OpenBody {
    chunks: mpsc::UnboundedSender<&'static str>,
    stream: ModelStream,
    clock: FakeClock,
}

fn open_body() -> OpenBody {
    use bytes::Bytes;
    use peri_acp_types::ports::{HttpError, HttpRequest, HttpResponse, HttpTransport};
    use std::sync::{Arc, Mutex};

    struct Once(Mutex<Option<mpsc::UnboundedReceiver<&'static str>>>);

    #[async_trait::async_trait]
    impl HttpTransport for Once {
        async fn send(&self, _request: HttpRequest) -> Result<HttpResponse, HttpError> {
            let chunks = self.0.lock().expect("unshared").take().expect("one request");
            let body = futures::stream::unfold(chunks, |mut chunks| async move {
                chunks.recv().await.map(|chunk| (Ok(Bytes::from(chunk)), chunks))
            });
            Ok(HttpResponse { status: 200, headers: vec![], body: body.boxed() })
        }
    }

    let (sender, receiver) = mpsc::unbounded_channel();
    let clock = FakeClock::manual();
    let http = Arc::new(Once(Mutex::new(Some(receiver))));
    let model = peri_model::connect(endpoint(), http, Arc::new(clock.clone()));
    OpenBody { chunks: sender, stream: model.stream(hello()), clock }
}

#[tokio::test]
async fn any_byte_starts_the_wait_anew_and_only_bytes_do() {
    let mut body = open_body();
    assert_waits(&mut body.stream);
    for sign_of_life in [": comment\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n", "d", "a"] {
        body.clock.advance(IDLE - Duration::from_secs(1));
        assert_waits(&mut body.stream);
        body.chunks.send(sign_of_life).expect("read");
        assert_waits(&mut body.stream);
    }
    body.clock.advance(IDLE - Duration::from_secs(1));
    body.chunks.send("").expect("read");
    assert_waits(&mut body.stream);
    body.clock.advance(Duration::from_secs(1));
    let failure = failed(&mut body.stream, ModelFailureKind::IdleTimeout).await;
    assert_eq!(failure.status, Some(200));
    assert!(body.chunks.is_closed(), "the connection is closed");
}

#[tokio::test]
async fn silence_after_the_finish_reason_is_the_end() {
    let mut body = open_body();
    body.chunks.send("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n").expect("read");
    assert_waits(&mut body.stream);
    body.clock.advance(IDLE);
    assert!(matches!(body.stream.next().await, Some(ModelStreamEvent::Finished(_))));
}

#[tokio::test]
async fn an_error_body_that_does_not_end_is_not_waited_for() {
    let body = vec![Piece::Bytes(b"{\"error\":".to_vec()), Piece::Silence];
    let (model, clock) = model(Answer::with(503, &[("retry-after", "3")], body));
    let mut stream = model.stream(hello());
    assert_waits(&mut stream);
    clock.advance(Duration::from_secs(10));
    let failure = failed(&mut stream, ModelFailureKind::Server).await;
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3)));
}
