//! What client and agent have agreed on in `initialize`.
//!
//! Owns: the capabilities that are offered, and the gates that follow from the client's. Invariant: nothing is sent that
//! a gate here does not let through.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, ElicitationCapabilities, Implementation, InitializeRequest, InitializeResponse, McpCapabilities,
    PromptCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};

use crate::extension::{EVENTS_VERSION, InitializeRequestMeta, InitializeResponseMeta, from_meta, to_meta};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The gates of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Negotiated {
    pub events: Gate,
    pub notices: Gate,
    /// A form of an MCP server.
    pub forms: Gate,
    pub asking: Asking,
}

/// Whether something optional may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    Open,
    Shut,
}

/// Whether a person can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asking {
    Interactive,
    /// The client said that nobody is there.
    NobodyThere,
}

impl Gate {
    pub(crate) fn is_open(self) -> bool {
        self == Gate::Open
    }

    fn open_if(condition: bool) -> Gate {
        if condition { Gate::Open } else { Gate::Shut }
    }
}

impl Default for Negotiated {
    fn default() -> Negotiated {
        Negotiated { events: Gate::Shut, notices: Gate::Shut, forms: Gate::Shut, asking: Asking::Interactive }
    }
}

/// Agrees on what both understand.
///
/// # Errors
/// A `_meta.peri` of another form.
pub(crate) fn negotiate(request: &InitializeRequest) -> Result<(Negotiated, InitializeResponse), serde_json::Error> {
    let ours: Option<InitializeRequestMeta> = from_meta(request.meta.as_ref())?;
    let wants_events = ours.as_ref().and_then(|meta| meta.events).is_some_and(|version| version >= EVENTS_VERSION);
    let nobody_there = ours.as_ref().is_some_and(|meta| !meta.interactive);
    let session = request.client_capabilities.session.as_ref();
    let elicitation = request.client_capabilities.elicitation.as_ref();
    let negotiated = Negotiated {
        events: Gate::open_if(wants_events),
        notices: Gate::open_if(session.is_some_and(|session| session.notices.is_some())),
        forms: Gate::open_if(elicitation.is_some_and(ElicitationCapabilities::supports_form)),
        asking: if nobody_there { Asking::NobodyThere } else { Asking::Interactive },
    };
    let meta = InitializeResponseMeta { events: wants_events.then_some(EVENTS_VERSION), version: VERSION.to_owned() };
    let response = InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(offered())
        .agent_info(Implementation::new("peri", VERSION).title("Peri".to_owned()))
        .meta(to_meta(&meta));
    Ok((negotiated, response))
}

fn offered() -> AgentCapabilities {
    AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true))
        .session_capabilities(
            SessionCapabilities::new()
                .list(SessionListCapabilities::new())
                .resume(SessionResumeCapabilities::new())
                .close(SessionCloseCapabilities::new())
                .delete(SessionDeleteCapabilities::new()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(params: Value, expected: Option<Negotiated>) {
        let request: InitializeRequest = serde_json::from_value(params).expect("an initialize request");
        assert_eq!(negotiate(&request).ok().map(|(negotiated, _)| negotiated), expected);
    }

    #[test]
    fn a_client_that_says_nothing_gets_plain_acp() {
        check(json!({"protocolVersion": 1}), Some(Negotiated::default()));
    }

    #[test]
    fn gates_open_by_what_the_client_says() {
        check(
            json!({"protocolVersion": 1, "_meta": {"peri": {"events": 1, "interactive": false}}}),
            Some(Negotiated { events: Gate::Open, asking: Asking::NobodyThere, ..Negotiated::default() }),
        );
        check(
            json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}, "_meta": {"peri": {}}}),
            Some(Negotiated { notices: Gate::Open, ..Negotiated::default() }),
        );
        let elicitation = |modes: Value| json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": modes}});
        check(elicitation(json!({"form": {}})), Some(Negotiated { forms: Gate::Open, ..Negotiated::default() }));
        check(elicitation(json!({"url": {}})), Some(Negotiated::default()));
        check(json!({"protocolVersion": 1, "_meta": {"peri": {"events": 0}}}), Some(Negotiated::default()));
        check(
            json!({"protocolVersion": 1, "_meta": {"peri": {"events": 7}}}),
            Some(Negotiated { events: Gate::Open, ..Negotiated::default() }),
        );
    }

    #[test]
    fn a_malformed_extension_is_refused() {
        check(json!({"protocolVersion": 1, "_meta": {"peri": {"events": "all"}}}), None);
    }
}
