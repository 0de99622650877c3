//! One turn: Receive, Compact, Reason, Act, until Receive finds a reason to leave.
//!
//! Owns the thread while it runs. Invariants: Receive is the only exit, and the only place that takes input; nothing of a
//! failed attempt reaches the thread; the terminal event is sent in one place, last.

mod act;
mod compact;
mod reason;
mod receive;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::{
    AgentEvent, AgentId, AttemptId, CancellationToken, Message, MessageBody, MessageId, NoticeKind, SessionEvent,
    StoreError, Thread, ThreadChange, TurnError, TurnId, TurnOutcome, Usage,
};
use tokio::sync::watch;

use crate::change::ModelInUse;
use crate::core::SessionCore;
use crate::loop_guard::LoopGuard;
use crate::queue::InputQueue;
use receive::Received;

/// A turn under way.
pub(crate) struct Turn {
    core: Arc<SessionCore>,
    thread: Thread,
    turn_id: TurnId,
    /// The actor reads it, to judge a cancel.
    attempt: watch::Sender<AttemptId>,
    cancel: CancellationToken,
    /// The session's choice, as it stands.
    chosen: watch::Receiver<ModelInUse>,
    /// What this turn asks: the choice as it was when the turn was last free to follow it.
    asked: ModelInUse,
    /// Its own input waits there, and those that are to join it.
    queue: InputQueue,
    /// Set by a stage that cannot go on; Receive leaves with it.
    exit: Option<TurnOutcome>,
    guard: LoopGuard,
    /// Answers of the model in this turn.
    steps: u32,
    usage: Usage,
    /// The provider's figure for the last request of the session, and the bytes that came since.
    context: compact::ContextFigure,
    started: Duration,
}

/// A turn that has ended, and what that means for the session.
pub(crate) struct EndedTurn {
    pub thread: Thread,
    pub session: SessionAfterTurn,
}

/// Whether the session can take another turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionAfterTurn {
    GoesOn,
    /// Another process writes it now, or what is stored is not known.
    Lost,
}

/// Runs a turn to its end. The terminal event has been sent when this returns.
pub(crate) async fn run(mut turn: Turn) -> EndedTurn {
    loop {
        match turn.receive().await {
            Received::GoOn => {}
            Received::Leave(outcome) => return turn.finish(outcome).await,
        }
        turn.compact().await;
        let Some(answer) = turn.reason().await else { continue };
        turn.act(answer).await;
    }
}

impl Turn {
    pub(crate) fn new(
        core: Arc<SessionCore>,
        thread: Thread,
        turn_id: TurnId,
        queue: InputQueue,
        attempt: watch::Sender<AttemptId>,
        cancel: CancellationToken,
        chosen: watch::Receiver<ModelInUse>,
    ) -> Turn {
        let asked = chosen.borrow().clone();
        Turn {
            guard: LoopGuard::new(core.limits.loop_guard),
            context: compact::ContextFigure::of(&thread),
            started: core.ports.clock.monotonic(),
            core,
            thread,
            turn_id,
            queue,
            attempt,
            cancel,
            chosen,
            asked,
            exit: None,
            steps: 0,
            usage: Usage::default(),
        }
    }

    /// Sends an event of this turn, waiting for a slow client.
    async fn emit(&self, event: SessionEvent) {
        self.core.events.send(self.event(event)).await;
    }

    fn event(&self, event: SessionEvent) -> AgentEvent {
        AgentEvent {
            agent_id: AgentId::main(),
            turn_id: Some(self.turn_id),
            attempt_id: Some(*self.attempt.borrow()),
            event,
        }
    }

    async fn notice(&self, kind: NoticeKind, text: String) {
        self.emit(SessionEvent::Notice { kind, text }).await;
    }

    /// Stores the changes, then applies them here: the store and this thread follow the same reducer.
    async fn commit(&mut self, changes: &[ThreadChange]) -> Result<(), TurnError> {
        let (scope, ports) = (&self.core.scope, &self.core.ports);
        let now_ms = ports.clock.now_ms();
        let stored = ports.store.commit(scope.session_id, scope.session_epoch, changes, now_ms).await;
        stored.map_err(TurnError::Store)?;
        self.thread.apply_all(changes).map_err(|rule| TurnError::Store(StoreError::Rule(rule)))
    }

    fn message(&self, body: MessageBody) -> Message {
        let ports = &self.core.ports;
        Message { id: MessageId(ports.ids.uuid()), turn_id: self.turn_id, created_at_ms: ports.clock.now_ms(), body }
    }

    fn fail(&mut self, error: TurnError) {
        self.exit.get_or_insert(TurnOutcome::Interrupted(error));
    }
}
