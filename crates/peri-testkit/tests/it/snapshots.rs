//! The filter table: what varies is gone, the rest stays.

#[test]
fn what_varies_is_filtered_and_nothing_else() {
    let text = r#"session 0190d3c1-7a2b-7c3d-8e4f-0123456789ab at 2026-11-30T10:20:30.5Z (1764500000000)
{"elapsedMs": 1234, "duration_ms":5, "steps": 2} in 1.5 s, 20ms
listening on 127.0.0.1:40213 under /tmp/.tmpAb3xYz/work, peri/0.1.0, exit 1"#;
    insta::with_settings!({filters => peri_testkit::snapshot::filters()}, {
        insta::assert_snapshot!(text, @r#"
        session [uuid] at [time] ([ms])
        {"elapsedMs": "[duration]", "duration_ms": "[duration]", "steps": 2} in [duration], [duration]
        listening on 127.0.0.1:[port] under [tmp]/work, peri/[version], exit 1
        "#);
    });
}

#[test]
fn steady_json_keeps_its_form() {
    let (one, two) = ("0190d3c1-7a2b-7c3d-8e4f-0123456789ab", "0190d3c1-7a2b-7c3d-8e4f-0123456789ac");
    let told = serde_json::json!({"a": [one, two, format!("{one}.3")], "elapsedMs": 7, "updatedAt": "now", "n": 7, "t": "x.y"});
    let (one, two) = ("00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002");
    assert_eq!(
        peri_testkit::snapshot::steady(&told),
        serde_json::json!({
            "a": [one, two, format!("{one}.3")], "elapsedMs": 0, "updatedAt": "2026-01-01T00:00:00Z", "n": 7, "t": "x.y",
        })
    );
}
