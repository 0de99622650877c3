//! Twins of tool calls and their results.

use std::borrow::Cow;

use peri_acp_types::{
    FileDiff, ToolArguments, ToolCall, ToolCallId, ToolDetails, ToolLocation, ToolOutput, ToolResult,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::content::ContentRecord;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallRecord<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    arguments: ArgumentsRecord<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ArgumentsRecord<'a> {
    #[serde(deserialize_with = "parse_by_itself")]
    Object(Cow<'a, Map<String, Value>>),
    Invalid {
        raw: Cow<'a, str>,
        reason: Cow<'a, str>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolResultRecord<'a> {
    call_id: Cow<'a, str>,
    content: Vec<ContentRecord<'a>>,
    is_error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locations: Vec<LocationRecord<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    diffs: Vec<DiffRecord<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LocationRecord<'a> {
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffRecord<'a> {
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    old_text: Option<Cow<'a, str>>,
    new_text: Cow<'a, str>,
}

/// The parser counts nesting from the start of what it parses. Arguments that were just shallow enough when the model sent
/// them would be too deep inside a record, and the session could never be read again; so they start a count of their own.
fn parse_by_itself<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'static, Map<String, Value>>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    serde_json::from_str(raw.get()).map(Cow::Owned).map_err(serde::de::Error::custom)
}

impl<'a> From<&'a ToolCall> for ToolCallRecord<'a> {
    fn from(call: &'a ToolCall) -> ToolCallRecord<'a> {
        let ToolCall { id: ToolCallId(id), name, arguments } = call;
        let arguments = match arguments {
            ToolArguments::Object(map) => ArgumentsRecord::Object(Cow::Borrowed(map)),
            ToolArguments::Invalid { raw, reason } => {
                ArgumentsRecord::Invalid { raw: raw.into(), reason: reason.into() }
            }
        };
        ToolCallRecord { id: id.into(), name: name.into(), arguments }
    }
}

impl From<ToolCallRecord<'_>> for ToolCall {
    fn from(record: ToolCallRecord<'_>) -> ToolCall {
        let ToolCallRecord { id, name, arguments } = record;
        let arguments = match arguments {
            ArgumentsRecord::Object(map) => ToolArguments::Object(map.into_owned()),
            ArgumentsRecord::Invalid { raw, reason } => {
                ToolArguments::Invalid { raw: raw.into_owned(), reason: reason.into_owned() }
            }
        };
        ToolCall { id: ToolCallId(id.into_owned()), name: name.into_owned(), arguments }
    }
}

impl<'a> From<&'a ToolResult> for ToolResultRecord<'a> {
    fn from(result: &'a ToolResult) -> ToolResultRecord<'a> {
        let ToolResult { call_id: ToolCallId(call_id), output } = result;
        let ToolOutput { content, is_error, details: ToolDetails { locations, diffs } } = output;
        ToolResultRecord {
            call_id: call_id.into(),
            content: content.iter().map(ContentRecord::from).collect(),
            is_error: *is_error,
            locations: locations.iter().map(LocationRecord::from).collect(),
            diffs: diffs.iter().map(DiffRecord::from).collect(),
        }
    }
}

impl From<ToolResultRecord<'_>> for ToolResult {
    fn from(record: ToolResultRecord<'_>) -> ToolResult {
        let ToolResultRecord { call_id, content, is_error, locations, diffs } = record;
        let details = ToolDetails {
            locations: locations.into_iter().map(Into::into).collect(),
            diffs: diffs.into_iter().map(Into::into).collect(),
        };
        let content = content.into_iter().map(Into::into).collect();
        ToolResult { call_id: ToolCallId(call_id.into_owned()), output: ToolOutput { content, is_error, details } }
    }
}

impl<'a> From<&'a ToolLocation> for LocationRecord<'a> {
    fn from(location: &'a ToolLocation) -> LocationRecord<'a> {
        let ToolLocation { path, line } = location;
        LocationRecord { path: path.into(), line: *line }
    }
}

impl From<LocationRecord<'_>> for ToolLocation {
    fn from(record: LocationRecord<'_>) -> ToolLocation {
        let LocationRecord { path, line } = record;
        ToolLocation { path: path.into_owned(), line }
    }
}

impl<'a> From<&'a FileDiff> for DiffRecord<'a> {
    fn from(diff: &'a FileDiff) -> DiffRecord<'a> {
        let FileDiff { path, old_text, new_text } = diff;
        DiffRecord { path: path.into(), old_text: old_text.as_ref().map(Cow::from), new_text: new_text.into() }
    }
}

impl From<DiffRecord<'_>> for FileDiff {
    fn from(record: DiffRecord<'_>) -> FileDiff {
        let DiffRecord { path, old_text, new_text } = record;
        FileDiff { path: path.into_owned(), old_text: old_text.map(Cow::into_owned), new_text: new_text.into_owned() }
    }
}
