//! Where a session's model comes from.

use std::sync::Arc;

use peri_acp_types::ports::{Clock, HttpTransport};
use peri_model::{LanguageModel, ModelEndpoint};

/// Gives the model that stands behind an endpoint.
pub trait ModelConnector: Send + Sync {
    /// Sends nothing yet: a wrong address shows at the first request.
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel>;
}

/// Models over HTTP: the ones that users have.
pub(crate) struct HttpModels {
    pub http: Arc<dyn HttpTransport>,
    pub clock: Arc<dyn Clock>,
}

impl ModelConnector for HttpModels {
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
        peri_model::connect(endpoint, self.http.clone(), self.clock.clone())
    }
}
