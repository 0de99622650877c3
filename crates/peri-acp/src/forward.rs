//! The forwarder: pulls a session's events, one at a time, only while the client keeps up.
//!
//! Invariant: an event is pulled only when there is room for it, and its prompt is answered after it was queued.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{SessionNotification, SessionUpdate};
use peri_acp_types::SessionId;
use peri_acp_types::ports::Clock;
use peri_controller::StampedEvents;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::desk::SessionDesk;
use crate::extension::EVENT_METHOD;
use crate::map::view::{SessionView, Told};
use crate::transport::{ClientGone, Outlet};

/// Forwards until the session's events end.
///
/// # Errors
/// [`ClientGone`]; the session may still run, and its events go unheard from then on.
pub(crate) async fn forward(
    desk: &Arc<SessionDesk>,
    mut view: SessionView,
    outlet: &Outlet,
    clock: &dyn Clock,
    mut events: StampedEvents,
) -> Result<(), ClientGone> {
    loop {
        outlet.room().await?;
        let Some(envelope) = events.next().await else { return Ok(()) };
        for told in view.tell(&envelope, clock.now_ms()) {
            match told {
                Told::Update(update) => send_update(outlet, desk.id, *update)?,
                Told::Event(event) => outlet.send(EVENT_METHOD, params(&*event))?,
            }
        }
        desk.note(&envelope);
    }
}

pub(crate) fn send_update(outlet: &Outlet, session_id: SessionId, update: SessionUpdate) -> Result<(), ClientGone> {
    outlet.send("session/update", params(&SessionNotification::new(session_id.to_string(), update)))
}

/// Every value that is sent is a struct of plain data with text keys, so that it has a JSON object.
fn params(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(params)) => params,
        Ok(_) | Err(_) => Map::new(),
    }
}
