//! Reason: asks the model, attempt by attempt, until there is a whole answer or none to be had.

use futures::StreamExt;
use peri_acp_types::{AttemptId, ModelFailure, ModelFailureKind, SessionEvent, ToolKind, TurnError};
use peri_model::{ModelAnswer, ModelRequest, ModelStreamEvent, Thinking};

use super::{Turn, retry};
use crate::prompt::model_messages;

/// What an answer is asked for even where the window is full: the provider's own word on that is the better error.
const LEAST_OUTPUT_TOKENS: u32 = 1024;

/// How an attempt ended.
enum Attempt {
    Answer(ModelAnswer),
    Failed(ModelFailure),
    Cancelled,
}

impl Turn {
    /// None where the turn must leave: it was cancelled, or `exit` says why.
    pub(super) async fn reason(&mut self) -> Option<ModelAnswer> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failure = match self.attempt().await {
                Attempt::Answer(answer) => {
                    self.account(&answer).await;
                    return Some(answer);
                }
                Attempt::Cancelled => return None,
                Attempt::Failed(failure) => failure,
            };
            let random = self.core.ports.ids.random();
            let retry_in = retry::next_attempt_in(&self.core.limits.retry, &failure, attempts, random);
            self.emit(SessionEvent::AttemptFailed { failure: failure.clone(), retry_in }).await;
            let Some(wait) = retry_in else {
                self.fail(TurnError::Model(failure));
                return None;
            };
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return None,
                () = self.core.ports.clock.sleep(wait) => {}
            }
            self.attempt.send_replace(AttemptId(self.core.ports.ids.uuid()));
        }
    }

    async fn attempt(&mut self) -> Attempt {
        self.follow_the_choice();
        self.emit(SessionEvent::AttemptStarted).await;
        let mut stream = self.asked.model.stream(self.request());
        loop {
            let event = tokio::select! {
                biased;
                // Dropping the stream aborts the request.
                () = self.cancel.cancelled() => return Attempt::Cancelled,
                event = stream.next() => event,
            };
            let shown = match event {
                Some(ModelStreamEvent::Finished(answer)) => return Attempt::Answer(answer),
                Some(ModelStreamEvent::Failed(failure)) => return Attempt::Failed(failure),
                None => return Attempt::Failed(self.silent_end()),
                Some(ModelStreamEvent::TextDelta(text)) => SessionEvent::TextDelta(text),
                Some(ModelStreamEvent::ThoughtDelta(text)) => SessionEvent::ThoughtDelta(text),
                Some(ModelStreamEvent::ToolCallStarted { id, name }) => {
                    let kind =
                        self.core.tools.iter().find(|tool| tool.name == name).map_or(ToolKind::Other, |tool| tool.kind);
                    SessionEvent::ToolCallAnnounced { id, name, kind }
                }
            };
            tokio::select! {
                biased;
                // A client that does not read must not keep a turn from being cancelled; the text is void then.
                () = self.cancel.cancelled() => return Attempt::Cancelled,
                () = self.emit(shown) => {}
            }
        }
    }

    /// A turn that has no answer yet may ask another model: a user who sees one fail chooses the next. Later it may not:
    /// the thoughts of the answers so far are sealed for their model, and a provider that seals them refuses calls of the
    /// same turn without them.
    fn follow_the_choice(&mut self) {
        if self.steps == 0 {
            self.asked = self.chosen.borrow().clone();
        }
    }

    fn request(&self) -> ModelRequest {
        ModelRequest {
            system: self.core.system.clone(),
            tools: self.core.tools.clone(),
            messages: model_messages(self.thread.context(), self.asked.model.name()),
            max_output_tokens: self.max_output_tokens(),
            output_room: self.output_room(),
            thinking: self.asked.thinking,
        }
    }

    /// What was asked for, within what the model can give.
    fn max_output_tokens(&self) -> Option<u32> {
        let (asked, limit) = (self.core.limits.max_output_tokens, self.asked.model.limits().max_output_tokens);
        match (asked, limit) {
            (Some(asked), Some(limit)) => Some(asked.min(limit)),
            (asked, limit) => asked.or(limit),
        }
    }

    /// What the window has left, and never more than half of it: the input needs room too.
    fn output_room(&self) -> u32 {
        let least = match self.asked.thinking {
            Thinking::Unset | Thinking::Effort(_) => LEAST_OUTPUT_TOKENS,
            Thinking::Budget(budget) => budget.saturating_add(LEAST_OUTPUT_TOKENS),
        };
        let window = self.asked.model.limits().context_window;
        let left = window.saturating_sub(self.context_tokens());
        let figure = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
        figure(left).max(least).min(figure(window / 2)).max(1)
    }

    async fn account(&mut self, answer: &ModelAnswer) {
        self.steps += 1;
        self.usage.add(&answer.usage);
        let model = self.asked.model.name().to_owned();
        self.emit(SessionEvent::LlmCallEnd { model, usage: answer.usage }).await;
        let used_tokens = answer.usage.context_tokens();
        if used_tokens > 0 {
            let window_tokens = self.asked.model.limits().context_window;
            self.emit(SessionEvent::UsageUpdate { used_tokens, window_tokens }).await;
        }
    }

    /// A stream without a terminal event breaks the model edge's contract; it is never taken for success.
    fn silent_end(&self) -> ModelFailure {
        ModelFailure {
            kind: ModelFailureKind::Cut,
            model: self.asked.model.name().to_owned(),
            message: "the stream ended without a terminal event".to_owned(),
            status: None,
            retry_after: None,
            received_bytes: 0,
            elapsed: std::time::Duration::ZERO,
        }
    }
}
