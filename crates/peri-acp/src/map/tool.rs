//! Tool calls as a client shows them.

use agent_client_protocol::v1::schema::{
    Diff, ToolCall as ShownCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind as ShownKind,
};
use peri_acp_types::{FileDiff, ToolArguments, ToolCall, ToolKind, ToolLocation, ToolOutput};
use serde_json::{Value, json};

use super::content::to_block;

/// A call whose arguments are still under way.
pub(crate) fn announced(id: &str, name: &str, kind: ToolKind) -> ShownCall {
    ShownCall::new(id.to_owned(), name).name(name.to_owned()).kind(shown_kind(kind)).status(ToolCallStatus::Pending)
}

/// What is known of a call once it is whole.
pub(crate) fn started_fields(
    call: &ToolCall,
    kind: ToolKind,
    title: &str,
    locations: &[ToolLocation],
) -> ToolCallUpdateFields {
    ToolCallUpdateFields::new()
        .title(title.to_owned())
        .name(call.name.clone())
        .kind(shown_kind(kind))
        .status(ToolCallStatus::InProgress)
        .locations(shown_locations(locations))
        .raw_input(raw_input(&call.arguments))
}

/// The result of a call.
pub(crate) fn finished_fields(output: &ToolOutput) -> ToolCallUpdateFields {
    let status = if output.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let diffs = output.details.diffs.iter().map(|diff| ToolCallContent::Diff(shown_diff(diff)));
    let blocks = output.content.iter().map(|content| ToolCallContent::from(to_block(content)));
    let fields = ToolCallUpdateFields::new()
        .status(status)
        .content(diffs.chain(blocks).collect::<Vec<_>>())
        .raw_output(json!({"isError": output.is_error, "text": output.joined_text()}));
    match output.details.locations.as_slice() {
        [] => fields,
        locations => fields.locations(shown_locations(locations)),
    }
}

/// A call that will not be run, or whose end was not told.
pub(crate) fn given_up_fields(words: &str) -> ToolCallUpdateFields {
    finished_fields(&ToolOutput::error(words))
}

pub(crate) fn update(id: &str, fields: ToolCallUpdateFields) -> ToolCallUpdate {
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// A call with everything that is known of it, where it was not announced before.
pub(crate) fn unannounced(id: &str, name: &str, fields: ToolCallUpdateFields) -> ShownCall {
    let mut call = ShownCall::new(id.to_owned(), name);
    call.update(fields);
    call
}

/// The arguments, or the text that the model sent in their place.
pub(crate) fn raw_input(arguments: &ToolArguments) -> Value {
    match arguments {
        ToolArguments::Object(map) => Value::Object(map.clone()),
        ToolArguments::Invalid { raw, .. } => Value::String(raw.clone()),
    }
}

fn shown_diff(diff: &FileDiff) -> Diff {
    Diff::new(diff.path.as_str(), diff.new_text.clone()).old_text(diff.old_text.clone())
}

pub(crate) fn shown_locations(locations: &[ToolLocation]) -> Vec<ToolCallLocation> {
    locations.iter().map(|location| ToolCallLocation::new(location.path.as_str()).line(location.line)).collect()
}

pub(crate) fn shown_kind(kind: ToolKind) -> ShownKind {
    match kind {
        ToolKind::Read => ShownKind::Read,
        ToolKind::Edit => ShownKind::Edit,
        ToolKind::Search => ShownKind::Search,
        ToolKind::Execute => ShownKind::Execute,
        ToolKind::Fetch => ShownKind::Fetch,
        ToolKind::Think => ShownKind::Think,
        ToolKind::Other => ShownKind::Other,
    }
}
