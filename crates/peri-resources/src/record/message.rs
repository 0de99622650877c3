//! Twins of a message's body.

use std::borrow::Cow;

use peri_acp_types::{
    AssistantMessage, AssistantPart, MessageBody, MessageId, ModelStop, Summary, SummaryOrigin, Thought, Usage,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::content::ContentRecord;
use super::tool::{ToolCallRecord, ToolResultRecord};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BodyRecord<'a> {
    User(Vec<ContentRecord<'a>>),
    Assistant(AssistantRecord<'a>),
    ToolResults(Vec<ToolResultRecord<'a>>),
    Notice(Cow<'a, str>),
    /// Since form 2.
    Summary(SummaryRecord<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SummaryRecord<'a> {
    text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_kept: Option<IdRecord>,
    origin: OriginRecord,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OriginRecord {
    Model,
    Truncation,
}

/// A message's id, as text.
struct IdRecord(MessageId);

impl Serialize for IdRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for IdRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IdRecord, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let id = text.parse().map_err(|_| serde::de::Error::custom(format!("`{text}` is no id of a message")))?;
        Ok(IdRecord(id))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AssistantRecord<'a> {
    model: Cow<'a, str>,
    parts: Vec<PartRecord<'a>>,
    stop: StopRecord,
    usage: UsageRecord,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartRecord<'a> {
    Text(Cow<'a, str>),
    Thought(ThoughtRecord<'a>),
    ToolCall(ToolCallRecord<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThoughtRecord<'a> {
    text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Cow<'a, str>>,
    redacted: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopRecord {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    Other,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageRecord {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
}

impl<'a> From<&'a MessageBody> for BodyRecord<'a> {
    fn from(body: &'a MessageBody) -> BodyRecord<'a> {
        match body {
            MessageBody::User(content) => BodyRecord::User(content.iter().map(ContentRecord::from).collect()),
            MessageBody::Assistant(message) => BodyRecord::Assistant(AssistantRecord::from(message)),
            MessageBody::ToolResults(results) => {
                BodyRecord::ToolResults(results.iter().map(ToolResultRecord::from).collect())
            }
            MessageBody::Notice(text) => BodyRecord::Notice(text.into()),
            MessageBody::Summary(summary) => BodyRecord::Summary(SummaryRecord::from(summary)),
        }
    }
}

impl From<BodyRecord<'_>> for MessageBody {
    fn from(record: BodyRecord<'_>) -> MessageBody {
        match record {
            BodyRecord::User(content) => MessageBody::User(content.into_iter().map(Into::into).collect()),
            BodyRecord::Assistant(message) => MessageBody::Assistant(message.into()),
            BodyRecord::ToolResults(results) => MessageBody::ToolResults(results.into_iter().map(Into::into).collect()),
            BodyRecord::Notice(text) => MessageBody::Notice(text.into_owned()),
            BodyRecord::Summary(summary) => MessageBody::Summary(summary.into()),
        }
    }
}

impl<'a> From<&'a Summary> for SummaryRecord<'a> {
    fn from(summary: &'a Summary) -> SummaryRecord<'a> {
        let Summary { text, first_kept, origin } = summary;
        SummaryRecord {
            text: text.into(),
            first_kept: first_kept.map(IdRecord),
            origin: match origin {
                SummaryOrigin::Model => OriginRecord::Model,
                SummaryOrigin::Truncation => OriginRecord::Truncation,
            },
        }
    }
}

impl From<SummaryRecord<'_>> for Summary {
    fn from(record: SummaryRecord<'_>) -> Summary {
        let SummaryRecord { text, first_kept, origin } = record;
        Summary {
            text: text.into_owned(),
            first_kept: first_kept.map(|IdRecord(id)| id),
            origin: match origin {
                OriginRecord::Model => SummaryOrigin::Model,
                OriginRecord::Truncation => SummaryOrigin::Truncation,
            },
        }
    }
}

impl<'a> From<&'a AssistantMessage> for AssistantRecord<'a> {
    fn from(message: &'a AssistantMessage) -> AssistantRecord<'a> {
        let AssistantMessage { model, parts, stop, usage } = message;
        AssistantRecord {
            model: model.into(),
            parts: parts.iter().map(PartRecord::from).collect(),
            stop: StopRecord::from(*stop),
            usage: UsageRecord::from(*usage),
        }
    }
}

impl From<AssistantRecord<'_>> for AssistantMessage {
    fn from(record: AssistantRecord<'_>) -> AssistantMessage {
        let AssistantRecord { model, parts, stop, usage } = record;
        AssistantMessage {
            model: model.into_owned(),
            parts: parts.into_iter().map(Into::into).collect(),
            stop: stop.into(),
            usage: usage.into(),
        }
    }
}

impl<'a> From<&'a AssistantPart> for PartRecord<'a> {
    fn from(part: &'a AssistantPart) -> PartRecord<'a> {
        match part {
            AssistantPart::Text(text) => PartRecord::Text(text.into()),
            AssistantPart::Thought(Thought { text, signature, redacted }) => PartRecord::Thought(ThoughtRecord {
                text: text.into(),
                signature: signature.as_ref().map(Cow::from),
                redacted: *redacted,
            }),
            AssistantPart::ToolCall(call) => PartRecord::ToolCall(ToolCallRecord::from(call)),
        }
    }
}

impl From<PartRecord<'_>> for AssistantPart {
    fn from(record: PartRecord<'_>) -> AssistantPart {
        match record {
            PartRecord::Text(text) => AssistantPart::Text(text.into_owned()),
            PartRecord::Thought(ThoughtRecord { text, signature, redacted }) => AssistantPart::Thought(Thought {
                text: text.into_owned(),
                signature: signature.map(Cow::into_owned),
                redacted,
            }),
            PartRecord::ToolCall(call) => AssistantPart::ToolCall(call.into()),
        }
    }
}

impl From<ModelStop> for StopRecord {
    fn from(stop: ModelStop) -> StopRecord {
        match stop {
            ModelStop::EndTurn => StopRecord::EndTurn,
            ModelStop::ToolUse => StopRecord::ToolUse,
            ModelStop::MaxTokens => StopRecord::MaxTokens,
            ModelStop::Refusal => StopRecord::Refusal,
            ModelStop::Other => StopRecord::Other,
        }
    }
}

impl From<StopRecord> for ModelStop {
    fn from(record: StopRecord) -> ModelStop {
        match record {
            StopRecord::EndTurn => ModelStop::EndTurn,
            StopRecord::ToolUse => ModelStop::ToolUse,
            StopRecord::MaxTokens => ModelStop::MaxTokens,
            StopRecord::Refusal => ModelStop::Refusal,
            StopRecord::Other => ModelStop::Other,
        }
    }
}

impl From<Usage> for UsageRecord {
    fn from(usage: Usage) -> UsageRecord {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
        UsageRecord { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
    }
}

impl From<UsageRecord> for Usage {
    fn from(record: UsageRecord) -> Usage {
        let UsageRecord { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = record;
        Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
    }
}
