//! Serving one client over one transport, from its first byte to the end of its sessions.
//!
//! Invariant: when this returns, every session that the client had open was ended as far as the deadline allows, however
//! the connection came to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, FutureExt, select};
use peri_acp_types::ports::Clock;
use peri_controller::Controller;

use crate::connection::Connection;
use crate::methods;
use crate::transport::AgentSide;

/// How long the sessions of a client that went away may take to end.
const END_DEADLINE: Duration = Duration::from_secs(10);
/// How long a client may take to read what is still queued for it.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);

/// A connection that did not end in order. Its sessions were ended all the same.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client's transport broke: {0}")]
    Transport(#[from] io::Error),
    #[error("the connection broke: {0}")]
    Connection(String),
    /// Each line names a session and what is not known of it.
    #[error("sessions were not confirmed to have ended: {}", .0.join("; "))]
    Unsettled(Vec<String>),
}

/// Serves a client until it goes away; its sessions are then cancelled and closed. Dropping the future leaves them to
/// [`Controller::shutdown`].
///
/// # Errors
/// [`ServeError`], after the sessions have been ended.
pub async fn serve(controller: Controller, clock: Arc<dyn Clock>, side: AgentSide) -> Result<(), ServeError> {
    let connection = Arc::new(Connection::new(controller, clock.clone(), side.backlog.clone()));
    let served = methods::table(&connection).connect_with(side.channel, {
        let connection = connection.clone();
        async move |client| {
            client.incoming_closed().await;
            // Within the connection, so that turns that end now are still told to a client that only stopped sending.
            connection.end_sessions(END_DEADLINE).await;
            Ok(())
        }
    });
    let pump = side.pump.unwrap_or_else(|| std::future::ready(Ok(())).boxed());
    let (served, pumped) = match select(served.boxed(), pump).await {
        Either::Left((served, pump)) => (served, within(clock.as_ref(), pump).await),
        Either::Right((pumped, served)) => (served.await, pumped),
    };
    let unsettled = connection.end_sessions(END_DEADLINE).await;
    if !unsettled.is_empty() {
        return Err(ServeError::Unsettled(unsettled));
    }
    match pumped {
        Err(error) if !is_client_gone(&error) => return Err(error.into()),
        Err(_) | Ok(()) => {}
    }
    match served {
        // That the last words did not reach a client that is gone is no fault of the connection.
        Err(error) if !connection.backlog.is_client_gone() => Err(ServeError::Connection(error.message)),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// A client may go at any time; how its transport says so is no error.
fn is_client_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}

/// What is queued is written if the client reads it soon; if it does not, nobody waits for it.
async fn within(clock: &dyn Clock, pump: impl Future<Output = io::Result<()>> + Unpin) -> Result<(), io::Error> {
    match select(pump, clock.sleep(DRAIN_DEADLINE)).await {
        Either::Left((pumped, _)) => pumped,
        Either::Right(((), _)) => Err(io::Error::new(io::ErrorKind::TimedOut, "the client did not read")),
    }
}
