//! Twins of what a message or a result is made of.

use std::borrow::Cow;

use peri_acp_types::{Content, Image};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ContentRecord<'a> {
    Text(Cow<'a, str>),
    Image {
        mime_type: Cow<'a, str>,
        base64: Cow<'a, str>,
    },
    Resource {
        uri: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
    },
}

impl<'a> From<&'a Content> for ContentRecord<'a> {
    fn from(content: &'a Content) -> ContentRecord<'a> {
        match content {
            Content::Text(text) => ContentRecord::Text(text.into()),
            Content::Image(Image { mime_type, base64 }) => {
                ContentRecord::Image { mime_type: mime_type.into(), base64: base64.into() }
            }
            Content::Resource { uri, mime_type, text } => ContentRecord::Resource {
                uri: uri.into(),
                mime_type: mime_type.as_ref().map(Cow::from),
                text: text.as_ref().map(Cow::from),
            },
        }
    }
}

impl From<ContentRecord<'_>> for Content {
    fn from(record: ContentRecord<'_>) -> Content {
        match record {
            ContentRecord::Text(text) => Content::Text(text.into_owned()),
            ContentRecord::Image { mime_type, base64 } => {
                Content::Image(Image { mime_type: mime_type.into_owned(), base64: base64.into_owned() })
            }
            ContentRecord::Resource { uri, mime_type, text } => Content::Resource {
                uri: uri.into_owned(),
                mime_type: mime_type.map(Cow::into_owned),
                text: text.map(Cow::into_owned),
            },
        }
    }
}
