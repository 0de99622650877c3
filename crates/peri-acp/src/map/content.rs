//! Content: what a client sends in a prompt, and what it is shown.
//!
//! Invariant: what a prompt brings into a thread can be sent to a model as often as the thread goes on: an image is one
//! that decodes, and a binary that is neither image nor text stays out.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, ResourceLink, TextContent,
    TextResourceContents,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use peri_acp_types::{Content, Image};

use crate::errors::invalid_params;

/// A prompt as content.
///
/// # Errors
/// -32602 for a kind of block that was not offered in `initialize`.
pub(crate) fn from_blocks(blocks: Vec<ContentBlock>) -> Result<Vec<Content>, Error> {
    blocks.into_iter().map(from_block).collect()
}

fn from_block(block: ContentBlock) -> Result<Content, Error> {
    match block {
        ContentBlock::Text(text) => Ok(Content::Text(text.text)),
        ContentBlock::Image(image) => from_image(image.mime_type, image.data),
        ContentBlock::ResourceLink(link) => {
            Ok(Content::Resource { uri: link.uri, mime_type: link.mime_type, text: None })
        }
        ContentBlock::Resource(resource) => from_resource(resource),
        ContentBlock::Audio(_) => Err(invalid_params("a prompt may hold text, images and resources, but no audio")),
        _ => Err(invalid_params("a prompt may hold text, images and resources, and nothing of a later protocol")),
    }
}

fn from_resource(resource: EmbeddedResource) -> Result<Content, Error> {
    match resource.resource {
        EmbeddedResourceResource::TextResourceContents(contents) => {
            Ok(Content::Resource { uri: contents.uri, mime_type: contents.mime_type, text: Some(contents.text) })
        }
        EmbeddedResourceResource::BlobResourceContents(contents) => match contents.mime_type {
            Some(mime_type) if is_image(&mime_type) => from_image(mime_type, contents.blob),
            mime_type => match text_of(&contents.blob) {
                Some(text) => Ok(Content::Resource { uri: contents.uri, mime_type, text: Some(text) }),
                None => Err(invalid_params(&format!(
                    "the embedded resource {} is neither text nor an image; send a link to it instead",
                    shown(&contents.uri)
                ))),
            },
        },
        _ => Err(invalid_params("an embedded resource may be text or an image")),
    }
}

fn from_image(mime_type: String, base64: String) -> Result<Content, Error> {
    if !is_image(&mime_type) {
        return Err(invalid_params(&format!("`{}` is no type of an image", shown(&mime_type))));
    }
    match STANDARD.decode(&base64) {
        Ok(bytes) if !bytes.is_empty() => Ok(Content::Image(Image { mime_type, base64 })),
        Ok(_) => Err(invalid_params("an image is empty")),
        Err(error) => Err(invalid_params(&format!("the data of an image is no base64: {error}"))),
    }
}

fn is_image(mime_type: &str) -> bool {
    mime_type.starts_with("image/")
}

/// The text that a blob holds, if it is text.
fn text_of(blob: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(blob).ok()?).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// As much of a client's text as an error repeats.
fn shown(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Content as a client shows it.
pub(crate) fn to_block(content: &Content) -> ContentBlock {
    match content {
        Content::Text(text) => text_block(text),
        Content::Image(image) => ContentBlock::Image(ImageContent::new(image.base64.clone(), image.mime_type.clone())),
        Content::Resource { uri, mime_type, text: Some(text) } => {
            let contents = TextResourceContents::new(text.clone(), uri.clone()).mime_type(mime_type.clone());
            ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents)))
        }
        Content::Resource { uri, mime_type, text: None } => {
            let name = uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(uri);
            ContentBlock::ResourceLink(ResourceLink::new(name, uri.clone()).mime_type(mime_type.clone()))
        }
    }
}

pub(crate) fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(block: Value, expected: Result<Content, &str>) {
        let parsed = serde_json::from_value(block.clone()).expect("a block");
        match (from_blocks(vec![parsed]), expected) {
            (Ok(content), Ok(expected)) => assert_eq!(content, [expected], "{block}"),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{block}: {}", error.message),
            (got, expected) => panic!("{block}: {got:?} instead of {expected:?}"),
        }
    }

    fn image(base64: &str) -> Content {
        Content::Image(Image { mime_type: "image/png".to_owned(), base64: base64.to_owned() })
    }

    fn resource(mime_type: Option<&str>, text: Option<&str>) -> Content {
        let (mime_type, text) = (mime_type.map(str::to_owned), text.map(str::to_owned));
        Content::Resource { uri: "file:///a".to_owned(), mime_type, text }
    }

    #[test]
    fn what_was_offered_is_taken() {
        check(json!({"type": "text", "text": "a"}), Ok(Content::Text("a".to_owned())));
        check(json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}), Ok(image("AAAA")));
        check(json!({"type": "resource_link", "name": "a", "uri": "file:///a"}), Ok(resource(None, None)));
        let embedded = |contents: Value| json!({"type": "resource", "resource": contents});
        check(embedded(json!({"uri": "file:///a", "text": "hi"})), Ok(resource(None, Some("hi"))));
        check(
            embedded(json!({"uri": "file:///a", "mimeType": "text/x-rust", "blob": "w7w="})),
            Ok(resource(Some("text/x-rust"), Some("ü"))),
        );
        check(embedded(json!({"uri": "file:///a", "mimeType": "image/png", "blob": "AAAA"})), Ok(image("AAAA")));
    }

    #[test]
    fn what_would_spoil_the_thread_is_refused() {
        check(json!({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}), Err("no audio"));
        check(json!({"type": "image", "mimeType": "image/png", "data": "A"}), Err("no base64"));
        check(json!({"type": "image", "mimeType": "image/png", "data": "data:,x"}), Err("no base64"));
        check(json!({"type": "image", "mimeType": "image/png", "data": ""}), Err("empty"));
        check(json!({"type": "image", "mimeType": "text/html", "data": "AAAA"}), Err("no type of an image"));
        let blob = |blob: &str| json!({"type": "resource", "resource": {"uri": "file:///a", "blob": blob}});
        check(blob("AAAA"), Err("neither text nor an image"));
        check(blob("/w=="), Err("neither text nor an image"));
        check(blob("?"), Err("neither text nor an image"));
    }
}
