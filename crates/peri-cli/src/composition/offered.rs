//! What an endpoint offers, asked without a session.

use std::sync::Arc;

use peri_acp_types::ModelFailure;
use peri_acp_types::ports::{Clock, HttpTransport};
use peri_model::{ListedModel, ModelEndpoint, list_models};

use super::clock::SystemClock;
use super::http::ReqwestTransport;

/// The way to endpoints. Cheap: nothing is built before it is needed.
pub struct ModelAccess {
    http: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
}

impl ModelAccess {
    pub fn new() -> ModelAccess {
        ModelAccess { http: Arc::new(ReqwestTransport::default()), clock: Arc::new(SystemClock::start()) }
    }

    /// The endpoint's own list.
    ///
    /// # Errors
    /// Those of [`list_models`].
    pub async fn list(&self, endpoint: &ModelEndpoint) -> Result<Vec<ListedModel>, ModelFailure> {
        list_models(endpoint, self.http.clone(), self.clock.clone()).await
    }
}
