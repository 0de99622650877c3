//! Putting a session together: settings, model, chain, definition, limits.

use std::sync::Arc;

use peri_acp_types::ports::{McpServerSpec, SessionHold, UserInteractionBroker};
use peri_acp_types::{NoticeKind, SessionId};
use peri_agent::{Middleware, Past, RetryPolicy, SessionConfig, SessionLimits};
use peri_config::{ConfigError, Resolution, Settings};
use peri_middlewares::chain::{ChainConfig, ChainPorts, production};
use peri_middlewares::mcp::ToolSchemaBudget;
use peri_middlewares::permission::PermissionPolicy;
use peri_model::Thinking;

use crate::definitions::definition;
use crate::local_rules::{LocalRules, offering_only_kept_rules};
use crate::models::{model_choices, model_endpoint};
use crate::servers::servers;
use crate::{ControllerError, ControllerPorts, LiteParams, ModelChoice, ModelConnector};

/// What a session will be made of.
pub(crate) struct Assembly {
    pub config: SessionConfig,
    pub models: Vec<ModelChoice>,
}

/// Reads settings and chooses everything. Opens nothing.
pub(crate) async fn assemble(
    ports: &ControllerPorts,
    models: &dyn ModelConnector,
    params: LiteParams,
    session_id: SessionId,
) -> Result<Assembly, ControllerError> {
    let cwd = canonical_cwd(ports, &params.cwd).await?;
    if !ports.paths.is_directory(&cwd).await {
        return Err(ControllerError::NoSuchCwd(params.cwd));
    }
    let resolution = peri_config::load(ports.config.as_ref(), ports.trust.as_ref(), &cwd, &ports.overlay).await?;
    let settings = &resolution.settings;
    let explained = |error: ConfigError| error.after_warnings(&resolution.diagnostics);
    let chosen = settings.chosen_model().map_err(explained)?;
    let model = settings.provider_for(chosen).map_err(explained)?;
    let roots = roots(ports, &cwd, settings).await;
    let mut notices: Vec<(NoticeKind, String)> =
        resolution.diagnostics.iter().map(|diagnostic| (NoticeKind::Configuration, diagnostic.to_string())).collect();
    let servers = servers(settings, params.offered_servers, &roots);
    notices.extend(servers.notices);
    Ok(Assembly {
        models: model_choices(settings, chosen),
        config: SessionConfig {
            session_id,
            parent: None,
            definition: definition(&params.agent, settings)?,
            limits: limits(settings),
            model: models.connect(model_endpoint(settings, model)),
            permission_mode: settings.permissions.mode,
            effort: settings.effort,
            middlewares: chain(ports, params.broker, servers.specs, &resolution, &cwd),
            cwd,
            roots,
            notices,
            hold: Arc::new(SessionHold::default()),
            past: Past::Own,
        },
    })
}

/// A working directory as sessions keep it: links resolved, so that one folder has one name.
pub(crate) async fn canonical_cwd(ports: &ControllerPorts, cwd: &str) -> Result<String, ControllerError> {
    if !cwd.starts_with('/') {
        return Err(ControllerError::RelativeCwd(cwd.to_owned()));
    }
    Ok(ports.paths.resolve(&[], cwd, ".").await.path)
}

/// The working directory, then what settings add to it.
async fn roots(ports: &ControllerPorts, cwd: &str, settings: &Settings) -> Vec<String> {
    let mut roots = vec![cwd.to_owned()];
    for directory in &settings.permissions.additional_directories {
        let root = ports.paths.resolve(&[], cwd, &directory.value).await.path;
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    roots
}

fn limits(settings: &Settings) -> SessionLimits {
    SessionLimits {
        max_turn_requests: settings.max_turns,
        max_output_tokens: settings.max_output_tokens,
        thinking: settings.thinking_budget.map_or(Thinking::Unset, Thinking::Budget),
        retry: RetryPolicy {
            max_attempts: settings.retry.max_attempts,
            first_delay: settings.retry.first_delay,
            max_delay: settings.retry.max_delay,
            max_retry_after: settings.retry.max_retry_after,
        },
        loop_guard: settings.loop_guard,
        ..SessionLimits::default()
    }
}

fn chain(
    ports: &ControllerPorts,
    broker: Arc<dyn UserInteractionBroker>,
    servers: Vec<McpServerSpec>,
    resolution: &Resolution,
    cwd: &str,
) -> Vec<Arc<dyn Middleware>> {
    let config = ChainConfig {
        permission: PermissionPolicy::from(&resolution.settings.permissions),
        servers,
        tool_schema_budget: ToolSchemaBudget(resolution.settings.mcp_tool_schema_budget),
    };
    let rule_sink = LocalRules::new(ports.config.clone(), resolution.trust.clone(), cwd);
    let chain_ports = ChainPorts {
        broker: offering_only_kept_rules(broker, &resolution.trust),
        paths: ports.paths.clone(),
        rule_sink: Arc::new(rule_sink),
        connector: ports.mcp.clone(),
        clock: ports.clock.clone(),
    };
    production(config, chain_ports)
}
