//! The committed schema is the one that the code gives, and says what the reader does.

use serde_json::{Value, json};

use crate::memory::{USER, World};

const COMMITTED: &str = include_str!("../../../../docs/protocol/settings.schema.json");
const PAGE: &str = include_str!("../../../../docs/protocol/settings.md");

#[test]
fn the_committed_schema_is_current() {
    let current = format!("{}\n", serde_json::to_string_pretty(&peri_config::schema()).unwrap());
    assert!(
        COMMITTED == current,
        "docs/protocol/settings.schema.json is not what the code gives; it should be:\n{current}"
    );
}

fn errors_in(document: &Value) -> Vec<String> {
    let findings = World::new().var("HOME", "/h").file(USER, document.to_string()).findings();
    findings.into_iter().filter(|finding| finding.starts_with("E ")).collect()
}

/// Calls `visit` with the path of every key that the schema knows. A map's keys are `*`.
fn each_key(schema: &Value, root: &Value, path: &[String], visit: &mut impl FnMut(&[String])) {
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    let below = |name: &str| [path, &[name.to_owned()]].concat();
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        visit(&below(name));
        each_key(inner, root, &below(name), visit);
    }
    if let Some(inner) = schema.get("additionalProperties").filter(|inner| inner.is_object()) {
        visit(&below("*"));
        each_key(inner, root, &below("*"), visit);
    }
}

#[test]
fn every_key_of_the_schema_is_read_and_documented() {
    let schema = peri_config::schema();
    let mut keys = Vec::new();
    each_key(&schema, &schema, &[], &mut |path| keys.push(path.to_vec()));
    assert!(keys.len() > 30, "{keys:?}");
    for path in keys {
        // null is a value that no key takes: an error at this very key shows that it is read.
        let document = path.iter().rev().fold(Value::Null, |inner, name| match name.as_str() {
            "*" => json!({"p": inner}),
            name => json!({name: inner}),
        });
        let key = path.join(".").replace('*', "p");
        let errors = errors_in(&document);
        assert!(
            path == ["hooks", "*"] || errors.iter().any(|error| error.contains(&format!("key `{key}` must be"))),
            "{key}: {errors:?}"
        );
        let name = path.last().unwrap();
        let documented =
            [format!("`{name}`"), format!(".{name}`"), format!("`{name}.")].iter().any(|form| PAGE.contains(form));
        assert!(name == "*" || documented, "{key} is not in settings.md");
    }
}

#[test]
fn the_schema_and_the_reader_agree() {
    let schema = peri_config::schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let provider = |inner: Value| json!({"providers": {"p": inner}});
    for (document, right) in [
        (json!({}), true),
        (json!([]), false),
        (json!({"model": "a/b/c"}), true),
        (json!({"model": "a"}), false),
        (json!({"model": null}), false),
        (json!({"maxTurns": 1}), true),
        (json!({"maxTurns": 0}), false),
        (json!({"maxTurns": 4_294_967_296u64}), false),
        (json!({"maxOutputTokens": "1"}), false),
        (json!({"loopGuard": 0}), true),
        (json!({"loopGuard": 1001}), false),
        (json!({"env": {"A": "b"}}), true),
        (json!({"env": {"A": 1}}), false),
        (json!({"env": []}), false),
        (json!({"permissions": {"allow": ["Read"], "mode": "bypass"}}), true),
        (json!({"permissions": {"mode": "auto"}}), false),
        (json!({"permissions": {"allow": [""]}}), false),
        (json!({"permissions": {"deny": [1]}}), false),
        (json!({"permissions": {"additionalDirectories": [""]}}), false),
        (json!({"thinking": {"budgetTokens": 0}}), true),
        (json!({"thinking": {"budgetTokens": 0.5}}), false),
        (json!({"thinking": {"effort": "low"}}), true),
        (json!({"thinking": {"effort": "max"}}), false),
        (json!({"thinking": {"effort": "low", "budgetTokens": 2048}}), false),
        (json!({"retry": {"idleTimeoutSeconds": 0.5, "maxAttempts": 100}}), true),
        (json!({"retry": {"idleTimeoutSeconds": 0}}), false),
        (json!({"retry": {"maxAttempts": 0}}), false),
        (json!({"bash": {"maxTimeoutSeconds": 90_000}}), false),
        (json!({"hooks": {}, "mcpServers": {}}), true),
        (json!({"mcpServers": {"x": {}}}), false),
        (json!({"mcpServers": {"x": {"command": "c", "args": ["a"], "env": {"A": "b"}}}}), true),
        (json!({"mcpServers": {"x": {"command": ""}}}), false),
        (json!({"mcpServers": {"x": {"command": "c", "args": "a"}}}), false),
        (json!({"mcpServers": {"x": {"type": "http", "url": "http://h", "headers": {"A": "b"}}}}), true),
        (json!({"mcpServers": {"x": {"url": "${U:-http://h}"}}}), true),
        (json!({"mcpServers": {"x": {"url": "h"}}}), false),
        (json!({"mcpServers": {"x": {"type": "smtp", "url": "http://h"}}}), false),
        (json!({"mcpServers": {"x": {"command": "c", "disabled": 1}}}), false),
        (json!({"mcpServers": {"x": {"enabled": false}}}), true),
        (json!({"mcp": {"toolSchemaBudgetBytes": 0}}), true),
        (json!({"mcp": {"toolSchemaBudgetBytes": -1}}), false),
        (json!({"hooks": 1}), false),
        (provider(json!({"protocol": "anthropic"})), true),
        (provider(json!({})), false),
        (provider(json!({"protocol": "smtp"})), false),
        (provider(json!({"protocol": "anthropic", "baseUrl": "ftp://h"})), false),
        (provider(json!({"protocol": "anthropic", "baseUrl": "http://u:p@h"})), false),
        (provider(json!({"protocol": "anthropic", "apiKeyEnv": "a-b"})), false),
        (provider(json!({"protocol": "anthropic", "apiKey": ""})), false),
        (provider(json!({"protocol": "openai-chat", "models": {"m": {"contextWindow": 5}}})), false),
        (provider(json!({"protocol": "openai-responses", "headers": {"a": "b"}})), true),
        (provider(json!({"protocol": "anthropic", "headers": {"a": 1}})), false),
    ] {
        assert_eq!(validator.is_valid(&document), right, "schema on {document}");
        assert_eq!(errors_in(&document).is_empty(), right, "reader on {document}: {:?}", errors_in(&document));
    }
}

#[test]
fn what_is_displayed_is_a_document_again() {
    let world = World::new().file(
        USER,
        r#"{"model": "p/m", "env": {"A": "geheim"}, "maxTurns": 3, "thinking": {"effort": "low"},
            "mcpServers": {"s": {"command": "c", "env": {"A": "geheim"}}, "h": {"url": "http://h/?geheim"},
                           "off": {"url": "http://h", "headers": {"A": "geheim"}, "enabled": false}}, "appendSystemPrompt": "x",
            "providers": {"p": {"protocol": "anthropic", "apiKey": "geheim", "models": {"m": {"contextWindow": 9000}}},
                          "q": {"protocol": "openai-chat", "apiKeyEnv": "Q", "headers": {"h": "geheim"}}}}"#,
    );
    let shown = world.loaded().settings.to_display_json();
    assert!(!shown.to_string().contains("geheim"));
    assert!(jsonschema::validator_for(&peri_config::schema()).unwrap().is_valid(&shown), "{shown:#}");
    // Defaults alone are a document, too: what is not set does not appear.
    let shown = World::new().loaded().settings.to_display_json();
    assert!(jsonschema::validator_for(&peri_config::schema()).unwrap().is_valid(&shown), "{shown:#}");
}

#[test]
fn the_examples_of_the_page_work_as_written() {
    let examples: Vec<&str> = PAGE.split("```json").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 2);
    let validator = jsonschema::validator_for(&peri_config::schema()).unwrap();
    for example in examples {
        let document: Value = serde_json::from_str(example).unwrap_or_else(|error| panic!("{error}: {example}"));
        assert!(validator.is_valid(&document), "{example}");
        let world = World::new().var("HOME", "/h").var("TICKETS_TOKEN", "t");
        let findings = world.file(USER, example).findings();
        assert_eq!(findings, Vec::<String>::new(), "{example}");
    }
}
