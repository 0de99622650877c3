//! An HTTP server by script, on hyper, over the loopback.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A request as the server heard it.
#[derive(Clone, Debug)]
pub struct Heard {
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The method of the message in it, or of the request itself.
    pub fn kind(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.method)
    }
}

/// An answer: status, headers, and a body as it comes.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: BoxStream<'static, Bytes>,
}

impl Answer {
    pub fn new(status: u16, kind: &str, body: impl Into<Bytes>) -> Answer {
        let body = body.into();
        Answer {
            status,
            headers: vec![("content-type", kind.to_owned())],
            body: futures::stream::once(async move { body }).boxed(),
        }
    }

    pub fn json(value: &Value) -> Answer {
        Answer::new(200, "application/json", value.to_string())
    }

    /// An event stream that is open until the sender is dropped.
    pub fn events() -> (mpsc::UnboundedSender<Bytes>, Answer) {
        let (tx, rx) = mpsc::unbounded();
        let headers = vec![("content-type", "text/event-stream; charset=utf-8".to_owned())];
        (tx, Answer { status: 200, headers, body: rx.boxed() })
    }

    pub fn with_header(mut self, name: &'static str, value: &str) -> Answer {
        self.headers.push((name, value.to_owned()));
        self
    }
}

type Handler = Box<dyn Fn(&Heard) -> Answer + Send + Sync>;

/// A server, and what it has heard. Gone when dropped.
pub struct HttpServer {
    pub url: String,
    heard: watch::Sender<Vec<Heard>>,
    _tasks: JoinSet<()>,
}

impl HttpServer {
    pub async fn start(handler: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let heard = watch::Sender::<Vec<Heard>>::default();
        let handler: Arc<Handler> = Arc::new(Box::new(handler));
        let mut tasks = JoinSet::new();
        let noted = heard.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (handler, noted) = (handler.clone(), noted.clone());
                let service =
                    hyper::service::service_fn(move |request| answer(request, handler.clone(), noted.clone()));
                let serving =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
                connections.spawn(async move { drop(serving.await) });
            }
        });
        HttpServer { url, heard, _tasks: tasks }
    }

    pub fn all(&self) -> Vec<Heard> {
        self.heard.borrow().clone()
    }

    /// Waits until it has heard `count` requests of that kind, and returns the last.
    pub async fn hears(&self, kind: &str, count: usize) -> Heard {
        let mut heard = self.heard.subscribe();
        let of_kind = |heard: &[Heard]| heard.iter().filter(|heard| heard.kind() == kind).count();
        let heard = heard.wait_for(|heard| of_kind(heard) >= count).await.unwrap();
        heard.iter().filter(|heard| heard.kind() == kind).nth(count - 1).cloned().unwrap()
    }
}

async fn answer(
    request: Request<Incoming>,
    handler: Arc<Handler>,
    noted: watch::Sender<Vec<Heard>>,
) -> Result<Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>, Infallible> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("?").to_owned())).collect();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let heard = Heard { method: parts.method.to_string(), headers, body };
    noted.send_modify(|all| all.push(heard.clone()));
    let answer = handler(&heard);
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(StreamBody::new(answer.body.map(|chunk| Ok(Frame::data(chunk))).boxed())).unwrap())
}
