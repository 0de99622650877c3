//! A question of an MCP server as ACP's elicitation form, and what comes back.
//!
//! Must not: ask. Invariant: what is shown is bounded and says whose question it is; an answer holds nothing but fields
//! that were asked for.

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationPropertySchema, ElicitationSchema, ElicitationSessionScope, MultiSelectItems,
};
use peri_acp_types::{ElicitationAnswer, ElicitationRequest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::extension::to_meta;

/// The method that shows a form.
pub(crate) const METHOD: &str = "elicitation/create";
/// The most fields that a form may have.
const MAX_FIELDS: usize = 64;
/// The most bytes that a form's schema may have, as JSON.
const MAX_SCHEMA: usize = 64 * 1024;
/// The most characters of the server's own message that are shown.
const SHOWN_OF_MESSAGE: usize = 4096;

/// The params of `elicitation/create`; None for a form that ACP cannot show: it is too large, or more than a flat list of
/// simple fields.
pub(crate) fn form(request: &ElicitationRequest) -> Option<Value> {
    if request.schema.to_string().len() > MAX_SCHEMA {
        return None;
    }
    let schema = ElicitationSchema::deserialize(&request.schema).ok()?;
    if schema.properties.is_empty()
        || schema.properties.len() > MAX_FIELDS
        || !schema.properties.values().all(is_simple)
    {
        return None;
    }
    let scope = ElicitationSessionScope::new(request.session_id.to_string());
    let said: String = request.message.chars().take(SHOWN_OF_MESSAGE).collect();
    let message = format!("The MCP server `{}` asks: {said}", request.server);
    let meta = to_meta(&json!({"server": request.server}));
    let form = CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message).meta(meta);
    let mut params = serde_json::to_value(form).ok()?;
    restore_order(params.pointer_mut("/requestedSchema/properties")?, request.schema.get("properties")?);
    Some(params)
}

/// Puts the fields in the order in which the server has them: the protocol crate sorts them by name.
fn restore_order(fields: &mut Value, asked: &Value) {
    let (Value::Object(fields), Value::Object(asked)) = (fields, asked) else { return };
    let mut unordered = std::mem::take(fields);
    fields.extend(asked.keys().filter_map(|name| unordered.remove_entry(name)));
}

/// A field of a kind that version 1 of the protocol knows.
fn is_simple(field: &ElicitationPropertySchema) -> bool {
    match field {
        ElicitationPropertySchema::String(_)
        | ElicitationPropertySchema::Number(_)
        | ElicitationPropertySchema::Integer(_)
        | ElicitationPropertySchema::Boolean(_) => true,
        ElicitationPropertySchema::Array(list) => {
            matches!(list.items, MultiSelectItems::String(_) | MultiSelectItems::Titled(_))
        }
        _ => false,
    }
}

/// What the client answered. An action of a later protocol is no answer.
pub(crate) fn answer(response: CreateElicitationResponse, asked: &Value) -> ElicitationAnswer {
    match response.action {
        ElicitationAction::Accept(accepted) => {
            let content = serde_json::to_value(accepted.content.unwrap_or_default()).unwrap_or_default();
            ElicitationAnswer::Accepted(only_asked(content, asked))
        }
        ElicitationAction::Decline => ElicitationAnswer::Declined,
        _ => ElicitationAnswer::Cancelled,
    }
}

fn only_asked(content: Value, asked: &Value) -> Map<String, Value> {
    let Value::Object(content) = content else { return Map::new() };
    let was_asked = |name: &str| asked.get("properties").is_some_and(|properties| properties.get(name).is_some());
    content.into_iter().filter(|(name, _)| was_asked(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peri_acp_types::SessionId;
    use uuid::Uuid;

    fn request(schema: Value) -> ElicitationRequest {
        ElicitationRequest {
            session_id: SessionId(Uuid::nil()),
            server: "books".to_owned(),
            message: "Which one?".to_owned(),
            schema,
        }
    }

    fn check(schema: Value, is_shown: bool) {
        assert_eq!(form(&request(schema.clone())).is_some(), is_shown, "{schema}");
    }

    #[test]
    fn a_form_says_who_asks_and_keeps_its_fields() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "minLength": 1, "default": "x"},
            "count": {"type": "integer", "minimum": 0},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}},
            "shapes": {"type": "array", "items": {"anyOf": [{"const": "o", "title": "round"}]}},
        }, "required": ["name"]});
        let mut told = form(&request(schema.clone())).expect("it can be shown");
        assert_eq!(told["requestedSchema"].to_string(), schema.to_string(), "in the same order");
        told["requestedSchema"].take();
        assert_eq!(
            told,
            json!({
                "mode": "form", "sessionId": "00000000-0000-0000-0000-000000000000", "requestedSchema": null,
                "message": "The MCP server `books` asks: Which one?", "_meta": {"peri": {"server": "books"}},
            })
        );
    }

    #[test]
    fn what_no_form_can_show_is_not_shown() {
        let fields = |count: usize| -> Value {
            let fields = (0..count).map(|number| (format!("f{number}"), json!({"type": "boolean"})));
            json!({"type": "object", "properties": Map::from_iter(fields)})
        };
        check(fields(64), true);
        check(fields(65), false);
        check(fields(0), false);
        check(json!({"properties": {"a": {"type": "string", "description": "x".repeat(70_000)}}}), false);
        check(json!({"properties": {"a": {"type": "object", "properties": {}}}}), false);
        check(json!({"properties": {"a": {"type": "array", "items": {"type": "object"}}}}), false);
        check(json!({"properties": {"a": {"$ref": "#/definitions/a"}}}), false);
        check(json!({"properties": 7}), false);
        check(json!([]), false);
    }

    #[test]
    fn an_answer_holds_only_what_was_asked() {
        let asked = json!({"properties": {"name": {"type": "string"}}});
        let check = |response: Value, expected: ElicitationAnswer| {
            let response = serde_json::from_value(response).expect("a response");
            assert_eq!(answer(response, &asked), expected);
        };
        let named = Map::from_iter([("name".to_owned(), json!("Ada"))]);
        check(json!({"action": "accept", "content": {"name": "Ada", "more": 1}}), ElicitationAnswer::Accepted(named));
        check(json!({"action": "accept"}), ElicitationAnswer::Accepted(Map::new()));
        check(json!({"action": "decline"}), ElicitationAnswer::Declined);
        check(json!({"action": "cancel"}), ElicitationAnswer::Cancelled);
        check(json!({"action": "later"}), ElicitationAnswer::Cancelled);
    }
}
