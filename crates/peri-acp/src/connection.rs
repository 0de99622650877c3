//! One client's connection: what was negotiated, and which sessions it has open.
//!
//! Must not: hold what belongs to a session. Invariant: every session that this client opened and that may still run has
//! its desk here, so that none is forgotten when the client goes away.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::Error;
use peri_acp_types::SessionId;
use peri_acp_types::ports::Clock;
use peri_controller::{Controller, SessionFacts};

use crate::desk::SessionDesk;
use crate::errors::session_not_found;
use crate::map::session::named_session;
use crate::negotiation::Negotiated;
use crate::transport::Backlog;

/// Requests of a client that may be under way at once.
const MAX_IN_FLIGHT: usize = 256;

pub(crate) struct Connection {
    pub controller: Controller,
    pub clock: Arc<dyn Clock>,
    pub backlog: Arc<Backlog>,
    negotiated: Mutex<Negotiated>,
    /// Held for a look or a change only, never over an await.
    desks: Mutex<HashMap<SessionId, Arc<SessionDesk>>>,
    in_flight: AtomicUsize,
}

/// A request under way. Dropping it makes room for another.
pub(crate) struct InFlight {
    connection: Arc<Connection>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    pub(crate) fn new(controller: Controller, clock: Arc<dyn Clock>, backlog: Arc<Backlog>) -> Connection {
        Connection {
            controller,
            clock,
            backlog,
            negotiated: Mutex::default(),
            desks: Mutex::default(),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// Counts a request in; None where there are too many.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<InFlight> {
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let admitted = InFlight { connection: self.clone() };
        (before < MAX_IN_FLIGHT).then_some(admitted)
    }

    pub(crate) fn negotiated(&self) -> Negotiated {
        *self.negotiated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_negotiated(&self, negotiated: Negotiated) {
        *self.negotiated.lock().unwrap_or_else(PoisonError::into_inner) = negotiated;
    }

    pub(crate) fn desk(&self, id: SessionId) -> Option<Arc<SessionDesk>> {
        self.lock().get(&id).cloned()
    }

    /// The desk of the session that a request names.
    ///
    /// # Errors
    /// -32002 where it is not open on this connection.
    pub(crate) fn named_desk(&self, name: &str) -> Result<Arc<SessionDesk>, Error> {
        let id = named_session(name)?;
        let words = || format!("session {id} is not open on this connection; load or resume it first");
        self.desk(id).ok_or_else(|| session_not_found(name, &words()))
    }

    pub(crate) fn add_desk(&self, facts: &SessionFacts) -> Arc<SessionDesk> {
        let desk = Arc::new(SessionDesk::new(facts));
        self.lock().insert(desk.id, desk.clone());
        desk
    }

    /// Removes the desk of a session that is gone. A later opening's desk stays.
    pub(crate) fn remove_desk(&self, desk: &Arc<SessionDesk>) {
        let mut desks = self.lock();
        if desks.get(&desk.id).is_some_and(|known| Arc::ptr_eq(known, desk)) {
            desks.remove(&desk.id);
        }
    }

    /// Ends every session that this client has open. Returns what could not be confirmed, a line each.
    pub(crate) async fn end_sessions(&self, deadline: Duration) -> Vec<String> {
        let mut ids: Vec<SessionId> = self.lock().keys().copied().collect();
        ids.sort();
        self.controller.end_sessions(&ids, deadline).await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionDesk>>> {
        // A poisoned map is still in order: every change is one insert or one remove.
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
