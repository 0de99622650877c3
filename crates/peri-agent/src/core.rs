//! What an actor and its turn share.
//!
//! Invariant: nothing here changes while the session lives. What changes has one owner: the thread is the actor's or the
//! running turn's, the settings are the actor's.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::ports::SessionHold;
use peri_acp_types::{
    AgentEvent, AgentId, AttemptId, CommandSpec, SessionEvent, ToolSpec, TurnEnd, TurnError, TurnId, TurnOutcome, Usage,
};

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

    /// The terminal event of an input whose turn never began: nothing of it was asked of a model.
    pub(crate) async fn emit_end_of_input(&self, turn_id: TurnId, error: TurnError) {
        self.emit_end(turn_id, None, error).await;
    }

    /// The terminal event of a turn that could not send it by itself.
    pub(crate) async fn emit_end(&self, turn_id: TurnId, attempt_id: Option<AttemptId>, error: TurnError) {
        let end = TurnEnd {
            outcome: TurnOutcome::Interrupted(error),
            usage: Usage::default(),
            steps: 0,
            elapsed: Duration::ZERO,
        };
        let event = SessionEvent::TurnEnded(end);
        self.events.send(AgentEvent { agent_id: AgentId::main(), turn_id: Some(turn_id), attempt_id, event }).await;
    }
}
