//! Results of rmcp as results of a session.
//!
//! Invariant: nothing that a server sent is dropped without a word in its place.

use peri_acp_types::ports::META_TOOL_DETAILS;
use peri_acp_types::{Content, FileDiff, Image, ToolDetails, ToolLocation, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ResourceContents, Role};
use serde_json::Value;

/// Maps a result, with the details that a builtin server puts into `_meta`.
pub(super) fn output_of(result: CallToolResult) -> ToolOutput {
    let mut content: Vec<Content> = result.content.into_iter().map(content_of).collect();
    // A server may give structure alone; where it gives both, the text says the same.
    if content.is_empty()
        && let Some(structured) = result.structured_content
    {
        content.push(Content::Text(structured.to_string()));
    }
    let details = result.meta.as_ref().and_then(|meta| meta.0.get(META_TOOL_DETAILS)).map(details_of);
    ToolOutput { content, is_error: result.is_error.unwrap_or(false), details: details.unwrap_or_default() }
}

/// A prompt as one text. Where it holds words of the model's too, each message is headed by who says it.
pub(super) fn text_of(prompt: GetPromptResult) -> String {
    let is_dialogue = prompt.messages.iter().any(|message| message.role != Role::User);
    let messages = prompt.messages.into_iter().map(|message| {
        let speaker = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
        };
        let text = match content_of(message.content) {
            Content::Text(text) | Content::Resource { text: Some(text), .. } => text,
            Content::Resource { uri, text: None, .. } => uri,
            Content::Image(image) => format!("[an image ({}) cannot be part of a command]", image.mime_type),
        };
        if is_dialogue { format!("{speaker}: {text}") } else { text }
    });
    messages.collect::<Vec<_>>().join("\n\n")
}

fn content_of(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => Content::Image(Image { mime_type: image.mime_type, base64: image.data }),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Content::Resource { uri, mime_type, text: Some(text) }
            }
            ResourceContents::BlobResourceContents { mime_type: Some(mime_type), blob, .. }
                if mime_type.starts_with("image/") =>
            {
                Content::Image(Image { mime_type, base64: blob })
            }
            ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                Content::Resource { uri, mime_type, text: None }
            }
            _ => unknown("resource"),
        },
        ContentBlock::ResourceLink(link) => Content::Resource { uri: link.uri, mime_type: link.mime_type, text: None },
        ContentBlock::Audio(audio) => Content::Text(format!("[audio ({}) cannot be shown]", audio.mime_type)),
        _ => unknown("content"),
    }
}

fn unknown(what: &str) -> Content {
    Content::Text(format!("[{what} of an unknown kind cannot be shown]"))
}

/// Reads `{"locations": [{"path", "line"?}], "diffs": [{"path", "oldText"?, "newText"}]}`; what has another form is left out.
fn details_of(value: &Value) -> ToolDetails {
    let list = |key: &str| value.get(key).and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let locations = list("locations").filter_map(|entry| {
        let line = entry.get("line").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
        Some(ToolLocation { path: text(entry, "path")?, line })
    });
    let diffs = list("diffs").filter_map(|entry| {
        Some(FileDiff {
            path: text(entry, "path")?,
            old_text: text(entry, "oldText"),
            new_text: text(entry, "newText")?,
        })
    });
    ToolDetails { locations: locations.collect(), diffs: diffs.collect() }
}
