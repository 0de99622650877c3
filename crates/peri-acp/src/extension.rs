//! Peri's extension of ACP, version 1: its names and its JSON forms, for both ends.
//!
//! Owns: the wire twins of our events, facts and figures (`docs/protocol/acp.md` describes each field).
//! Must not: decide when something is sent. Invariant: a form of version 1 only ever gains optional fields and event types.

use agent_client_protocol::v1::schema::Meta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the events that this crate speaks.
pub const EVENTS_VERSION: u32 = 1;
/// Our key within `_meta`.
pub const META_KEY: &str = "peri";
/// The notification that carries an [`Event`].
pub const EVENT_METHOD: &str = "_peri/event";

/// `_meta.peri` of an `initialize` request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeRequestMeta {
    /// The version of the events that the client understands. Absent: it wants none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u32>,
    /// False where nobody is there to answer a permission request.
    #[serde(default = "yes")]
    pub interactive: bool,
}

fn yes() -> bool {
    true
}

/// `_meta.peri` of an `initialize` response.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponseMeta {
    /// The version of the events that will be sent. Absent: none will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u32>,
    /// Peri's version.
    pub version: String,
}

/// `_meta.peri` of a `session/new` request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionRequestMeta {
    /// The id that the session shall have: a UUID that is not in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// `_meta.peri` of the answer to `session/new`, `session/load` and `session/resume`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMeta {
    pub session_id: String,
    pub epoch: u64,
    pub cwd: String,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// The word that `session/set_mode` takes.
    pub permission_mode: String,
    /// `low`, `medium` or `high`. Absent: requests say what settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Names, in the order in which the model sees them.
    pub tools: Vec<String>,
    /// False where the session is forgotten when Peri ends.
    pub persistent: bool,
}

/// The params of [`EVENT_METHOD`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub session_id: String,
    pub epoch: u64,
    /// Grows within an epoch; gaps are no loss.
    pub seq: u64,
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventBody {
    TurnStarted,
    AttemptStarted,
    /// Text since the last `attempt_started` or `step_committed` is void.
    AttemptFailed {
        failure: Failure,
        /// Absent: there is no further attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
    },
    LlmCallEnd {
        model: String,
        usage: Usage,
    },
    StepCommitted {
        message_id: String,
        message: StepMessage,
        results: Vec<StepResult>,
    },
    Notice {
        kind: NoticeKind,
        text: String,
    },
    TurnEnded(TurnEnded),
    /// A type of a later version. To be passed over.
    #[serde(other)]
    Unknown,
}

/// Why an attempt gave nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub retryable: bool,
}

/// What a failure of the model was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Connect,
    RateLimited,
    Overloaded,
    Server,
    Cut,
    IdleTimeout,
    Auth,
    ContextTooLong,
    BadRequest,
    Protocol,
    #[serde(other)]
    Unknown,
}

/// Tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
}

/// A message of the model, whole.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepMessage {
    pub model: String,
    pub stop: StepStop,
    pub usage: Usage,
    pub parts: Vec<StepPart>,
}

/// Why the model stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    #[serde(other)]
    Other,
}

/// A piece of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepPart {
    Text {
        text: String,
    },
    Thought {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall {
        id: String,
        name: String,
        /// As the model gave them; a JSON string where they were no object.
        arguments: Value,
    },
}

/// The result of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    pub call_id: String,
    pub is_error: bool,
    pub content: Vec<StepContent>,
}

/// Content of a result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StepContent {
    Text {
        text: String,
    },
    Image {
        mime_type: String,
        /// Base64.
        data: String,
    },
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

/// What a notice is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    Configuration,
    LoopGuard,
    Interrupted,
    Capability,
    Store,
    #[serde(other)]
    Unknown,
}

/// The end of a turn; also `_meta.peri` of a `session/prompt` response and `data` of its error.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    pub outcome: Outcome,
    /// With `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// With `interrupted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnFailure>,
    pub usage: Usage,
    /// Answers of the model.
    pub steps: u32,
    pub elapsed_ms: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Interrupted,
}

/// Why a completed turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
}

/// Why an interrupted turn ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnFailure {
    pub kind: TurnFailureKind,
    pub message: String,
    /// With `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<FailureKind>,
}

/// What cut a turn short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFailureKind {
    Cancelled,
    Model,
    Store,
    /// The prompt is a command that could not be run. There was no turn.
    Command,
    Internal,
    #[serde(other)]
    Unknown,
}

/// Puts a value where `_meta` is expected, under our key.
pub fn to_meta(value: &impl Serialize) -> Meta {
    let value = serde_json::to_value(value).unwrap_or_default();
    Map::from_iter([(META_KEY.to_owned(), value)])
}

/// Takes our value out of a `_meta`; None where it holds none.
///
/// # Errors
/// A value of another form.
pub fn from_meta<T: DeserializeOwned>(meta: Option<&Meta>) -> Result<Option<T>, serde_json::Error> {
    meta.and_then(|meta| meta.get(META_KEY)).map(T::deserialize).transpose()
}
