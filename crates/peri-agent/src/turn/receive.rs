//! Receive: takes input, checks for cancel, and is the only way out of a turn.

use peri_acp_types::{
    Content, MessageBody, SessionEvent, StopReason, StoreError, StoredTurnEnd, ThreadChange, TurnEnd, TurnError,
    TurnOutcome,
};

use crate::command::expanded;

use super::{EndedTurn, SessionAfterTurn, Turn};

/// What Receive decided.
pub(super) enum Received {
    GoOn,
    Leave(TurnOutcome),
}

impl Turn {
    /// Precedence: cancel, then what a stage left behind, then the limits.
    pub(super) async fn receive(&mut self) -> Received {
        if let Some(content) = self.input.take()
            && let Err(error) = self.accept(content).await
        {
            return Received::Leave(TurnOutcome::Interrupted(error));
        }
        if self.cancel.is_cancelled() {
            return Received::Leave(TurnOutcome::Interrupted(TurnError::Cancelled));
        }
        if let Some(outcome) = self.exit.take() {
            return Received::Leave(outcome);
        }
        match self.core.limits.max_turn_requests {
            Some(limit) if self.steps >= limit => Received::Leave(TurnOutcome::Completed(StopReason::MaxTurnRequests)),
            _ => Received::GoOn,
        }
    }

    /// Takes the input into the thread. Committed before anything else, even where a cancel has come already: it was
    /// accepted. Only a command that does not come to its end leaves nothing: there is no input then.
    async fn accept(&mut self, content: Vec<Content>) -> Result<(), TurnError> {
        let content = tokio::select! {
            biased;
            expanded = expanded(content, &self.core.commands, &self.core.middlewares) => expanded?,
            () = self.cancel.cancelled() => return Err(TurnError::Cancelled),
        };
        let was_untitled = self.thread.meta.title.is_none();
        let message = self.message(MessageBody::User(content));
        // A turn before whose end could not be stored is still open there, and no other could ever begin.
        let unended = self.thread.open_turn.map(|turn_id| {
            let end = StoredTurnEnd::Interrupted("its end could not be stored when it came".to_owned());
            ThreadChange::TurnEnded { turn_id, end }
        });
        let changes: Vec<ThreadChange> = unended.into_iter().chain([ThreadChange::InputAccepted { message }]).collect();
        self.commit(&changes).await?;
        self.emit(SessionEvent::TurnStarted).await;
        if let Some(title) = self.thread.meta.title.clone().filter(|_| was_untitled) {
            self.emit(SessionEvent::TitleChanged { title }).await;
        }
        Ok(())
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
