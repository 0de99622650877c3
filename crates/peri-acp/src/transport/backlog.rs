//! How much the agent is ahead of its client.
//!
//! Invariant: every frame that [`Outlet`](super::Outlet) queues is added here before, and taken off once, after the client
//! has it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::{RawJsonRpcMessage, RawJsonRpcParams, TransportFrame};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::ClientGone;

/// Bytes that may be queued before a session's forwarder waits.
pub(crate) const MAX_QUEUED: usize = 256 * 1024;

/// Counts bytes queued less bytes taken by the client.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Held for a change of the figures only, never over an await.
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    queued: usize,
    /// The highest that `queued` has been.
    highest: usize,
    client_gone: bool,
}

impl Backlog {
    /// Waits until there is room for another event. Dropping the future has no effect.
    ///
    /// # Errors
    /// [`ClientGone`] where nobody will read any more.
    pub(crate) async fn room(&self) -> Result<(), ClientGone> {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                if state.client_gone {
                    return Err(ClientGone);
                }
                if state.queued < MAX_QUEUED {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    pub(crate) fn add(&self, bytes: usize) {
        let mut state = self.lock();
        state.queued += bytes;
        state.highest = state.highest.max(state.queued);
    }

    pub(crate) fn take(&self, bytes: usize) {
        let mut state = self.lock();
        let was_full = state.queued >= MAX_QUEUED;
        state.queued = state.queued.saturating_sub(bytes);
        let has_room = state.queued < MAX_QUEUED;
        drop(state);
        if was_full && has_room {
            self.changed.notify_waiters();
        }
    }

    /// Frees everyone who waits: the client reads no more.
    pub(crate) fn client_gone(&self) {
        self.lock().client_gone = true;
        self.changed.notify_waiters();
    }

    /// True once the client reads no more.
    pub(crate) fn is_client_gone(&self) -> bool {
        self.lock().client_gone
    }

    /// The most that was ever queued, in bytes.
    #[cfg(test)]
    pub(crate) fn highest(&self) -> usize {
        self.lock().highest
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Figures are changed in one step each, so a poisoned lock holds true ones.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a frame counts for: notifications by their size, anything else nothing. Answers and requests to the client are
/// as many as the client's own requests and the running tool calls, and those have their own bounds.
pub(crate) fn frame_weight(frame: &TransportFrame) -> usize {
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) => match &notification.params {
            Some(RawJsonRpcParams::Object(params)) => notification_weight(&notification.method, params),
            Some(RawJsonRpcParams::Array(_)) | None => 0,
        },
        _ => 0,
    }
}

/// What a notification counts for: about the bytes of its JSON text. The same at either end of a transport.
pub(crate) fn notification_weight(method: &str, params: &Map<String, Value>) -> usize {
    // The connection itself sends this one, past the outlet: it is never added, so it must not be taken off.
    if method == "$/cancel_request" { 0 } else { method.len() + members_weight(params) }
}

/// Strings and keys as they are, anything else by a flat rate.
fn weight(value: &Value) -> usize {
    const FLAT: usize = 8;
    FLAT + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members_weight(members),
    }
}

fn members_weight(members: &Map<String, Value>) -> usize {
    members.iter().map(|(key, value)| key.len() + weight(value)).sum()
}
