//! What every wire is given in the same form: schemas of tools, and content that a wire has no form of its own for.
//!
//! Invariant: the same value gives the same bytes, always.

use std::borrow::Cow;

use peri_acp_types::{Content, Image, ToolArguments};
use serde_json::{Map, Value, json};

/// How arguments that are no object go back: each wire wants one.
const INVALID_ARGUMENTS: &str = "INVALID_JSON";
/// Image types that every wire takes.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// What no wire takes at the top of a tool's schema. A server checks its own arguments anyway.
const REFUSED_AT_TOP: [&str; 6] = ["oneOf", "anyOf", "allOf", "enum", "not", "$schema"];

/// Content as a wire can carry it.
pub(crate) enum Shown<'a> {
    Text(Cow<'a, str>),
    Image(&'a Image),
}

/// None for texts that are nothing but white space, which wires refuse.
pub(crate) fn shown(content: &Content) -> Option<Shown<'_>> {
    Some(match content {
        Content::Text(words) => return said(words).map(|words| Shown::Text(words.into())),
        Content::Image(image) => match IMAGE_TYPES.contains(&image.mime_type.as_str()) && !image.base64.is_empty() {
            true => Shown::Image(image),
            false => {
                let kind = &image.mime_type;
                Shown::Text(format!("[an image of type {kind:?}, which cannot be shown to you]").into())
            }
        },
        Content::Resource { uri, text: Some(body), .. } => {
            Shown::Text(format!("<resource uri=\"{uri}\">\n{body}\n</resource>").into())
        }
        Content::Resource { uri, mime_type, text: None } => {
            let kind = mime_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
            Shown::Text(format!("[resource {uri}{kind}]").into())
        }
    })
}

/// The text, if it says something.
pub(crate) fn said(words: &str) -> Option<&str> {
    (!words.trim().is_empty()).then_some(words)
}

/// The arguments of a call as the object that they have to be.
pub(crate) fn arguments(arguments: &ToolArguments) -> Cow<'_, Map<String, Value>> {
    match arguments {
        ToolArguments::Object(map) => Cow::Borrowed(map),
        ToolArguments::Invalid { raw, .. } => {
            Cow::Owned(Map::from_iter([(INVALID_ARGUMENTS.to_owned(), Value::String(raw.clone()))]))
        }
    }
}

/// A tool's schema as wires take it: an object that says so, without what they refuse at its top.
pub(crate) fn tool_schema(schema: &Value) -> Cow<'_, Value> {
    let Value::Object(members) = schema else { return Cow::Owned(json!({"type": "object", "properties": {}})) };
    let refused = REFUSED_AT_TOP.iter().any(|name| members.contains_key(*name));
    if !refused && members.get("type").is_some_and(|kind| kind == "object") && members.contains_key("properties") {
        return Cow::Borrowed(schema);
    }
    let mut mended = Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), json!({}))]);
    let kept = members.iter().filter(|(name, _)| *name != "type" && !REFUSED_AT_TOP.contains(&name.as_str()));
    mended.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    Cow::Owned(Value::Object(mended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_mended_only_where_wires_refuse_them() {
        let good = json!({"type": "object", "properties": {"a": {"$schema": "x", "oneOf": []}}, "required": ["a"]});
        assert!(matches!(tool_schema(&good), Cow::Borrowed(_)));
        for (schema, mended) in [
            (json!(true), json!({"type": "object", "properties": {}})),
            (json!({}), json!({"type": "object", "properties": {}})),
            (json!({"type": ["object", "null"]}), json!({"type": "object", "properties": {}})),
            (
                json!({"$schema": "s", "anyOf": [], "properties": {"a": {}}, "$defs": {}}),
                json!({"type": "object", "properties": {"a": {}}, "$defs": {}}),
            ),
        ] {
            assert_eq!(*tool_schema(&schema), mended);
        }
    }
}
