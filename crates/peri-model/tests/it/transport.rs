//! An HTTP transport that answers what the test wrote down, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use futures::{StreamExt, stream};
use peri_acp_types::ports::{HttpError, HttpRequest, HttpResponse, HttpTransport};

/// What comes for one request.
pub enum Answer {
    Head {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<Piece>,
    },
    NoHead(HttpError),
    /// Neither head nor error.
    Silence,
}

/// A piece of a body. Without a last one that says otherwise the body ends in order.
pub enum Piece {
    Bytes(Vec<u8>),
    Break,
    /// Nothing more, and no end.
    Silence,
}

impl Answer {
    /// An event stream, delivered in chunks of that size.
    pub fn events(body: impl AsRef<[u8]>, chunk: usize) -> Answer {
        let pieces = body.as_ref().chunks(chunk.max(1)).map(|chunk| Piece::Bytes(chunk.to_vec())).collect();
        Answer::with(200, &[("content-type", "text/event-stream")], pieces)
    }

    pub fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
        Answer::with(status, headers, vec![Piece::Bytes(body.into())])
    }

    pub fn with(status: u16, headers: &[(&str, &str)], body: Vec<Piece>) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Answer::Head { status, headers, body }
    }
}

#[derive(Default)]
pub struct FakeTransport {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<HttpRequest>>,
}

impl FakeTransport {
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> FakeTransport {
        FakeTransport { answers: Mutex::new(answers.into_iter().collect()), requests: Mutex::default() }
    }

    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().expect("no test panicked here").clone()
    }
}

#[async_trait::async_trait]
impl HttpTransport for FakeTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.requests.lock().expect("no test panicked here").push(request);
        let answer =
            self.answers.lock().expect("no test panicked here").pop_front().expect("an answer was written down");
        match answer {
            Answer::Head { status, headers, body } => {
                let body = stream::iter(body).then(|piece| async move {
                    match piece {
                        Piece::Bytes(bytes) => Ok(Bytes::from(bytes)),
                        Piece::Break => Err(HttpError::Broken("reset by peer".to_owned())),
                        Piece::Silence => std::future::pending().await,
                    }
                });
                Ok(HttpResponse { status, headers, body: body.boxed() })
            }
            Answer::NoHead(error) => Err(error),
            Answer::Silence => std::future::pending().await,
        }
    }
}
