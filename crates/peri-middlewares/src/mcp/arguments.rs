//! Arguments against a tool's schema, as far as a mistake would surely be one.
//!
//! A check of our own rather than a schema library: servers check what they are sent anyhow, builtin ones by decoding it
//! into types. What this adds is an answer without the way to the server, and one that shows the model what is expected.
//! Invariant: arguments that the schema allows are never refused here; numbers and truth values in quotes pass, since
//! servers take them.

use peri_acp_types::{ToolOutput, ToolSpec};
use serde_json::{Map, Value};

/// Names of arguments that are shown at most.
const MAX_SHOWN: usize = 40;

/// What is wrong with the arguments; None where nothing surely is. Reads on from "because".
pub(super) fn complaint(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let missing: Vec<String> =
        required(schema).filter(|key| !arguments.contains_key(*key)).map(|key| format!("`{key}`")).collect();
    if !missing.is_empty() {
        return Some(format!("it lacks {}", missing.join(", ")));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    arguments.iter().find_map(|(key, value)| {
        let property = properties?.get(key)?;
        let expected = type_names(property);
        if expected.is_empty() || expected.iter().any(|name| fits(name, value)) {
            return None;
        }
        Some(format!("`{key}` must be {}, not {}", expected.join(" or "), kind_of(value)))
    })
}

/// The result of a call whose arguments are wrong.
pub(super) fn refusal(tool: &ToolSpec, why: &str) -> ToolOutput {
    let name = &tool.name;
    let keys: Vec<&str> = required(&tool.input_schema).collect();
    let optional = tool.input_schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let optional: Vec<&str> = optional.map(String::as_str).filter(|key| !keys.contains(key)).collect();
    ToolOutput::error(format!(
        "`{name}` was not run, because {why}. Required: {}. Optional: {}. Send the call again.",
        list(&keys),
        list(&optional)
    ))
}

fn list(keys: &[&str]) -> String {
    match keys {
        [] => "none".to_owned(),
        keys => keys.iter().take(MAX_SHOWN).copied().collect::<Vec<_>>().join(", "),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The types that a property may have; empty where its schema says it otherwise or not at all.
fn type_names(property: &Value) -> Vec<&str> {
    match property.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn fits(type_name: &str, value: &Value) -> bool {
    match type_name {
        "string" => value.is_string(),
        "integer" | "number" => {
            value.is_number() || value.as_str().is_some_and(|text| text.trim().parse::<f64>().is_ok())
        }
        "boolean" => value.is_boolean() || matches!(value.as_str(), Some("true" | "false")),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(arguments: Value, expect: Option<&str>) {
        let schema = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": ["integer", "null"]},
                "all": {"type": "boolean"},
                "mode": {"enum": ["a", "b"]},
                "tags": {"type": "array"},
            },
        });
        let arguments = arguments.as_object().expect("an object").clone();
        assert_eq!(complaint(&schema, &arguments).as_deref(), expect, "{arguments:?}");
    }

    #[test]
    fn arguments_against_a_schema() {
        check(json!({"path": "x"}), None);
        check(json!({}), Some("it lacks `path`"));
        check(json!({"path": 1}), Some("`path` must be string, not number"));
        check(json!({"path": "x", "limit": "10", "all": "true"}), None);
        check(json!({"path": "x", "limit": null, "unknown": [1]}), None);
        check(json!({"path": "x", "limit": "ten"}), Some("`limit` must be integer or null, not string"));
        check(json!({"path": "x", "tags": {}}), Some("`tags` must be array, not object"));
        check(json!({"path": "x", "mode": "c"}), None);
    }

    #[test]
    fn a_schema_that_says_nothing_refuses_nothing() {
        let arguments = json!({"a": 1}).as_object().expect("an object").clone();
        for schema in [json!(null), json!({}), json!({"required": 1, "properties": []}), json!([])] {
            assert_eq!(complaint(&schema, &arguments), None, "{schema}");
        }
    }
}
