//! One open session, as this connection sees it: prompts that wait for their turn's end, and calls that were shown.
//!
//! The forwarder writes, everyone else waits. Invariant: a prompt is answered once, after everything that came before its
//! turn's end has been queued for the client.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{PromptResponse, StopReason as ShownStop};
use peri_acp_types::{
    Envelope, SessionEpoch, SessionEvent, SessionId, StopReason, ToolCallId, ToolLocation, TurnEnd, TurnError, TurnId,
    TurnOutcome,
};
use peri_controller::{ModelChoice, SessionFacts};
use tokio::sync::Notify;

use crate::errors::{internal, turn_failed};
use crate::extension::to_meta;
use crate::map::extension::turn_ended;

/// An open session's desk on this connection.
pub(crate) struct SessionDesk {
    pub id: SessionId,
    pub epoch: SessionEpoch,
    /// What the client can choose from.
    pub models: Vec<ModelChoice>,
    /// Held for a look or a change only, never over an await.
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    prompts: HashMap<TurnId, Prompt>,
    /// Calls that the client knows to be whole and that have no end yet, with the files that they name.
    calls_shown: HashMap<ToolCallId, Vec<ToolLocation>>,
    cancelling: Cancelling,
    running: Option<TurnId>,
    /// No event will come any more.
    ended: bool,
}

/// Where a cancel of the client's is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Cancelling {
    #[default]
    Not,
    Wanted,
    Underway,
}

enum Prompt {
    Waiting(Responder<PromptResponse>),
    /// The turn was over before its prompt could wait for it.
    Ended(TurnEnd),
}

/// Where a turn is, for one who waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnStage {
    Running,
    Over,
}

impl SessionDesk {
    pub(crate) fn new(facts: &SessionFacts) -> SessionDesk {
        SessionDesk {
            id: facts.session_id,
            epoch: facts.session_epoch,
            models: facts.models.clone(),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Takes note of an event that has been queued for the client, and answers the prompt that it ends.
    pub(crate) fn note(&self, envelope: &Envelope) {
        let turn_id = envelope.event.turn_id;
        let mut state = self.lock();
        match &envelope.event.event {
            SessionEvent::TurnStarted => state.running = turn_id,
            SessionEvent::ToolCallStarted { call, locations, .. } => {
                state.calls_shown.insert(call.id.clone(), locations.clone());
            }
            SessionEvent::ToolCallFinished { id, .. } => {
                state.calls_shown.remove(id);
            }
            SessionEvent::TurnEnded(end) => {
                state.running = None;
                state.calls_shown.clear();
                if let Some(turn_id) = turn_id {
                    match state.prompts.remove(&turn_id) {
                        Some(Prompt::Waiting(responder)) => answer(responder, end),
                        Some(Prompt::Ended(_)) | None => {
                            state.prompts.insert(turn_id, Prompt::Ended(end.clone()));
                        }
                    }
                }
            }
            SessionEvent::AttemptStarted
            | SessionEvent::AttemptFailed { .. }
            | SessionEvent::TextDelta(_)
            | SessionEvent::ThoughtDelta(_)
            | SessionEvent::ToolCallAnnounced { .. }
            | SessionEvent::LlmCallEnd { .. }
            | SessionEvent::UsageUpdate { .. }
            | SessionEvent::StepCommitted { .. }
            | SessionEvent::TitleChanged { .. }
            | SessionEvent::SettingsChanged(_)
            | SessionEvent::InputSteered { .. }
            | SessionEvent::QueueChanged(_)
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::CompactionDelta { .. }
            | SessionEvent::CompactionEnded { .. }
            | SessionEvent::Rewound { .. }
            | SessionEvent::Notice { .. } => return,
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Answers the prompt when its turn has ended; at once if it has already.
    pub(crate) fn answer_at_end(&self, turn_id: TurnId, responder: Responder<PromptResponse>) {
        let mut state = self.lock();
        match state.prompts.remove(&turn_id) {
            Some(Prompt::Ended(end)) => answer(responder, &end),
            Some(Prompt::Waiting(_)) | None if state.ended => refuse(responder),
            Some(Prompt::Waiting(_)) | None => {
                state.prompts.insert(turn_id, Prompt::Waiting(responder));
            }
        }
    }

    /// Resolves when a prompt's turn runs or is over. Dropping the future has no effect.
    pub(crate) async fn turn_moves(&self, turn_id: TurnId) -> TurnStage {
        self.wait(|state| match state.prompts.get(&turn_id) {
            Some(Prompt::Waiting(_)) if state.running == Some(turn_id) => Some(TurnStage::Running),
            Some(Prompt::Waiting(_)) => None,
            Some(Prompt::Ended(_)) | None => Some(TurnStage::Over),
        })
        .await
    }

    /// Resolves when a prompt's turn is over. Dropping the future has no effect.
    pub(crate) async fn turn_over(&self, turn_id: TurnId) {
        self.wait(|state| (!matches!(state.prompts.get(&turn_id), Some(Prompt::Waiting(_)))).then_some(())).await;
    }

    /// Resolves when the call has been queued for the client, with the files that it names; None where it never will be.
    /// Dropping the future has no effect.
    pub(crate) async fn call_shown(&self, id: &ToolCallId) -> Option<Vec<ToolLocation>> {
        self.wait(|state| match state.calls_shown.get(id) {
            Some(locations) => Some(Some(locations.clone())),
            None => state.ended.then_some(None),
        })
        .await
    }

    /// Notes that the client wants its turn cancelled. True where nobody sees to that yet: the caller does, until
    /// [`SessionDesk::cancel_seen_to`] is true.
    pub(crate) fn want_cancel(&self) -> bool {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.cancelling, Cancelling::Wanted);
        before == Cancelling::Not
    }

    /// Takes up the cancel that is wanted. Calls before and after it are as many as the client likes, and are one.
    pub(crate) fn take_up_cancel(&self) {
        self.lock().cancelling = Cancelling::Underway;
    }

    /// True where no further cancel has been wanted since the last one was taken up.
    pub(crate) fn cancel_seen_to(&self) -> bool {
        let mut state = self.lock();
        let done = state.cancelling == Cancelling::Underway;
        if done {
            state.cancelling = Cancelling::Not;
        }
        done
    }

    /// No event will come any more: nobody waits in vain.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        for prompt in std::mem::take(&mut state.prompts).into_values() {
            if let Prompt::Waiting(responder) = prompt {
                refuse(responder);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    async fn wait<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(seen) = look(&self.lock()) {
                return seen;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failed answer means that the connection is over: there is nobody to tell.
fn answer(responder: Responder<PromptResponse>, end: &TurnEnd) {
    let stop = match &end.outcome {
        TurnOutcome::Completed(StopReason::EndTurn) => Ok(ShownStop::EndTurn),
        TurnOutcome::Completed(StopReason::MaxTokens) => Ok(ShownStop::MaxTokens),
        TurnOutcome::Completed(StopReason::MaxTurnRequests) => Ok(ShownStop::MaxTurnRequests),
        TurnOutcome::Completed(StopReason::Refusal) => Ok(ShownStop::Refusal),
        TurnOutcome::Interrupted(TurnError::Cancelled) => Ok(ShownStop::Cancelled),
        TurnOutcome::Interrupted(error) => Err(turn_failed(error, end)),
    };
    let response = stop.map(|stop| PromptResponse::new(stop).meta(to_meta(&turn_ended(end))));
    let _ = responder.respond_with_result(response);
}

fn refuse(responder: Responder<PromptResponse>) {
    let error =
        internal("the session ended before this input was run; load it and send the input again", "session-ended");
    let _ = responder.respond_with_error(error);
}
