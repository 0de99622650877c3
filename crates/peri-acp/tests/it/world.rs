//! Everything around the protocol edge: real controller, runtime and agent; fakes of the ports.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::oneshot;
use peri_acp::{AgentSide, ServeError, in_process, serve};
use peri_acp_types::ports::{
    Clock, ConfigDocument, ConfigPlace, ConfigRevision, ConfigSource, ConfigSourceError, ContextSource, HttpError,
    HttpRequest, HttpResponse, HttpTransport, NoFileHistory, PathResolver, ResolvedPath, Spawner, TrustState,
    TrustStore, TrustVerdict,
};
use peri_acp_types::{ContextFacts, SessionId, Thread};
use peri_controller::{CommandLineOverlay, Controller, ControllerPorts, ModelConnector, Persistence};
use peri_model::{LanguageModel, ModelEndpoint};
use peri_testkit::acp_driver::AcpDriver;
use peri_testkit::fake_model::FakeModel;
use peri_testkit::fake_store::FakeStore;
use peri_testkit::runtime::{FakeIds, TokioClock, TokioSpawner};

use crate::workspace::FakeServers;

/// The working directory of every session that does not say another.
pub const CWD: &str = "/project";

/// A process that clients can connect to.
pub struct World {
    pub store: Arc<FakeStore>,
    settings: Arc<Mutex<String>>,
    controller: Controller,
    clock: Arc<dyn Clock>,
}

/// A client's connection as the agent sees it.
pub struct Served(oneshot::Receiver<Result<(), ServeError>>);

impl Served {
    /// How serving the client ended.
    pub async fn end(self) -> Result<(), ServeError> {
        tokio::time::timeout(Duration::from_secs(60), self.0)
            .await
            .expect("serving ends")
            .expect("serving is not dropped")
    }
}

impl World {
    /// Each session that is opened gets the next model.
    pub fn new(models: impl IntoIterator<Item = FakeModel>) -> World {
        World::with_settings(
            r#"{"model": "fake/model", "retry": {"firstDelaySeconds": 0.01},
                "providers": {"fake": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#,
            models,
        )
    }

    pub fn with_settings(settings: &str, models: impl IntoIterator<Item = FakeModel>) -> World {
        let store = Arc::new(FakeStore::new());
        let settings = Arc::new(Mutex::new(settings.to_owned()));
        let clock = Arc::new(TokioClock::default());
        let ports = ControllerPorts {
            clock: clock.clone(),
            ids: Arc::new(FakeIds::default()),
            spawner: Arc::new(TokioSpawner),
            store: store.clone(),
            persistence: Persistence::GoneWithTheProcess,
            context: Arc::new(NoContext),
            config: Arc::new(UserSettings(settings.clone())),
            trust: Arc::new(NothingToTrust),
            http: Arc::new(NoHttp),
            mcp: Arc::new(FakeServers),
            paths: Arc::new(PlainPaths),
            files: Arc::new(NoFileHistory),
            overlay: CommandLineOverlay::default(),
        };
        let models = Models(Mutex::new(models.into_iter().collect()));
        let controller = Controller::new(ports).with_models(Arc::new(models));
        World { store, settings, controller, clock }
    }

    /// A client in the same process.
    pub fn connect(&self) -> (AcpDriver, Served) {
        let (agent, client) = in_process();
        let (outgoing, incoming) = client.into_frames();
        (AcpDriver::new(outgoing, incoming), self.serve(agent))
    }

    /// Serves any transport.
    pub fn serve(&self, side: AgentSide) -> Served {
        let (ended, end) = oneshot::channel();
        let serving = serve(self.controller.clone(), self.clock.clone(), side);
        TokioSpawner.spawn(Box::pin(async move {
            let _ = ended.send(serving.await);
        }));
        Served(end)
    }

    /// What is read from now on.
    pub fn change_settings(&self, settings: &str) {
        settings.clone_into(&mut self.settings.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn thread(&self, session: &str) -> Thread {
        let id: SessionId = session.parse().expect("a session id");
        self.store.thread(id).expect("a stored session")
    }
}

struct Models(Mutex<VecDeque<FakeModel>>);

impl ModelConnector for Models {
    fn connect(&self, _endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Arc::new(next.expect("a model for this session"))
    }
}

struct UserSettings(Arc<Mutex<String>>);

#[async_trait::async_trait]
impl ConfigSource for UserSettings {
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
        Ok((*place == ConfigPlace::User).then(|| ConfigDocument {
            origin: "/home/settings.json".to_owned(),
            bytes: self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().into_bytes(),
            revision: ConfigRevision("1".to_owned()),
        }))
    }

    async fn write(
        &self,
        _place: &ConfigPlace,
        _expected: Option<&ConfigRevision>,
        _bytes: Vec<u8>,
    ) -> Result<ConfigRevision, ConfigSourceError> {
        Ok(ConfigRevision("2".to_owned()))
    }

    fn env(&self, _name: &str) -> Option<String> {
        None
    }
}

struct NothingToTrust;

#[async_trait::async_trait]
impl TrustStore for NothingToTrust {
    async fn verdict(&self, root: &str) -> Result<TrustVerdict, String> {
        Ok(TrustVerdict {
            root: root.to_owned(),
            digest: String::new(),
            files: Vec::new(),
            state: TrustState::NothingToTrust,
        })
    }

    async fn grant(&self, _root: &str, _digest: &str) -> Result<(), String> {
        Ok(())
    }
}

struct NoContext;

#[async_trait::async_trait]
impl ContextSource for NoContext {
    async fn pull(&self, _cwd: &str) -> (ContextFacts, Vec<String>) {
        (ContextFacts::default(), Vec::new())
    }
}

struct NoHttp;

#[async_trait::async_trait]
impl HttpTransport for NoHttp {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        Err(HttpError::Invalid(request.url))
    }
}

struct PlainPaths;

#[async_trait::async_trait]
impl PathResolver for PlainPaths {
    async fn resolve(&self, roots: &[String], cwd: &str, path: &str) -> ResolvedPath {
        let path = match path {
            "." => cwd.to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{cwd}/{path}"),
        };
        let inside = roots.iter().any(|root| path == *root || path.starts_with(&format!("{root}/")));
        ResolvedPath { path, inside }
    }
}
