//! What the controller is given once, by the composition root.

use std::sync::Arc;

use peri_acp_types::ports::{
    Clock, ConfigSource, ContextSource, HttpTransport, IdSource, McpConnector, PathResolver, Spawner, ThreadStore,
    TrustStore,
};
use peri_model::{LanguageModel, ModelEndpoint};

/// The ports of the process.
#[derive(Clone)]
pub struct ControllerPorts {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub spawner: Arc<dyn Spawner>,
    pub store: Arc<dyn ThreadStore>,
    pub context: Arc<dyn ContextSource>,
    pub config: Arc<dyn ConfigSource>,
    pub trust: Arc<dyn TrustStore>,
    pub http: Arc<dyn HttpTransport>,
    pub mcp: Arc<dyn McpConnector>,
    pub paths: Arc<dyn PathResolver>,
}

/// Gives the model that stands behind an endpoint.
pub trait ModelConnector: Send + Sync {
    /// Sends nothing yet: a wrong address shows at the first request.
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel>;
}

/// Models over HTTP: the ones that a user has.
pub struct HttpModels {
    pub http: Arc<dyn HttpTransport>,
    pub clock: Arc<dyn Clock>,
}

impl ModelConnector for HttpModels {
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
        peri_model::connect(endpoint, self.http.clone(), self.clock.clone())
    }
}
