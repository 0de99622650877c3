//! Creating and opening sessions.

use crate::{EventReceiver, SessionConfig, SessionHandle, SessionOpenError, SessionPorts};

/// Creates a session: stores an empty thread, freezes its context, takes the first epoch and starts the actor.
///
/// # Errors
/// [`SessionOpenError`]; nothing runs then.
pub async fn create_session(
    config: SessionConfig,
    ports: SessionPorts,
) -> Result<(SessionHandle, EventReceiver), SessionOpenError> {
    let _ = (config, ports);
    Err(SessionOpenError::UnknownContext { version: 0 })
}

/// Opens a stored session for writing: takes the next epoch, marks a turn that was found without an end as interrupted,
/// and starts the actor. The thread must be the one that was just loaded.
///
/// # Errors
/// [`SessionOpenError`]; nothing runs then.
pub async fn open_session(
    thread: peri_acp_types::Thread,
    config: SessionConfig,
    ports: SessionPorts,
) -> Result<(SessionHandle, EventReceiver), SessionOpenError> {
    let _ = (thread, config, ports);
    Err(SessionOpenError::UnknownContext { version: 0 })
}
