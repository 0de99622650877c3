//! Content: what a client sends in a prompt, and what it is shown.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, ResourceLink, TextContent,
    TextResourceContents,
};
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
        ContentBlock::Image(image) => Ok(Content::Image(Image { mime_type: image.mime_type, base64: image.data })),
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
            Some(mime_type) if mime_type.starts_with("image/") => {
                Ok(Content::Image(Image { mime_type, base64: contents.blob }))
            }
            _ => Err(invalid_params(&format!(
                "the embedded resource {} is binary and no image; send a link to it instead",
                contents.uri
            ))),
        },
        _ => Err(invalid_params("an embedded resource may be text or an image")),
    }
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
