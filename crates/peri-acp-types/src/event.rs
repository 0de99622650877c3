//! Session events: what the agent emits, and the envelope that the runtime stamps on it.

use std::time::Duration;

use crate::{
    AgentId, AssistantMessage, AttemptId, CommandId, CompactionId, MessageId, ModelFailure, QueueSnapshot,
    SessionEpoch, SessionId, SessionSeq, SessionSettings, ToolCall, ToolKind, ToolLocation, ToolOutput, ToolResult,
    TurnError, TurnId, Usage,
};

/// An event with its identity. Order key: (session_epoch, session_seq).
#[derive(Clone, PartialEq, Debug)]
pub struct Envelope {
    pub session_id: SessionId,
    pub session_epoch: SessionEpoch,
    /// Gapless here; a merged delta carries the last number of its parts, and filters may leave gaps later on.
    pub session_seq: SessionSeq,
    pub event: AgentEvent,
}

/// What the agent emits: it names turn, attempt and agent; the runtime adds the session.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentEvent {
    pub agent_id: AgentId,
    /// None for an event outside a turn.
    pub turn_id: Option<TurnId>,
    /// None before the first attempt of a turn and outside a turn.
    pub attempt_id: Option<AttemptId>,
    pub event: SessionEvent,
}

/// Everything that a session tells the outside. The protocol edge maps each by an exhaustive match.
#[derive(Clone, PartialEq, Debug)]
pub enum SessionEvent {
    /// An input was committed and its turn begins.
    TurnStarted,
    /// A request goes to the model.
    AttemptStarted,
    /// The attempt's output is void. A new one follows after `retry_in`, or the turn ends if it is None.
    AttemptFailed { failure: ModelFailure, retry_in: Option<Duration> },
    /// Text of the model, as it arrives. Adjacent ones may be merged.
    TextDelta(String),
    /// Reasoning of the model, as it arrives. Adjacent ones may be merged.
    ThoughtDelta(String),
    /// The model began to call a tool; arguments are still under way.
    ToolCallAnnounced { id: crate::ToolCallId, name: String, kind: ToolKind },
    /// The call is complete and about to be judged and run.
    ToolCallStarted { call: ToolCall, kind: ToolKind, title: String, locations: Vec<ToolLocation> },
    /// The call has its result.
    ToolCallFinished { id: crate::ToolCallId, output: ToolOutput },
    /// A request ended well, with the provider's figures for it.
    LlmCallEnd { model: String, usage: Usage },
    /// How full the context window is.
    UsageUpdate { used_tokens: u64, window_tokens: u64 },
    /// The assistant message and all its results are in the store.
    StepCommitted { message_id: MessageId, message: AssistantMessage, results: Vec<ToolResult> },
    /// An input that had been queued joined this turn: it is in the transcript. `input` is the turn that it would have had,
    /// which will never run.
    InputSteered { command_id: CommandId, input: TurnId },
    /// The queue is another one now. Only the latest is worth telling.
    QueueChanged(QueueSnapshot),
    /// The model's context is being made smaller.
    CompactionStarted { id: CompactionId, trigger: CompactionTrigger },
    /// Text of the summary, as it arrives.
    CompactionDelta { id: CompactionId, text: String },
    /// The compaction is over; once for each that started.
    CompactionEnded { id: CompactionId, end: CompactionEnd },
    /// The conversation went back to before that turn, or, if it is None, a rewind was undone. What a client shows of the
    /// conversation is to be read anew.
    Rewound { to_before: Option<TurnId> },
    /// The session has a title now, or another one.
    TitleChanged { title: String },
    /// Model, mode or effort are others now: all of them as they stand.
    SettingsChanged(SessionSettings),
    /// Something that the user should know; never needed to follow the session.
    Notice { kind: NoticeKind, text: String },
    /// The terminal event: once per turn, after all its output.
    TurnEnded(TurnEnd),
}

/// Why a context is compacted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactionTrigger {
    /// It fills most of the window.
    Threshold,
    /// The user asked for it.
    Command,
    /// The provider refused a request as too long.
    TooLong,
}

/// How a compaction ended. Token figures are estimates, except that what a provider counted is taken as it counted it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompactionEnd {
    /// A summary stands for the messages before it.
    Summarised { message_id: MessageId, tokens_before: u64, tokens_after: u64 },
    /// No summary could be had, so messages were left out without one. `reason` says why.
    Truncated { message_id: MessageId, reason: String, tokens_before: u64, tokens_after: u64 },
    /// Nothing was changed: there was nothing to leave out, or it could not be stored. In words.
    Unchanged { reason: String },
    /// The turn was cancelled meanwhile; nothing was changed.
    Cancelled,
}

/// What a notice is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeKind {
    /// Settings, trust: something configured was not used.
    Configuration,
    /// The model repeats itself.
    LoopGuard,
    /// An earlier turn has no end: its effects are unknown.
    Interrupted,
    /// A capability (an MCP server, say) is not there.
    Capability,
    /// The store was found damaged, moved or slow.
    Store,
}

/// How a turn ended, with figures over all its requests.
#[derive(Clone, PartialEq, Debug)]
pub struct TurnEnd {
    pub outcome: TurnOutcome,
    pub usage: Usage,
    /// Requests that the model answered in this turn.
    pub steps: u32,
    /// From acceptance to here.
    pub elapsed: Duration,
}

/// Completed or Interrupted, never both.
#[derive(Clone, PartialEq, Debug)]
pub enum TurnOutcome {
    /// The model or a limit of ours ended the turn in order.
    Completed(StopReason),
    /// The turn was cut short; a failed turn is one, with its error.
    Interrupted(TurnError),
}

/// The words are ACP's `StopReason`, less `cancelled`, which is [`TurnError::Cancelled`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    /// `--max-turns`, or the loop guard's stop.
    MaxTurnRequests,
    Refusal,
}
