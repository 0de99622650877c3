//! Documents that mean harm or are rubbish: bounded, answered with an error or a finding, never a panic.

use crate::memory::{SHARED, USER, World};

const SAMPLE: &str = r#"{"$schema": "s", "model": "p/m", "providers": {"p": {"protocol": "anthropic", "baseUrl": "http://h:1",
"apiKeyEnv": "K", "models": {"m": {"contextWindow": 4096, "maxOutputTokens": 100}}, "headers": {"a": "b"}}}, "permissions":
{"allow": ["Read", "Bash(a:*)"], "ask": [], "deny": ["mcp__a__b"], "mode": "bypass", "additionalDirectories": ["~/x"]},
"env": {"A": "1"}, "hooks": {}, "mcpServers": {}, "maxTurns": 3, "maxOutputTokens": 3, "thinking": {"budgetTokens": 0},
"appendSystemPrompt": "é🦀", "loopGuard": 3, "retry": {"maxAttempts": 3, "idleTimeoutSeconds": 1.5}, "bash":
{"defaultTimeoutSeconds": 3}}"#;

fn survives(bytes: &[u8]) {
    for path in [USER, SHARED] {
        let world = World::new().file(path, bytes);
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
    let findings = World::new().file(SHARED, format!(r#"{{"{name}": 1, "permissions": {{"{name}": 1}}}}"#)).findings();
    assert_eq!(findings.len(), 2);
    for finding in findings {
        assert!(finding.contains(r"\u{1b}[2J\u{202e}xxx") && finding.len() < 400, "{finding}");
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
