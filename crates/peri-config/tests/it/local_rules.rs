//! "Always": the rule is added, everything else stays.

use futures::executor::block_on;
use peri_acp_types::ports::{ConfigSourceError, TrustState};
use peri_config::{ConfigError, PermissionRule, RuleList, Sourced, add_local_rules, local_rule_patch};

use crate::memory::{LOCAL, SHARED, WORKSPACE, World};

fn rules(texts: &[&str]) -> Vec<PermissionRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[track_caller]
fn check(before: Option<&str>, added: &[&str], expect: &str) {
    let patched = local_rule_patch("f", before.map(str::as_bytes), RuleList::Allow, &rules(added));
    let shown = match patched {
        Ok(Some(bytes)) => String::from_utf8(bytes).unwrap(),
        Ok(None) => "unchanged".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expect);
}

#[test]
fn patches() {
    let fresh = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls:*)\"\n    ]\n  }\n}\n";
    check(None, &["Bash(ls:*)"], fresh);
    check(Some(""), &["Bash(ls:*)"], fresh);
    check(Some(fresh), &["Bash(ls:*)"], "unchanged");
    check(
        Some(
            "{\n\t\"zeta\": 1.50,\n\t\"permissions\": {\"deny\": [\"Read\"], \"allow\": [\"A\"]},\n\t\"alpha\": null\n}",
        ),
        &["A", "B", "B"],
        "{\n\t\"zeta\": 1.5,\n\t\"permissions\": {\n\t\t\"deny\": [\n\t\t\t\"Read\"\n\t\t],\n\t\t\"allow\": [\n\t\t\t\"A\",\n\t\t\t\"B\"\n\t\t]\n\t},\n\t\"alpha\": null\n}\n",
    );
    check(
        Some("{"),
        &["A"],
        "f: is not valid JSON: EOF while parsing an object at line 1 column 1; mend it there (JSON has no comments and no trailing commas)",
    );
    check(Some(r#"{"permissions": 1}"#), &["A"], "f: key `permissions` must be an object");
    check(Some(r#"{"permissions": {"allow": 1}}"#), &["A"], "f: key `permissions.allow` must be a list");
    check(Some(r#"{"a": 1, "a": 2}"#), &["A"], "f: key `a` is there twice; keep one of them");
    let full = format!(r#"{{"a": "{}"}}"#, "x".repeat((1 << 20) - 20));
    check(Some(&full), &["A"], "f: would become too large; remove rules that are no longer needed");
}

#[test]
fn a_rule_that_was_added_is_in_force_the_next_time() {
    let world = World::new().state(TrustState::Trusted).file(SHARED, r#"{"permissions": {"allow": ["Read"]}}"#);
    let trust = world.loaded().trust;
    let path =
        block_on(add_local_rules(&world, &trust, WORKSPACE, RuleList::Allow, &rules(&["Bash(cargo test:*)"]))).unwrap();
    assert_eq!(path, LOCAL);
    let allow = world.loaded().settings.permissions.allow;
    assert_eq!(allow[1].value.to_string(), "Bash(cargo test:*)");
    assert_eq!(allow[1].origin.to_string(), LOCAL);
}

#[test]
fn a_rule_that_rejects_goes_to_the_other_list() {
    let world = World::new().state(TrustState::Trusted).file(LOCAL, r#"{"permissions": {"allow": ["Read"]}}"#);
    let trust = world.loaded().trust;
    for _ in 0..2 {
        let rules = rules(&["Bash(cargo publish:*)"]);
        block_on(add_local_rules(&world, &trust, WORKSPACE, RuleList::Deny, &rules)).unwrap();
    }
    let permissions = world.loaded().settings.permissions;
    let texts = |list: &[Sourced<PermissionRule>]| list.iter().map(|it| it.value.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (texts(&permissions.allow), texts(&permissions.deny)),
        (vec!["Read".into()], vec!["Bash(cargo publish:*)".into()])
    );
    let patched = local_rule_patch("f", Some(br#"{"permissions": {"deny": 1}}"#), RuleList::Deny, &rules(&["A"]));
    assert_eq!(patched.unwrap_err().to_string(), "f: key `permissions.deny` must be a list");
}

#[test]
fn a_rival_write_is_kept() {
    let world = World::new().state(TrustState::Trusted);
    let trust = world.loaded().trust;
    world.rivals.lock().unwrap().push(br#"{"permissions": {"allow": ["Theirs"]}}"#.to_vec());
    block_on(add_local_rules(&world, &trust, WORKSPACE, RuleList::Allow, &rules(&["Ours"]))).unwrap();
    let text = world.text_of(LOCAL).unwrap();
    assert!(text.contains("Theirs") && text.contains("Ours"), "{text}");
}

#[test]
fn a_rival_that_never_rests_ends_in_an_error() {
    let world = World::new().state(TrustState::Trusted);
    let trust = world.loaded().trust;
    for turn in 0..20 {
        world.rivals.lock().unwrap().push(format!(r#"{{"maxTurns": {}}}"#, turn + 1).into_bytes());
    }
    let error = block_on(add_local_rules(&world, &trust, WORKSPACE, RuleList::Allow, &rules(&["Ours"]))).unwrap_err();
    assert!(matches!(error, ConfigError::Source(ConfigSourceError::Changed { .. })), "{error}");
}

#[test]
fn no_rule_is_written_where_it_would_not_count() {
    for state in [TrustState::Untrusted, TrustState::Changed] {
        let world = World::new().state(state);
        let trust = world.loaded().trust;
        let error =
            block_on(add_local_rules(&world, &trust, WORKSPACE, RuleList::Allow, &rules(&["Ours"]))).unwrap_err();
        assert!(matches!(error, ConfigError::RuleWouldNotApply { .. }), "{error}");
        assert_eq!(world.text_of(LOCAL), None);
    }
}
