//! "Always": keeps the rules that the user allowed or rejected for good in the workspace's local settings.
//!
//! Invariant: "always" is offered only where the rule will have its effect in the next session too.

use std::sync::Arc;

use peri_acp_types::ports::{ConfigSource, UserInteractionBroker};
use peri_acp_types::{ElicitationAnswer, ElicitationRequest, PermissionAnswer, PermissionRequest};
use peri_config::{PermissionRule, RuleList, WorkspaceTrust, add_local_rules};
use peri_middlewares::permission::RuleSink;

/// Writes for one workspace.
pub(crate) struct LocalRules {
    config: Arc<dyn ConfigSource>,
    trust: WorkspaceTrust,
    workspace: String,
}

impl LocalRules {
    pub(crate) fn new(config: Arc<dyn ConfigSource>, trust: WorkspaceTrust, workspace: &str) -> LocalRules {
        LocalRules { config, trust, workspace: workspace.to_owned() }
    }
}

#[async_trait::async_trait]
impl RuleSink for LocalRules {
    async fn keep(&self, list: RuleList, rules: &[PermissionRule]) -> Result<(), String> {
        let kept = add_local_rules(self.config.as_ref(), &self.trust, &self.workspace, list, rules).await;
        kept.map(drop).map_err(|error| error.to_string())
    }
}

/// The broker, which offers "always" only where the workspace's own rules count.
pub(crate) fn offering_only_kept_rules(
    broker: Arc<dyn UserInteractionBroker>,
    trust: &WorkspaceTrust,
) -> Arc<dyn UserInteractionBroker> {
    if trust.keeps_rules() { broker } else { Arc::new(OnceOnly { broker }) }
}

struct OnceOnly {
    broker: Arc<dyn UserInteractionBroker>,
}

#[async_trait::async_trait]
impl UserInteractionBroker for OnceOnly {
    async fn request_permission(&self, request: PermissionRequest) -> PermissionAnswer {
        self.broker.request_permission(PermissionRequest { always_rules: Vec::new(), ..request }).await
    }

    async fn elicit(&self, request: ElicitationRequest) -> ElicitationAnswer {
        self.broker.elicit(request).await
    }
}
