//! The way to a person over ACP: asks the client for permission, and shows it the forms of MCP servers.
//!
//! Must not: judge. Invariant: whatever goes wrong is an answer that refuses.

use std::sync::{Arc, Weak};

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, SessionUpdate,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use peri_acp_types::ports::UserInteractionBroker;
use peri_acp_types::{ElicitationAnswer, ElicitationRequest, PermissionAnswer, PermissionRequest, ToolLocation};
use serde_json::json;

use crate::connection::Connection;
use crate::extension::to_meta;
use crate::forms::Forms;
use crate::forward::send_update;
use crate::map::tool::{raw_input, shown_kind, shown_locations};
use crate::methods::ToClient;
use crate::negotiation::Asking;
use crate::transport::Outlet;

/// Asks the client of one connection, for one session.
pub(crate) struct AcpBroker {
    /// Weak: a session that is still being ended must not keep a connection that is over.
    connection: Weak<Connection>,
    client: ToClient,
    forms: Forms,
}

impl AcpBroker {
    pub(crate) fn new(connection: &Arc<Connection>, client: ToClient) -> AcpBroker {
        AcpBroker { connection: Arc::downgrade(connection), client: client.clone(), forms: Forms::new(client) }
    }
}

#[async_trait::async_trait]
impl UserInteractionBroker for AcpBroker {
    async fn request_permission(&self, request: PermissionRequest) -> PermissionAnswer {
        let unavailable = |why: &str| PermissionAnswer::Unavailable(why.to_owned());
        let Some(connection) = self.connection.upgrade() else { return unavailable("the client is gone") };
        if connection.negotiated().asking == Asking::NobodyThere {
            return unavailable("nobody is there to be asked");
        }
        let Some(desk) = connection.desk(request.session_id) else { return unavailable("the client left the session") };
        let outlet = Outlet::new(self.client.clone(), connection.backlog.clone());
        drop(connection);
        // A client must know the call before it is asked about it.
        let Some(locations) = desk.call_shown(&request.call.id).await else {
            return unavailable("the session has ended");
        };
        // Dropping this future tells the client that the question is withdrawn.
        let answer = match self.client.send_request(question(&request, &locations)).block_task().await {
            Ok(response) => answer(&response.outcome, &request.always_rules),
            Err(error) => PermissionAnswer::Unavailable(format!("the client could not be asked: {}", error.message)),
        };
        if matches!(answer, PermissionAnswer::AllowOnce | PermissionAnswer::AllowAlways) {
            // The question said that the call waits. A client that is gone needs no update.
            let _ = send_update(&outlet, request.session_id, runs_now(&request));
        }
        answer
    }

    async fn elicit(&self, request: ElicitationRequest) -> ElicitationAnswer {
        let Some(connection) = self.connection.upgrade() else { return ElicitationAnswer::Cancelled };
        let negotiated = connection.negotiated();
        drop(connection);
        if negotiated.asking == Asking::NobodyThere || !negotiated.forms.is_open() {
            return ElicitationAnswer::Cancelled;
        }
        self.forms.show(&request).await
    }
}

fn question(request: &PermissionRequest, locations: &[ToolLocation]) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new()
        .title(request.title.clone())
        .name(request.call.name.clone())
        .kind(shown_kind(request.kind))
        .status(ToolCallStatus::Pending)
        .locations(shown_locations(locations))
        .raw_input(raw_input(&request.call.arguments));
    let call = ToolCallUpdate::new(request.call.id.0.clone(), fields);
    RequestPermissionRequest::new(request.session_id.to_string(), call, options(&request.always_rules))
        .meta(to_meta(&json!({"reason": request.reason, "alwaysRules": request.always_rules})))
}

fn runs_now(request: &PermissionRequest) -> SessionUpdate {
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(request.call.id.0.clone(), fields))
}

/// What can be chosen. "Always" is there only where it would write a rule, and shows it.
fn options(always_rules: &[String]) -> Vec<PermissionOption> {
    let once = [Choice::AllowOnce, Choice::RejectOnce].as_slice();
    let all = [Choice::AllowOnce, Choice::AllowAlways, Choice::RejectOnce, Choice::RejectAlways].as_slice();
    let rules = always_rules.join(", ");
    let offered = if always_rules.is_empty() { once } else { all };
    offered.iter().map(|choice| choice.option(&rules)).collect()
}

/// An option that Peri offers.
#[derive(Clone, Copy)]
enum Choice {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

impl Choice {
    fn option(self, rules: &str) -> PermissionOption {
        let (name, kind) = match self {
            Choice::AllowOnce => ("Allow once".to_owned(), PermissionOptionKind::AllowOnce),
            Choice::AllowAlways => (format!("Always allow {rules}"), PermissionOptionKind::AllowAlways),
            Choice::RejectOnce => ("Reject".to_owned(), PermissionOptionKind::RejectOnce),
            Choice::RejectAlways => (format!("Always reject {rules}"), PermissionOptionKind::RejectAlways),
        };
        PermissionOption::new(self.id(), name, kind)
    }

    fn id(self) -> &'static str {
        match self {
            Choice::AllowOnce => "allow-once",
            Choice::AllowAlways => "allow-always",
            Choice::RejectOnce => "reject-once",
            Choice::RejectAlways => "reject-always",
        }
    }
}

/// What the client chose. An option that was not offered is no choice.
fn answer(outcome: &RequestPermissionOutcome, always_rules: &[String]) -> PermissionAnswer {
    let RequestPermissionOutcome::Selected(selected) = outcome else { return PermissionAnswer::Cancelled };
    match selected.option_id.0.as_ref() {
        "allow-once" => PermissionAnswer::AllowOnce,
        "reject-once" => PermissionAnswer::RejectOnce,
        "allow-always" if !always_rules.is_empty() => PermissionAnswer::AllowAlways,
        "reject-always" if !always_rules.is_empty() => PermissionAnswer::RejectAlways,
        other => PermissionAnswer::Unavailable(format!("the client chose `{other}`, which was not offered")),
    }
}
