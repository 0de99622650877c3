//! Settings: any bytes in each of the documents, and any text as a permission rule.
//!
//! Holds: an answer always; findings are short and do not steer a terminal; no secret of the environment is shown; a rule
//! that is read is written back as it was.

use peri_acp_types::ports::TrustState;
use peri_config::{CommandLineOverlay, PermissionRule, SettingsArgument, split_rule_list};

use crate::memory::{LOCAL, SHARED, USER, World};

const SECRET: &str = "s3cr3t-of-the-environment";
const VARIABLES: [&str; 5] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "K", "TOKEN", "A"];
const STATES: [TrustState; 4] =
    [TrustState::Untrusted, TrustState::Trusted, TrustState::Changed, TrustState::NothingToTrust];

/// The first byte says how far the workspace is trusted; the rest are, with 0xFF between them, the user's document, the
/// workspace's three, the argument of the command line, and a rule.
pub fn check(data: &[u8]) {
    let Some((state, rest)) = data.split_first() else { return };
    let mut parts = rest.split(|byte| *byte == 0xff);
    let mut world = World::new().state(STATES[usize::from(*state) % STATES.len()]);
    for name in VARIABLES {
        world = world.var(name, SECRET);
    }
    for path in [USER, SHARED, LOCAL, "/ws/.mcp.json"] {
        match parts.next() {
            Some(bytes) if !bytes.is_empty() => world = world.file(path, bytes),
            Some(_) | None => {}
        }
    }
    let mut text = || parts.next().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).filter(|it| !it.is_empty());
    if let Some(argument) = text() {
        let settings = Some(SettingsArgument::Inline(argument));
        world = world.overlay(CommandLineOverlay { settings, ..CommandLineOverlay::default() });
    }
    check_load(&world);
    if let Some(rule) = text() {
        check_rule(&rule);
    }
}

fn check_load(world: &World) {
    for finding in world.findings() {
        assert!(finding.len() < 2000 && !finding.contains(char::is_control), "{finding:?}");
    }
    let shown = match world.load() {
        Ok(resolution) => {
            let model = resolution.settings.chosen_model().cloned();
            let resolved = model.as_ref().ok().map(|model| resolution.settings.provider_for(model));
            format!("{resolution:?} {} {model:?} {resolved:?}", resolution.settings.to_display_json())
        }
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(SECRET), "a secret is shown: {shown}");
}

fn check_rule(text: &str) {
    let _any_number = split_rule_list(text);
    if let Ok(rule) = text.parse::<PermissionRule>() {
        assert_eq!(rule.to_string(), text.trim());
    }
}
