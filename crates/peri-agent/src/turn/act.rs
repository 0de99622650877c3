//! Act: runs the calls of an answer and commits the answer with all its results, in one transaction.
//!
//! Invariant: every call gets exactly one result, whatever happens to it.

use futures::{FutureExt, StreamExt, stream};
use peri_acp_types::{
    AssistantMessage, MessageBody, ModelStop, NoticeKind, SessionEvent, StopReason, ThreadChange, ToolArguments,
    ToolCall, ToolOutput, ToolResult, ToolSpec, TurnOutcome,
};
use peri_model::ModelAnswer;

use super::Turn;
use crate::describe::call_started;
use crate::loop_guard::LoopVerdict;
use crate::{CallVerdict, PendingCall};

impl Turn {
    pub(super) async fn act(&mut self, answer: ModelAnswer) {
        let message = AssistantMessage {
            model: self.asked.model.name().to_owned(),
            parts: answer.parts,
            stop: answer.stop,
            usage: answer.usage,
        };
        let calls: Vec<ToolCall> = message.calls().cloned().collect();
        let results = match answer.stop {
            // The last call may lack its end, and which one that is cannot be told.
            ModelStop::MaxTokens | ModelStop::Refusal => refuse_cut_off(&calls),
            ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::Other => self.run_calls(&calls).await,
        };
        self.commit_step(message, &results).await;
        if calls.is_empty() {
            self.exit.get_or_insert(TurnOutcome::Completed(stop_reason(answer.stop)));
        } else {
            self.guard_against_loops(&calls, &results).await;
        }
    }

    /// Read-only calls that stand side by side run side by side; any other runs alone, in its place.
    async fn run_calls(&self, calls: &[ToolCall]) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        for group in calls.chunk_by(|left, right| self.is_read_only(left) && self.is_read_only(right)) {
            let width = self.core.limits.parallel_calls.max(1);
            // Boxed: the compiler cannot see that a lazily mapped future of borrowed calls is Send.
            let runs: Vec<_> = group.iter().map(|call| self.run_call(call).boxed()).collect();
            let group: Vec<ToolResult> = stream::iter(runs).buffered(width).collect().await;
            results.extend(group);
        }
        results
    }

    async fn run_call(&self, call: &ToolCall) -> ToolResult {
        let output = match self.find_tool(call) {
            Ok(spec) => {
                self.emit(call_started(call, spec, &self.core.scope.cwd)).await;
                self.judge_and_run(call, spec).await
            }
            Err(output) => output,
        };
        self.emit(SessionEvent::ToolCallFinished { id: call.id.clone(), output: output.clone() }).await;
        ToolResult { call_id: call.id.clone(), output }
    }

    fn find_tool(&self, call: &ToolCall) -> Result<&ToolSpec, ToolOutput> {
        let known = &self.core.tools;
        let Some(spec) = known.iter().find(|tool| tool.name == call.name) else {
            let names: Vec<&str> = known.iter().map(|tool| tool.name.as_str()).collect();
            return Err(ToolOutput::error(format!("There is no tool `{}`. Tools: {}.", call.name, names.join(", "))));
        };
        match &call.arguments {
            ToolArguments::Object(_) => Ok(spec),
            ToolArguments::Invalid { reason, .. } => Err(ToolOutput::error(format!(
                "The arguments of `{}` are not a JSON object ({reason}); the call was not run. Send it again.",
                call.name
            ))),
        }
    }

    async fn judge_and_run(&self, call: &ToolCall, spec: &ToolSpec) -> ToolOutput {
        if self.cancel.is_cancelled() {
            return ToolOutput::error("Not run: the user cancelled the turn before it started.");
        }
        let mut pending = PendingCall {
            session: self.core.scope.clone(),
            turn_id: self.turn_id,
            attempt_id: *self.attempt.borrow(),
            call: call.clone(),
            spec: spec.clone(),
            granted_paths: Vec::new(),
            hidden_paths: Vec::new(),
            notices: Vec::new(),
            cancel: self.cancel.clone(),
        };
        let judged = tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                return ToolOutput::error("Not run: the user cancelled the turn while permission was being asked.");
            }
            refusal = self.judge(&mut pending) => refusal,
        };
        for (kind, text) in std::mem::take(&mut pending.notices) {
            self.notice(kind, text).await;
        }
        if let Some(refusal) = judged {
            return refusal;
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                ToolOutput::error("Stopped: the user cancelled the turn. What the call did until then is not known.")
            }
            output = self.dispatch(&pending) => output,
        }
    }

    async fn judge(&self, pending: &mut PendingCall) -> Option<ToolOutput> {
        for middleware in &self.core.middlewares {
            middleware.resolve_call(pending).await;
        }
        for middleware in &self.core.middlewares {
            if let CallVerdict::Refuse(output) = middleware.before_call(pending).await {
                return Some(output);
            }
        }
        None
    }

    async fn dispatch(&self, pending: &PendingCall) -> ToolOutput {
        for middleware in &self.core.middlewares {
            if let Some(output) = middleware.run_call(pending).await {
                return output;
            }
        }
        ToolOutput::error(format!("The provider of `{}` is gone; the call was not run.", pending.call.name))
    }

    fn is_read_only(&self, call: &ToolCall) -> bool {
        self.core.tools.iter().any(|tool| tool.name == call.name && tool.read_only)
    }

    async fn commit_step(&mut self, message: AssistantMessage, results: &[ToolResult]) {
        let assistant = self.message(MessageBody::Assistant(message.clone()));
        let message_id = assistant.id;
        let results_message = (!results.is_empty()).then(|| self.message(MessageBody::ToolResults(results.to_vec())));
        match self.commit(&[ThreadChange::StepCommitted { assistant, results: results_message }]).await {
            Ok(()) => {
                self.emit(SessionEvent::StepCommitted { message_id, message, results: results.to_vec() }).await;
            }
            Err(error) => self.fail(error),
        }
    }

    async fn guard_against_loops(&mut self, calls: &[ToolCall], results: &[ToolResult]) {
        match self.guard.observe(calls, results) {
            LoopVerdict::Fine => {}
            LoopVerdict::Notice { repetitions } => {
                let text = format!(
                    "The last calls were made {repetitions} times with the same results. Making them again will not change \
                     that: try another way, or say what stands in the way and end."
                );
                let message = self.message(MessageBody::Notice(text));
                if let Err(error) = self.commit(&[ThreadChange::NoticeAdded { message }]).await {
                    self.fail(error);
                }
                self.notice(
                    NoticeKind::LoopGuard,
                    format!("the model repeats itself ({repetitions} times); it was told"),
                )
                .await;
            }
            LoopVerdict::Stop { repetitions } => {
                let text = format!("stopped: the same calls gave the same results {repetitions} times in a row");
                self.notice(NoticeKind::LoopGuard, text).await;
                self.exit.get_or_insert(TurnOutcome::Completed(StopReason::MaxTurnRequests));
            }
        }
    }
}

fn refuse_cut_off(calls: &[ToolCall]) -> Vec<ToolResult> {
    let words = "Not run: the answer was cut off before this call was certainly whole. Send it again, in smaller pieces if it is long.";
    calls.iter().map(|call| ToolResult { call_id: call.id.clone(), output: ToolOutput::error(words) }).collect()
}

fn stop_reason(stop: ModelStop) -> StopReason {
    match stop {
        ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::Other => StopReason::EndTurn,
        ModelStop::MaxTokens => StopReason::MaxTokens,
        ModelStop::Refusal => StopReason::Refusal,
    }
}
