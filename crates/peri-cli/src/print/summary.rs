//! What a run came to: the figures and the last answer, folded from what happens.
//!
//! Must not: write anything. Invariant: only committed steps count; what a failed attempt said leaves no trace.

use std::time::{Duration, Instant};

use peri_acp::extension::{NoticeKind, Outcome, StepPart, StopReason, TurnEnded, TurnFailureKind, Usage};

use super::happening::Happening;
use super::hints;
use crate::exit::{Exit, Failure, StopSignal};

/// A run so far.
pub struct Summary {
    started: Instant,
    /// When the request that is under way was sent.
    request_started: Option<Instant>,
    /// Time in requests to the model.
    api_time: Duration,
    /// Committed answers, for a run that has no terminal event.
    steps: u32,
    usage: Usage,
    last_text: String,
    /// Why the loop guard stopped the turn, if it did.
    loop_guard: Option<String>,
    end: Option<TurnEnded>,
}

impl Summary {
    /// A run that starts now.
    pub fn start() -> Summary {
        Summary {
            started: Instant::now(),
            request_started: None,
            api_time: Duration::ZERO,
            steps: 0,
            usage: Usage::default(),
            last_text: String::new(),
            loop_guard: None,
            end: None,
        }
    }

    pub fn observe(&mut self, happening: &Happening) {
        match happening {
            Happening::AttemptStarted => self.request_started = Some(Instant::now()),
            Happening::AttemptFailed { .. } => self.request_ended(),
            Happening::Answered { usage } => {
                self.request_ended();
                add(&mut self.usage, usage);
            }
            Happening::StepCommitted { message, .. } => {
                self.steps += 1;
                self.last_text = text_of(&message.parts);
            }
            Happening::Notice { kind: NoticeKind::LoopGuard, text } => self.loop_guard = Some(text.clone()),
            Happening::TurnEnded(end) => {
                self.request_ended();
                self.end = Some(end.clone());
            }
            Happening::Text(_)
            | Happening::Thought(_)
            | Happening::ToolAnnounced { .. }
            | Happening::ToolStarted { .. }
            | Happening::ToolFinished { .. }
            | Happening::Notice { .. } => {}
        }
    }

    fn request_ended(&mut self) {
        if let Some(started) = self.request_started.take() {
            self.api_time += started.elapsed();
        }
    }

    /// The last answer's text; empty before the first.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub fn api_time(&self) -> Duration {
        self.api_time
    }

    /// Answers of the model.
    pub fn steps(&self) -> u32 {
        self.end.as_ref().map_or(self.steps, |end| end.steps)
    }

    pub fn usage(&self) -> Usage {
        self.end.as_ref().map_or(self.usage, |end| end.usage)
    }

    pub fn stop_reason(&self) -> Option<StopReason> {
        self.end.as_ref()?.stop_reason
    }

    /// True where the last text is an answer, or as much of one as there is; false where it only led to a tool call.
    pub fn has_answer(&self) -> bool {
        match self.stop_reason() {
            Some(StopReason::EndTurn | StopReason::MaxTokens | StopReason::Refusal) => !self.last_text.is_empty(),
            Some(StopReason::MaxTurnRequests) | None => false,
        }
    }

    /// True once the terminal event has come.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// How the run ended, by its terminal event.
    pub fn verdict(&self) -> Verdict {
        let Some(end) = &self.end else {
            return Verdict::Failed(Failure::run("the session ended without saying how"));
        };
        match (end.outcome, end.stop_reason) {
            (Outcome::Completed, Some(StopReason::EndTurn)) => Verdict::Answered,
            (Outcome::Completed, Some(StopReason::MaxTokens)) => Verdict::Limited(
                Failure::limit("the answer was cut off at the limit of its length")
                    .hint("raise maxOutputTokens in settings.json, or ask for less at a time"),
            ),
            (Outcome::Completed, Some(StopReason::MaxTurnRequests)) => Verdict::Limited(self.turn_limit()),
            (Outcome::Completed, Some(StopReason::Refusal)) => {
                Verdict::Failed(Failure::run("the model refused to go on").hint("put the task in other words"))
            }
            (Outcome::Completed, None) => {
                Verdict::Failed(Failure::run("the turn ended for a reason that is not known"))
            }
            (Outcome::Interrupted, _) => match &end.error {
                Some(error) if error.kind == TurnFailureKind::Cancelled => Verdict::Cancelled,
                Some(error) => Verdict::Failed(hints::turn_failure(error)),
                None => Verdict::Failed(Failure::run("the turn was cut short; why is not known")),
            },
        }
    }

    fn turn_limit(&self) -> Failure {
        match &self.loop_guard {
            Some(text) => Failure::limit(format!("the model went in circles: {text}"))
                .hint("tell it in the prompt what to do instead"),
            None => Failure::limit(format!("stopped after {} requests to the model", self.steps()))
                .hint("raise --max-turns (maxTurns in settings.json)"),
        }
    }
}

/// The end of a turn, as an exit code needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Answered,
    Limited(Failure),
    Failed(Failure),
    Cancelled,
    /// A signal asked for the end, whatever became of the turn.
    Signalled(StopSignal),
}

impl Verdict {
    pub fn exit(&self) -> Exit {
        match self {
            Verdict::Answered => Exit::Success,
            Verdict::Limited(failure) | Verdict::Failed(failure) => failure.exit,
            Verdict::Cancelled => Exit::Failure,
            Verdict::Signalled(signal) => Exit::Signal(*signal),
        }
    }

    /// What to tell on standard error; None where all is well.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Verdict::Answered => None,
            Verdict::Limited(failure) | Verdict::Failed(failure) => Some(failure.clone()),
            Verdict::Cancelled => Some(Failure::run("the turn was cancelled")),
            Verdict::Signalled(signal) => Some(hints::signalled(*signal)),
        }
    }
}

fn text_of(parts: &[StepPart]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            StepPart::Text { text } => Some(text.as_str()),
            StepPart::Thought { .. } | StepPart::ToolCall { .. } => None,
        })
        .collect()
}

fn add(sum: &mut Usage, other: &Usage) {
    sum.input_tokens += other.input_tokens;
    sum.output_tokens += other.output_tokens;
    sum.cache_read_tokens += other.cache_read_tokens;
    sum.cache_write_tokens += other.cache_write_tokens;
}
