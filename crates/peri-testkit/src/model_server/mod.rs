//! A model's endpoint on a real socket, which does what the test wrote down and remembers what it was asked.
//!
//! Owns: a listener on a free port of 127.0.0.1, and a thread for it, so that a test may block while it is served.
//! Speaks all three protocols, each at its path, from one script.
//! Must not: answer anything but those paths and the list of models; what else is asked for is kept as unexpected.
//! Invariant: dropping the [`FakeModelServer`] ends its thread, listener and connections.

mod answer;
mod captured;
mod connection;
mod reply;
mod script;
mod script_file;
mod wire;

pub use answer::Answer;
pub use captured::CapturedRequest;
pub use reply::{Reply, Rest};
pub use script::Script;
pub use script_file::{ScriptFile, ScriptFileError};

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use peri_model::ModelProtocol;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::watched::Watched;
use crate::wire_invariants;

/// Where the list of models is. Asking for it is no request to a model: it does not count as one, nor as unexpected.
const MODELS_PATHS: [&str; 2] = ["/v1/models", "/models"];

/// A running endpoint.
pub struct FakeModelServer {
    address: SocketAddr,
    record: Arc<Watched<Record>>,
    /// Dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Record {
    /// Requests to the scripted path, in the order of their arrival.
    requests: Vec<CapturedRequest>,
    unexpected: Vec<CapturedRequest>,
    /// Requests for the list of models.
    listings: Vec<CapturedRequest>,
    connections: usize,
    /// Clients that went away before their answer was whole.
    hangups: usize,
}

impl FakeModelServer {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// Where there is no port or no thread to be had.
    pub fn start(script: impl Into<Script>) -> FakeModelServer {
        FakeModelServer::observed(script, |_| {})
    }

    /// As [`FakeModelServer::start`]; `observe` sees every request, the unexpected ones too, before it is answered.
    pub fn observed(
        script: impl Into<Script>,
        observe: impl Fn(&CapturedRequest) + Send + Sync + 'static,
    ) -> FakeModelServer {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener of ours");
        let address = listener.local_addr().expect("it is bound");
        let record = Arc::new(Watched::<Record>::default());
        let (stop, stopped) = oneshot::channel();
        let server = Server { script: script.into(), observe: Box::new(observe), record: Arc::clone(&record) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let thread = std::thread::spawn(move || runtime.block_on(serve(listener, Arc::new(server), stopped)));
        FakeModelServer { address, record, stop: Some(stop), thread: Some(thread) }
    }

    /// For the `baseUrl` of a provider that speaks Anthropic's protocol.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// For the `baseUrl` of a provider that speaks that protocol.
    pub fn base_url_for(&self, protocol: ModelProtocol) -> String {
        match protocol {
            ModelProtocol::AnthropicMessages => self.base_url(),
            ModelProtocol::OpenAiChat | ModelProtocol::OpenAiResponses => format!("{}/v1", self.base_url()),
        }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<CapturedRequest> {
        self.record.read(|record| record.requests.clone())
    }

    /// Their bodies.
    pub fn bodies(&self) -> Vec<Value> {
        self.requests().into_iter().map(|request| request.json).collect()
    }

    /// Requests to any other path or by another method.
    pub fn unexpected(&self) -> Vec<CapturedRequest> {
        self.record.read(|record| record.unexpected.clone())
    }

    /// Requests for the list of models.
    pub fn listings(&self) -> Vec<CapturedRequest> {
        self.record.read(|record| record.listings.clone())
    }

    /// Connections that were accepted.
    pub fn connections(&self) -> usize {
        self.record.read(|record| record.connections)
    }

    /// Resolves once that many requests have come.
    pub async fn requested(&self, count: usize) {
        self.record.until(|record| (record.requests.len() >= count).then_some(())).await;
    }

    /// Blocks the thread until that many requests have come.
    ///
    /// # Panics
    /// Where they do not come for a minute.
    #[track_caller]
    pub fn block_until_requested(&self, count: usize) {
        self.record.block_until("requests", |record| (record.requests.len() >= count).then_some(()));
    }

    /// Resolves once that many clients have gone away before their answer was whole.
    pub async fn hung_up(&self, count: usize) {
        self.record.until(|record| (record.hangups >= count).then_some(())).await;
    }

    /// Blocks the thread until that many clients have gone away before their answer was whole.
    ///
    /// # Panics
    /// Where they do not for a minute.
    #[track_caller]
    pub fn block_until_hung_up(&self, count: usize) {
        self.record.block_until("clients that hang up", |record| (record.hangups >= count).then_some(()));
    }

    /// Checks the requests of one session for the contract's invariants, and that nothing else was asked for.
    ///
    /// # Panics
    /// Where one is broken, with the place.
    #[track_caller]
    pub fn check_invariants(&self) {
        let unexpected = self.unexpected();
        assert!(unexpected.is_empty(), "unexpected requests: {unexpected:#?}");
        for protocol in [ModelProtocol::AnthropicMessages, ModelProtocol::OpenAiChat, ModelProtocol::OpenAiResponses] {
            let requests = self.requests().into_iter().filter(|request| request.protocol() == Some(protocol));
            let bodies: Vec<Value> = requests.map(|request| request.json).collect();
            wire_invariants::check_bodies_of(protocol, &bodies);
        }
    }
}

impl Drop for FakeModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened, and the test has seen its effect.
            let _ = thread.join();
        }
    }
}

/// What the connections share.
struct Server {
    script: Script,
    observe: Box<dyn Fn(&CapturedRequest) + Send + Sync>,
    record: Arc<Watched<Record>>,
}

impl Server {
    /// Keeps the request, and says what to do with it.
    fn steps_for(&self, request: CapturedRequest) -> Vec<reply::Step> {
        // What comes elsewhere is told so in some words.
        let protocol = request.protocol().unwrap_or(ModelProtocol::AnthropicMessages);
        self.reply_to(request).steps(protocol)
    }

    fn reply_to(&self, mut request: CapturedRequest) -> Reply {
        if request.method == "GET" && MODELS_PATHS.contains(&request.path_alone()) {
            self.record.update(|record| {
                request.number = record.listings.len();
                record.listings.push(request.clone());
            });
            return self.script.models();
        }
        let expected = request.method == "POST" && request.protocol().is_some();
        self.record.update(|record| {
            let requests = if expected { &mut record.requests } else { &mut record.unexpected };
            request.number = requests.len();
            requests.push(request.clone());
        });
        (self.observe)(&request);
        if expected {
            self.script.reply(&request)
        } else {
            Reply::status(404).error_body("not_found_error", &format!("there is nothing at {}", request.path))
        }
    }

    fn connected(&self) -> usize {
        self.record.update(|record| {
            record.connections += 1;
            record.connections
        })
    }

    fn hung_up(&self) {
        self.record.update(|record| record.hangups += 1);
    }
}

async fn serve(listener: std::net::TcpListener, server: Arc<Server>, mut stopped: oneshot::Receiver<()>) {
    let listener = TcpListener::from_std(listener).expect("a listener of ours");
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection::serve(stream, Arc::clone(&server)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
