//! Receive: takes input, checks for cancel, and is the only way out of a turn.

use peri_acp_types::{
    Content, InputState, MessageBody, SessionEvent, StopReason, StoreError, StoredTurnEnd, ThreadChange, TurnEnd,
    TurnError, TurnOutcome,
};

use crate::AcceptedInput;
use crate::command::expanded;
use crate::queue::ClaimedInput;

use super::{EndedTurn, SessionAfterTurn, Turn};

/// What Receive decided.
pub(super) enum Received {
    GoOn,
    Leave(TurnOutcome),
}

impl Turn {
    /// Precedence: cancel, then what a stage left behind, then the limits, then inputs that are to join the turn. An
    /// answer that would end it does not where such an input waits.
    pub(super) async fn receive(&mut self) -> Received {
        if let Err(error) = self.accept().await {
            return Received::Leave(TurnOutcome::Interrupted(error));
        }
        if self.cancel.is_cancelled() {
            return Received::Leave(TurnOutcome::Interrupted(TurnError::Cancelled));
        }
        let exit = self.exit.take();
        let may_go_on = matches!(exit, None | Some(TurnOutcome::Completed(StopReason::EndTurn)));
        let at_limit = self.core.limits.max_turn_requests.is_some_and(|limit| self.steps >= limit);
        if may_go_on && !at_limit {
            match self.take_in_steered().await {
                Ok(0) => {}
                // A cancel that came meanwhile finds the input in the turn that it cancels.
                Ok(_) if self.cancel.is_cancelled() => {
                    return Received::Leave(TurnOutcome::Interrupted(TurnError::Cancelled));
                }
                Ok(_) => return Received::GoOn,
                Err(error) => return Received::Leave(TurnOutcome::Interrupted(error)),
            }
        }
        match exit {
            Some(outcome) => Received::Leave(outcome),
            None if at_limit => Received::Leave(TurnOutcome::Completed(StopReason::MaxTurnRequests)),
            None => Received::GoOn,
        }
    }

    /// Takes the turn's own input into the thread, once.
    async fn accept(&mut self) -> Result<(), TurnError> {
        let Some(ClaimedInput { accepted, content }) = self.queue.claim(self.turn_id) else { return Ok(()) };
        let was_untitled = self.thread.meta.title.is_none();
        let committed = self.commit_input(content).await;
        self.queue.settle(&accepted.command_id, self.turn_id, state_after(&committed));
        committed?;
        self.emit(SessionEvent::TurnStarted).await;
        if let Some(title) = self.thread.meta.title.clone().filter(|_| was_untitled) {
            self.emit(SessionEvent::TitleChanged { title }).await;
        }
        Ok(())
    }

    /// Committed before anything else, even where a cancel has come already: it was accepted. Only a command that does
    /// not come to its end leaves nothing: there is no input then.
    async fn commit_input(&mut self, content: Vec<Content>) -> Result<(), TurnError> {
        let content = tokio::select! {
            biased;
            expanded = expanded(content, &self.core.commands, &self.core.middlewares) => expanded?,
            () = self.cancel.cancelled() => return Err(TurnError::Cancelled),
        };
        let message = self.message(MessageBody::User(content));
        // A turn before whose end could not be stored is still open there, and no other could ever begin.
        let unended = self.thread.open_turn.map(|turn_id| {
            let end = StoredTurnEnd::Interrupted("its end could not be stored when it came".to_owned());
            ThreadChange::TurnEnded { turn_id, end }
        });
        let changes: Vec<ThreadChange> = unended.into_iter().chain([ThreadChange::InputAccepted { message }]).collect();
        self.commit(&changes).await
    }

    /// Takes in what is to join the turn; gives how many did. One that cannot be committed has its own end at once, and
    /// the turn ends too: the store is not to be relied on.
    async fn take_in_steered(&mut self) -> Result<usize, TurnError> {
        let mut joined = 0;
        while let Some(ClaimedInput { accepted, content }) = self.queue.claim_steered() {
            let message = self.message(MessageBody::User(content));
            let committed = self.commit(&[ThreadChange::InputSteered { message }]).await;
            self.queue.settle(&accepted.command_id, self.turn_id, state_after(&committed));
            let AcceptedInput { turn_id: input, command_id } = accepted;
            if let Err(error) = committed {
                self.core.emit_end_of_input(input, error.clone()).await;
                return Err(error);
            }
            self.emit(SessionEvent::InputSteered { command_id, input }).await;
            joined += 1;
        }
        Ok(joined)
    }

    /// Records the end and sends the terminal event: here and nowhere else.
    pub(super) async fn finish(mut self, outcome: TurnOutcome) -> EndedTurn {
        let outcome = match self.record_end(&outcome).await {
            Ok(()) => outcome,
            Err(error) => TurnOutcome::Interrupted(error),
        };
        let session = match &outcome {
            TurnOutcome::Interrupted(TurnError::Store(StoreError::Fenced { .. })) => SessionAfterTurn::Lost,
            _ => SessionAfterTurn::GoesOn,
        };
        let elapsed = self.core.ports.clock.monotonic().saturating_sub(self.started);
        let end = TurnEnd { outcome, usage: self.usage, steps: self.steps, elapsed };
        self.emit(SessionEvent::TurnEnded(end)).await;
        EndedTurn { thread: self.thread, session }
    }

    async fn record_end(&mut self, outcome: &TurnOutcome) -> Result<(), TurnError> {
        // An input that could not be stored, or was none, has begun no turn; there is nothing to end.
        if self.thread.open_turn != Some(self.turn_id) {
            return Ok(());
        }
        let turn_id = self.turn_id;
        let (end, notice) = match outcome {
            TurnOutcome::Completed(reason) => (StoredTurnEnd::Completed(*reason), None),
            TurnOutcome::Interrupted(error) => {
                (StoredTurnEnd::Interrupted(error.to_string()), Some(word_to_model(error)))
            }
        };
        let mut changes = Vec::new();
        if let Some(text) = notice {
            let message = self.message(MessageBody::Notice(text.to_owned()));
            changes.push(ThreadChange::NoticeAdded { message });
        }
        changes.push(ThreadChange::TurnEnded { turn_id, end });
        self.commit(&changes).await
    }
}

/// Where an input is after its commit.
fn state_after(committed: &Result<(), TurnError>) -> InputState {
    match committed {
        Ok(()) => InputState::Delivered,
        Err(TurnError::Store(StoreError::Unknown(_))) => InputState::Unknown,
        Err(_) => InputState::Withdrawn,
    }
}

/// What a later turn's model should know of an interrupted one.
fn word_to_model(error: &TurnError) -> &'static str {
    match error {
        TurnError::Cancelled => "The user cancelled the turn at this point.",
        TurnError::Model(_) => "The turn ended at this point because the model could not be reached.",
        TurnError::Store(_) | TurnError::Internal(_) | TurnError::Command { .. } => {
            "The turn was cut short at this point by an error of Peri."
        }
    }
}
