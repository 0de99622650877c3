//! What a server may ask of the session: its roots, and a form for the person behind it. Sampling is not offered.
//!
//! Invariant: a form is shown only while a call of that server runs, and is withdrawn when none does any more or the
//! server takes it back.

#![expect(deprecated, reason = "the newest protocol drops roots; the servers of today ask for them")]

use std::sync::Arc;

use peri_acp_types::ports::UserInteractionBroker;
use peri_acp_types::{ElicitationAnswer, ElicitationRequest, SessionId};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation,
    ListRootsResult, ProtocolVersion, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::health::Health;

/// The method of a form whose schema rmcp does not know.
const ELICIT: &str = "elicitation/create";

/// Answers one server.
pub(super) struct SessionHandler {
    pub(super) server: String,
    pub(super) session_id: SessionId,
    /// Absolute.
    pub(super) roots: Vec<String>,
    pub(super) broker: Arc<dyn UserInteractionBroker>,
    pub(super) health: Arc<Health>,
    /// How many calls run at the server.
    pub(super) calls: watch::Receiver<usize>,
}

impl SessionHandler {
    async fn elicit(&self, message: String, schema: Value, context: RequestContext<RoleClient>) -> ElicitResult {
        let mut calls = self.calls.clone();
        let request = ElicitationRequest {
            session_id: self.session_id,
            server: self.server.clone(),
            message,
            schema: schema.clone(),
        };
        let answer = tokio::select! {
            biased;
            () = context.ct.cancelled() => ElicitationAnswer::Cancelled,
            // An error means that the connection is being closed.
            _idle = calls.wait_for(|running| *running == 0) => ElicitationAnswer::Cancelled,
            answer = self.broker.elicit(request) => answer,
        };
        match answer {
            ElicitationAnswer::Accepted(content) => {
                let content = Value::Object(with_defaults(content, &schema));
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            ElicitationAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}

impl ClientHandler for SessionHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        let mut config = ClientConfig::new(capabilities, Implementation::new("peri", env!("CARGO_PKG_VERSION")));
        // rmcp names its newest, which has no such handshake.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.iter().map(|root| Root::new(file_uri(root))).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Err(ErrorData::invalid_params("only forms can be shown", None));
        };
        let schema = serde_json::to_value(requested_schema)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(self.elicit(message, schema, context).await)
    }

    /// A form whose schema holds what rmcp does not know arrives here: the person's side may know it.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != ELICIT {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let params = request.params.unwrap_or_default();
        let is_form = params.get("mode").is_none_or(|mode| mode == "form");
        let message = params.get("message").and_then(Value::as_str);
        match (message, params.get("requestedSchema")) {
            (Some(message), Some(schema @ Value::Object(_))) if is_form => {
                let answer = self.elicit(message.to_owned(), schema.clone(), context).await;
                let answer =
                    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                Ok(CustomResult(answer))
            }
            _ => Err(ErrorData::invalid_params("not a form with a message and a schema", None)),
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.health.note_changed_tools();
    }
}

/// Fields that the person left out take what the schema gives for them.
fn with_defaults(mut content: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    content
}

/// An absolute path as URI: what is neither a letter, a digit nor one of a few marks is written as `%XX`.
fn file_uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let encode = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let encoded: String = path.bytes().map(encode).collect();
    format!("file://{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn roots_become_uris() {
        assert_eq!(file_uri("/home/me/a-b_c.d~"), "file:///home/me/a-b_c.d~");
        assert_eq!(file_uri("/a b/ü/100%#?"), "file:///a%20b/%C3%BC/100%25%23%3F");
    }

    #[test]
    fn defaults_fill_what_is_missing_only() {
        let schema = json!({"properties": {
            "name": {"type": "string", "default": "x"},
            "count": {"type": "integer", "default": 3},
            "free": {"type": "string"},
        }});
        let content = json!({"name": "given", "other": 1}).as_object().expect("an object").clone();
        let filled = Value::Object(with_defaults(content.clone(), &schema));
        assert_eq!(filled, json!({"name": "given", "other": 1, "count": 3}));
        assert_eq!(with_defaults(content.clone(), &json!({"properties": []})), content);
    }
}
