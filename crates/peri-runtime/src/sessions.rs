//! The session map.
//!
//! Invariant: between [`Runtime::reserve`] and the end of the reservation or the removal of the mapping, nobody else can
//! take the id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peri_acp_types::{CancellationToken, SessionEpoch, SessionId};
use peri_agent::{EventReceiver, SessionHandle};

use crate::StampedEvents;

/// The sessions that this process has open. Cheap to clone; all clones share one map.
#[derive(Clone, Default)]
pub struct Runtime {
    /// Held for a look or a change only, never over an await.
    sessions: Arc<Mutex<HashMap<SessionId, Mapping>>>,
}

enum Mapping {
    /// Somebody is opening it.
    Reserved,
    Open {
        handle: SessionHandle,
        drained: CancellationToken,
    },
}

/// The session is open in this process, or being opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("session {0} is open here already")]
pub struct AlreadyOpen(pub SessionId);

/// The right to open one session. Dropping it gives the id back.
#[must_use]
pub struct Reservation {
    runtime: Runtime,
    id: SessionId,
}

impl Runtime {
    /// Takes the id for an opening. Of two at once, one wins.
    ///
    /// # Errors
    /// [`AlreadyOpen`].
    pub fn reserve(&self, id: SessionId) -> Result<Reservation, AlreadyOpen> {
        let mut sessions = self.lock();
        if sessions.contains_key(&id) {
            return Err(AlreadyOpen(id));
        }
        sessions.insert(id, Mapping::Reserved);
        Ok(Reservation { runtime: self.clone(), id })
    }

    /// The session of that id; None while it is still being opened.
    pub fn find(&self, id: SessionId) -> Option<SessionHandle> {
        match self.lock().get(&id) {
            Some(Mapping::Open { handle, .. }) => Some(handle.clone()),
            Some(Mapping::Reserved) | None => None,
        }
    }

    /// All open sessions, in the order of their ids.
    pub fn open_sessions(&self) -> Vec<SessionHandle> {
        let mut handles: Vec<SessionHandle> = self
            .lock()
            .values()
            .filter_map(|mapping| match mapping {
                Mapping::Open { handle, .. } => Some(handle.clone()),
                Mapping::Reserved => None,
            })
            .collect();
        handles.sort_by_key(SessionHandle::session_id);
        handles
    }

    /// Resolves once every event of that opening has been pulled, or its reader is gone; at once where there is no such
    /// opening. Dropping the future has no effect.
    pub async fn drained(&self, id: SessionId, epoch: SessionEpoch) {
        let drained = match self.lock().get(&id) {
            Some(Mapping::Open { handle, drained }) if handle.session_epoch() == epoch => drained.clone(),
            Some(Mapping::Open { .. } | Mapping::Reserved) | None => return,
        };
        drained.cancelled().await;
    }

    /// Removes the mapping of that opening: the last step of a session's end. A later opening of the same id stays.
    pub fn remove(&self, id: SessionId, epoch: SessionEpoch) {
        let mut sessions = self.lock();
        let is_that_opening =
            matches!(sessions.get(&id), Some(Mapping::Open { handle, .. }) if handle.session_epoch() == epoch);
        if is_that_opening {
            sessions.remove(&id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Mapping>> {
        // A poisoned map is still in order: every change is one insert or one remove.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Maps the id to its session, and gives the session's events to their one reader.
    pub fn register(self, handle: SessionHandle, lane: EventReceiver) -> StampedEvents {
        let drained = CancellationToken::new();
        let events = StampedEvents::new(self.id, handle.session_epoch(), lane, drained.clone());
        self.runtime.lock().insert(self.id, Mapping::Open { handle, drained });
        events
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut sessions = self.runtime.lock();
        if matches!(sessions.get(&self.id), Some(Mapping::Reserved)) {
            sessions.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn of_two_openings_at_once_one_wins_and_a_given_up_one_frees_the_id() {
        let runtime = Runtime::default();
        let id = SessionId(Uuid::from_u128(1));
        let first = runtime.reserve(id).expect("the first one wins");
        assert_eq!(runtime.reserve(id).map(|_| ()), Err(AlreadyOpen(id)));
        assert!(runtime.find(id).is_none());
        drop(first);
        assert!(runtime.reserve(id).is_ok());
    }
}
