//! Documents that mean harm or are rubbish: bounded, answered with an error or a finding, never a panic.

use peri_acp_types::ports::TrustState;

use crate::memory::{MCP, SHARED, USER, World};

const SAMPLE: &str = r#"{"$schema": "s", "model": "p/m", "providers": {"p": {"protocol": "anthropic", "baseUrl": "http://h:1",
"apiKeyEnv": "K", "models": {"m": {"contextWindow": 4096, "maxOutputTokens": 100}}, "headers": {"a": "b"}}}, "permissions":
{"allow": ["Read", "Bash(a:*)"], "ask": [], "deny": ["mcp__a__b"], "mode": "bypass", "additionalDirectories": ["~/x"]},
"env": {"A": "1"}, "hooks": {}, "mcpServers": {"s": {"command": "c", "args": ["${A:-x}"], "env": {"A": "b"}}, "h": {"type":
"http", "url": "http://${H}/", "headers": {"a": "b"}, "enabled": true}}, "mcp": {"toolSchemaBudgetBytes": 1}, "maxTurns": 3, "maxOutputTokens": 3, "thinking": {"budgetTokens": 0},
"appendSystemPrompt": "é🦀", "loopGuard": 3, "retry": {"maxAttempts": 3, "idleTimeoutSeconds": 1.5}, "bash":
{"defaultTimeoutSeconds": 3}}"#;

fn survives(bytes: &[u8]) {
    for (path, trust) in [
        (USER, TrustState::Untrusted),
        (SHARED, TrustState::Untrusted),
        (SHARED, TrustState::Trusted),
        (MCP, TrustState::Trusted),
    ] {
        let world = World::new().state(trust).file(path, bytes);
        if path == MCP {
            world.loaded();
        }
        for finding in world.findings() {
            assert!(finding.len() < 2000, "{finding}");
            assert!(!finding.contains(char::is_control), "{finding:?}");
        }
    }
}

#[test]
fn mutations_of_a_document_never_panic() {
    let sample = SAMPLE.as_bytes();
    for index in 0..sample.len() {
        survives(&sample[..index]);
        for replacement in [b'"', b'{', b']', b',', b'0', b'-', b'\\', 0, 0xff] {
            let mut mutated = sample.to_vec();
            mutated[index] = replacement;
            survives(&mutated);
        }
    }
}

#[test]
fn values_swapped_for_others_never_panic() {
    let values = ["null", "true", "-1", "1e999", "18446744073709551616", "\"\"", "\"\\u0000\"", "[[]]", "{\"\": {}}"];
    let ends: Vec<usize> = SAMPLE.match_indices(": ").map(|(index, _)| index + 2).collect();
    for start in ends {
        let rest = &SAMPLE[start..];
        for value in values {
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
            let Some(Ok(_)) = stream.next() else { continue };
            let end = start + stream.byte_offset();
            survives(format!("{}{value}{}", &SAMPLE[..start], &SAMPLE[end..]).as_bytes());
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{{\"hooks\": {}1{}}}", open.repeat(100_000), close.repeat(100_000));
        let findings = World::new().file(USER, deep).findings();
        assert!(findings[0].contains("recursion limit exceeded"), "{findings:?}");
    }
}

#[test]
fn a_document_that_is_too_large_is_refused() {
    let findings = World::new().file(USER, vec![b' '; (1 << 20) + 1]).findings();
    assert_eq!(
        findings,
        [format!("E {USER}: is larger than 1048576 bytes; settings are short; is this the right file?")]
    );
}

#[test]
fn a_flood_of_faults_is_counted_and_not_listed() {
    let flood: Vec<String> = (0..40_000).map(|index| format!("\"k{index}\": 1")).collect();
    let findings = World::new().file(USER, format!("{{{}}}", flood.join(","))).findings();
    assert_eq!(findings.len(), 51);
    assert!(findings[50].ends_with("has 39950 more such faults"), "{}", findings[50]);
    // An error behind them still stops the start.
    let world = World::new().file(
        USER,
        format!(
            "{{\"providers\": {{{}}}, \"bash\": 1}}",
            ["\"p\": {\"protocol\": \"anthropic\", ", &flood.join(","), "}",].concat()
        ),
    );
    assert!(world.load().is_err());
}

#[test]
fn long_and_steering_names_are_shown_short_and_plain() {
    let name = format!("\\u001b[2J\\u202e{}", "x".repeat(10_000));
    let document = format!(r#"{{"{name}": 1, "permissions": {{"{name}": 1}}}}"#);
    for (path, count) in [(USER, 2), (SHARED, 1)] {
        let findings = World::new().file(path, &document).findings();
        assert_eq!(findings.len(), count);
        for finding in findings {
            assert!(finding.contains(r"\u{1b}[2J\u{202e}xxx") && finding.len() < 500, "{finding}");
        }
    }
}

#[test]
fn paths_of_long_names_cost_no_more_than_the_document() {
    // Writing the path of each of the values out would take hours.
    let key = "k".repeat(8000);
    let mut document = format!("[{}]", vec!["1"; 150_000].join(","));
    for _ in 0..80 {
        document = format!("{{\"{key}\":{document}}}");
    }
    survives(format!("{{\"hooks\": {document}}}").as_bytes());
}

/// A document with `geheim` in every place that may hold a secret, one of them each time, and with faults around it.
#[test]
fn no_secret_is_shown_wherever_it_stands_and_whatever_is_wrong() {
    let secret = "geheim-0123456789";
    let places = [
        r#"{"providers": {"p": {"protocol": "anthropic", "apiKey": "SECRET"}}}"#,
        r#"{"providers": {"p": {"protocol": "openai-chat", "baseUrl": "http://u:SECRET@h/v1"}}}"#,
        r#"{"providers": {"p": {"protocol": "openai-chat", "baseUrl": "http://h/v1?key=SECRET"}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "apiKeyEnv": "SECRET"}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "headers": {"x": "SECRET"}}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "headers": {"x": "a ${V} SECRET ${W:-SECRET}"}}}}"#,
        r#"{"providers": {"p": {"protocol": "anthropic", "headers": {"x": "SECRET\u0001"}}}}"#,
        r#"{"env": {"A": "SECRET"}}"#,
        r#"{"env": {"A": ["SECRET"]}}"#,
        r#"{"mcpServers": {"s": {"command": "c", "env": {"A": "SECRET"}}}}"#,
        r#"{"mcpServers": {"s": {"command": "c", "env": {"A": "${NOWHERE} SECRET"}}}}"#,
        r#"{"mcpServers": {"s": {"command": "c", "env": {"A": "SECRET\u0000"}}}}"#,
        r#"{"mcpServers": {"s": {"command": "c", "args": ["${V}"], "env": {"A": "${V}"}}}}"#,
        r#"{"mcpServers": {"s": {"command": "${V}\u0000"}}}"#,
        r#"{"mcpServers": {"s": {"url": "https://h/${V}?k=SECRET", "headers": {"a": "SECRET"}}}}"#,
        r#"{"mcpServers": {"s": {"url": "https://u:SECRET@h"}}}"#,
        r#"{"mcpServers": {"s": {"url": "https://u:SECRET@${V}", "disabled": true}}}"#,
        r#"{"mcpServers": {"s": {"url": "${V}"}}}"#,
        r#"{"mcpServers": {"s": {"url": "http://h", "headers": {"a": "${V}\n", "authorization": "SECRET"}}}}"#,
        r#"{"mcpServers": {"s": {"type": "SECRET", "command": {"SECRET": 1}, "enabled": "SECRET"}}}"#,
        r#"{"mcp": {"toolSchemaBudgetBytes": "SECRET"}, "thinking": {"effort": "SECRET"}}"#,
    ];
    for place in places {
        let document = place.replace("SECRET", secret);
        let whole = document.len();
        // Whole, cut off, and with a byte of another kind in it.
        for text in [&document[..], &document[..whole - 1], &document[..whole / 2], &format!("{document}x")] {
            for path in [USER, SHARED, MCP] {
                for trust in [TrustState::Trusted, TrustState::Untrusted] {
                    let world = World::new().state(trust).var("V", secret).file(path, text);
                    let mut shown = world.findings().join("\n");
                    match world.load() {
                        Ok(found) => {
                            let settings = &found.settings;
                            shown.push_str(&format!("{found:?} {settings:#?} {}", settings.to_display_json()));
                            let model = settings.provider_for(&"p/m".parse().unwrap());
                            shown.push_str(&format!("{model:?}"));
                            shown.extend(model.err().map(|error| error.to_string()));
                        }
                        Err(error) => shown.push_str(&format!("{error:?} {error}")),
                    }
                    assert!(!shown.contains(secret), "{path} {trust:?} {text}: {shown}");
                }
            }
        }
    }
}
