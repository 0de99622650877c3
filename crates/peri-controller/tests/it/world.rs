//! A controller on fakes of all its ports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use peri_acp_types::ports::{
    ConfigDocument, ConfigPlace, ConfigRevision, ConfigSource, ConfigSourceError, ContextSource, HttpError,
    HttpRequest, HttpResponse, HttpTransport, McpConnectError, McpConnector, McpDuplex, McpServerSpec, NoFileHistory,
    PathResolver, ResolvedPath, TrustState, TrustStore, TrustVerdict, UserInteractionBroker,
};
use peri_acp_types::{ContextFacts, PermissionAnswer, PermissionRequest};
use peri_controller::{
    CommandLineOverlay, Controller, ControllerPorts, LiteParams, ModelConnector, Persistence, TakeOver,
};
use peri_model::{LanguageModel, ModelEndpoint};
use peri_testkit::fake_model::FakeModel;
use peri_testkit::fake_store::FakeStore;
use peri_testkit::runtime::{FakeIds, TokioClock, TokioSpawner};

pub const CWD: &str = "/project";

/// A controller and what it reaches.
pub struct World {
    pub controller: Controller,
    pub store: Arc<FakeStore>,
    pub model: FakeModel,
    /// The endpoint of each session that was put together.
    pub endpoints: Arc<Mutex<Vec<ModelEndpoint>>>,
    /// The servers that sessions asked for.
    pub servers: Arc<Mutex<Vec<McpServerSpec>>>,
}

/// Documents by place, and what is known of the workspace's trust.
pub struct Settings {
    pub user: &'static str,
    pub workspace: Option<&'static str>,
    pub trust: TrustState,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            user: r#"{"model": "mine/some-model",
                      "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#,
            workspace: None,
            trust: TrustState::NothingToTrust,
        }
    }
}

impl World {
    pub fn new(settings: Settings) -> World {
        let (store, model) = (Arc::new(FakeStore::new()), FakeModel::default());
        let (endpoints, servers) = (Arc::default(), Arc::default());
        let mut documents = BTreeMap::from([("user".to_owned(), settings.user)]);
        documents.extend(settings.workspace.map(|text| ("workspace".to_owned(), text)));
        let ports = ControllerPorts {
            clock: Arc::new(TokioClock::default()),
            ids: Arc::new(FakeIds::default()),
            spawner: Arc::new(TokioSpawner),
            store: store.clone(),
            persistence: Persistence::Kept,
            context: Arc::new(Nothing),
            config: Arc::new(Documents(documents)),
            trust: Arc::new(Trust(settings.trust)),
            http: Arc::new(Nothing),
            mcp: Arc::new(Servers(Arc::clone(&servers))),
            paths: Arc::new(Links),
            files: Arc::new(NoFileHistory),
            overlay: CommandLineOverlay::default(),
        };
        let models = Models { model: model.clone(), endpoints: Arc::clone(&endpoints) };
        World { controller: Controller::new(ports).with_models(Arc::new(models)), store, model, endpoints, servers }
    }
}

/// A session of the main agent, whose client refuses everything.
pub fn params(cwd: &str) -> LiteParams {
    LiteParams {
        agent: "main".to_owned(),
        cwd: cwd.to_owned(),
        offered_servers: Vec::new(),
        broker: Arc::new(Nothing),
        take_over: TakeOver::No,
    }
}

struct Models {
    model: FakeModel,
    endpoints: Arc<Mutex<Vec<ModelEndpoint>>>,
}

impl ModelConnector for Models {
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
        let model = self.model.clone().named(&format!("{}/{}", endpoint.provider, endpoint.model));
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).push(endpoint);
        Arc::new(model)
    }
}

/// Stands for ports that these tests do not use.
struct Nothing;

#[async_trait::async_trait]
impl UserInteractionBroker for Nothing {
    async fn request_permission(&self, _request: PermissionRequest) -> PermissionAnswer {
        PermissionAnswer::RejectOnce
    }
}

#[async_trait::async_trait]
impl ContextSource for Nothing {
    async fn pull(&self, _cwd: &str) -> (ContextFacts, Vec<String>) {
        (ContextFacts::default(), Vec::new())
    }
}

#[async_trait::async_trait]
impl HttpTransport for Nothing {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        Err(HttpError::Invalid(request.url))
    }
}

struct Servers(Arc<Mutex<Vec<McpServerSpec>>>);

#[async_trait::async_trait]
impl McpConnector for Servers {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(server.clone());
        Err(McpConnectError::Unsupported { server: server.name.clone(), what: "servers" })
    }
}

struct Documents(BTreeMap<String, &'static str>);

#[async_trait::async_trait]
impl ConfigSource for Documents {
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
        let name = match place {
            ConfigPlace::User => "user",
            ConfigPlace::Workspace { .. } => "workspace",
            _ => return Ok(None),
        };
        Ok(self.0.get(name).map(|text| ConfigDocument {
            origin: format!("/{name}/settings.json"),
            bytes: text.as_bytes().to_vec(),
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

struct Trust(TrustState);

#[async_trait::async_trait]
impl TrustStore for Trust {
    async fn verdict(&self, root: &str) -> Result<TrustVerdict, String> {
        let files = vec!["/workspace/settings.json".to_owned()];
        Ok(TrustVerdict { root: root.to_owned(), digest: "d".to_owned(), files, state: self.0 })
    }

    async fn grant(&self, _root: &str, _digest: &str) -> Result<(), String> {
        Ok(())
    }
}

/// `/link` leads to the project; besides it there is only `/elsewhere`.
struct Links;

#[async_trait::async_trait]
impl PathResolver for Links {
    async fn resolve(&self, _roots: &[String], cwd: &str, path: &str) -> ResolvedPath {
        let path = if path == "." { cwd } else { path };
        ResolvedPath { path: path.replace("/link", CWD), inside: true }
    }

    async fn is_directory(&self, path: &str) -> bool {
        path == CWD || path == "/elsewhere"
    }
}
