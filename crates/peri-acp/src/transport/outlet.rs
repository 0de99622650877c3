//! The one way by which notifications leave: counted, so that a slow client holds whoever forwards events.

use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::{Client, UntypedMessage};
use serde_json::{Map, Value};

use super::Backlog;
use super::backlog::notification_weight;

/// The client does not read any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the client is gone")]
pub(crate) struct ClientGone;

/// Sends notifications on a connection.
#[derive(Clone)]
pub(crate) struct Outlet {
    connection: ConnectionTo<Client>,
    backlog: Arc<Backlog>,
}

impl Outlet {
    pub(crate) fn new(connection: ConnectionTo<Client>, backlog: Arc<Backlog>) -> Outlet {
        Outlet { connection, backlog }
    }

    /// Waits until another event may be sent. Dropping the future has no effect.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub(crate) async fn room(&self) -> Result<(), ClientGone> {
        self.backlog.room().await
    }

    /// Queues a notification behind everything that was queued before it. Does not wait.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub(crate) fn send(&self, method: &str, params: Map<String, Value>) -> Result<(), ClientGone> {
        // Added before it is queued: the other end may take it off at once.
        self.backlog.add(notification_weight(method, &params));
        let message = UntypedMessage { method: method.to_owned(), params: Value::Object(params) };
        self.connection.send_notification(message).map_err(|_| {
            self.backlog.client_gone();
            ClientGone
        })
    }
}
