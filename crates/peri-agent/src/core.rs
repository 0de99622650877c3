//! What an actor and its turn share.
//!
//! Invariant: nothing here changes while the session lives. What changes has one owner: the thread is the actor's or the
//! running turn's, the settings are the actor's.

use std::sync::Arc;

use peri_acp_types::ports::SessionHold;
use peri_acp_types::{AgentEvent, AgentId, CommandSpec, SessionEvent, ToolSpec};

use crate::{EventSender, Middleware, SessionLimits, SessionPorts, SessionScope};

/// What stays the same while a session lives: shared by the actor and its turn.
pub(crate) struct SessionCore {
    pub scope: SessionScope,
    pub limits: SessionLimits,
    pub middlewares: Vec<Arc<dyn Middleware>>,
    pub tools: Vec<ToolSpec>,
    pub commands: Vec<CommandSpec>,
    pub system: Vec<String>,
    pub ports: SessionPorts,
    pub events: EventSender,
    /// Kept for its life only.
    pub _hold: Arc<SessionHold>,
}

impl SessionCore {
    pub(crate) async fn emit_outside_turn(&self, event: SessionEvent) {
        self.events.send(AgentEvent { agent_id: AgentId::main(), turn_id: None, attempt_id: None, event }).await;
    }
}
