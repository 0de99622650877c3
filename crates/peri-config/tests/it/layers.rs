//! Which source wins, and that each value knows where it came from.

use std::num::NonZeroU32;
use std::time::Duration;

use peri_acp_types::PermissionMode;
use peri_acp_types::ports::TrustState;
use peri_config::{CommandLineOverlay, Layer, SettingsArgument};

use crate::memory::{ARGUMENT, LOCAL, SHARED, USER, World};

fn trusted() -> World {
    World::new().state(TrustState::Trusted)
}

fn argument(text: &str) -> CommandLineOverlay {
    CommandLineOverlay { settings: Some(SettingsArgument::from_text(text)), ..CommandLineOverlay::default() }
}

#[test]
fn each_layer_overrides_the_ones_below() {
    let model_of = |world: &World| {
        let found = world.loaded();
        (found.settings.model.unwrap().to_string(), found.origins["model"].layer)
    };
    let mut world = trusted();
    for (path, model, layer) in [
        (USER, "p/user", Layer::User),
        (SHARED, "p/shared", Layer::Workspace),
        (LOCAL, "p/local", Layer::WorkspaceLocal),
    ] {
        world = world.file(path, format!(r#"{{"model": "{model}"}}"#));
        assert_eq!(model_of(&world), (model.to_owned(), layer));
    }
    world = world.file(ARGUMENT, r#"{"model": "p/argument"}"#).overlay(argument(ARGUMENT));
    assert_eq!(model_of(&world), ("p/argument".to_owned(), Layer::Argument));
    world = world.overlay(argument(r#" {"model": "p/inline"}"#));
    assert_eq!(model_of(&world), ("p/inline".to_owned(), Layer::Argument));
    world = world.var("PERI_MODEL", "p/env");
    assert_eq!(model_of(&world), ("p/env".to_owned(), Layer::Environment));
    world.overlay.model = Some("p/option".to_owned());
    assert_eq!(model_of(&world), ("p/option".to_owned(), Layer::CommandLine));
}

#[test]
fn rules_and_directories_add_up_and_keep_their_sources() {
    let overlay = CommandLineOverlay {
        allowed_tools: vec!["Edit,Bash(git log:*) Write".to_owned()],
        disallowed_tools: vec!["Bash(curl:*)".to_owned()],
        ..CommandLineOverlay::default()
    };
    let found = trusted()
        .var("HOME", "/home/u")
        .file(
            USER,
            r#"{"permissions": {"allow": ["Read"], "deny": ["Bash(rm:*)"], "additionalDirectories": ["~/lib"]}}"#,
        )
        .file(
            SHARED,
            r#"{"permissions": {"allow": ["Grep"], "ask": ["Write"], "additionalDirectories": ["../other", "/x"]}}"#,
        )
        .overlay(overlay)
        .loaded();
    let permissions = &found.settings.permissions;
    let shown = |rules: &[peri_config::Sourced<peri_config::PermissionRule>]| -> Vec<String> {
        rules.iter().map(|rule| format!("{} < {}", rule.value, rule.origin)).collect()
    };
    assert_eq!(
        shown(&permissions.allow),
        [
            format!("Read < {USER}"),
            format!("Grep < {SHARED}"),
            "Edit < --allowed-tools".to_owned(),
            "Bash(git log:*) < --allowed-tools".to_owned(),
            "Write < --allowed-tools".to_owned(),
        ]
    );
    assert_eq!(shown(&permissions.ask), [format!("Write < {SHARED}")]);
    assert_eq!(
        shown(&permissions.deny),
        [format!("Bash(rm:*) < {USER}"), "Bash(curl:*) < --disallowed-tools".to_owned()]
    );
    let directories: Vec<&str> = permissions.additional_directories.iter().map(|entry| entry.value.as_str()).collect();
    assert_eq!(directories, ["/home/u/lib", "/ws/../other", "/x"]);
}

#[test]
fn maps_merge_by_key_and_a_provider_is_replaced_whole() {
    let found = trusted()
        .file(
            USER,
            r#"{"env": {"A": "1", "B": "1"},
                "retry": {"maxAttempts": 2, "maxDelaySeconds": 9},
                "providers": {"p": {"protocol": "anthropic", "baseUrl": "http://one", "apiKeyEnv": "K"},
                              "q": {"protocol": "anthropic", "baseUrl": "http://q"}}}"#,
        )
        .file(
            LOCAL,
            r#"{"env": {"B": "2"}, "retry": {"maxAttempts": 3},
                "providers": {"p": {"protocol": "openai-chat", "baseUrl": "http://two/v1"}}}"#,
        )
        .loaded();
    let settings = &found.settings;
    assert_eq!(settings.env["A"].reveal(), "1");
    assert_eq!(settings.env["B"].reveal(), "2");
    assert_eq!(found.origins["env.B"].name, LOCAL);
    assert_eq!((settings.retry.max_attempts, settings.retry.max_delay), (3, Duration::from_secs(9)));
    assert_eq!(settings.providers.len(), 2);
    // The key that was meant for one address does not go to the other.
    let model = settings.provider_for(&"p/m".parse().unwrap()).unwrap();
    assert_eq!((model.base_url.as_str(), model.api_key), ("http://two/v1", None));
}

#[test]
fn the_command_line_sets_what_it_names_and_nothing_else() {
    let world = World::new().file(USER, r#"{"permissions": {"mode": "accept-edits"}, "appendSystemPrompt": "a"}"#);
    let found = world.loaded();
    assert_eq!(found.settings.permissions.mode, PermissionMode::AcceptEdits);
    let found = world
        .overlay(CommandLineOverlay {
            permission_mode: Some(PermissionMode::Bypass),
            max_turns: NonZeroU32::new(3),
            append_system_prompt: Some("b".to_owned()),
            ..CommandLineOverlay::default()
        })
        .loaded();
    assert_eq!(found.settings.permissions.mode, PermissionMode::Bypass);
    assert_eq!(found.settings.max_turns, Some(3));
    assert_eq!(found.settings.append_system_prompt.as_deref(), Some("b"));
    assert_eq!(found.origins["permissions.mode"].to_string(), "--permission-mode");
}

#[test]
fn a_fault_of_the_command_line_or_environment_names_it() {
    let check = |world: World, expect: &str| assert_eq!(world.findings(), [expect]);
    check(
        World::new().overlay(CommandLineOverlay { model: Some("opus".to_owned()), ..CommandLineOverlay::default() }),
        "E --model: `opus` must be PROVIDER/MODEL, such as `anthropic/claude-sonnet-5-5`, without spaces",
    );
    check(
        World::new().var("PERI_MODEL", "opus"),
        "E environment variable PERI_MODEL: `opus` must be PROVIDER/MODEL, such as `anthropic/claude-sonnet-5-5`, without spaces",
    );
    let provider = r#"{"providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}}}"#;
    check(
        World::new()
            .file(USER, provider)
            .overlay(CommandLineOverlay { model: Some("m2".to_owned()), ..CommandLineOverlay::default() }),
        "E --model: `m2` must be PROVIDER/MODEL, such as `anthropic/claude-sonnet-5-5`, without spaces; did you mean `mine/m2`?",
    );
    check(
        World::new().var("OPENAI_API_KEY", "k").var("PERI_MODEL", "m2"),
        "E environment variable PERI_MODEL: `m2` must be PROVIDER/MODEL, such as `anthropic/claude-sonnet-5-5`, without spaces; did you mean `openai/m2`?",
    );
    check(
        World::new()
            .overlay(CommandLineOverlay { allowed_tools: vec!["Bash(a".to_owned()], ..CommandLineOverlay::default() }),
        "E --allowed-tools: rule `Bash(a` must end with `)`, since it has a `(`",
    );
    check(World::new().overlay(argument("/nowhere.json")), "E /nowhere.json: cannot be read: there is no such file");
    check(
        World::new().overlay(argument("{")),
        "E --settings: is not valid JSON: EOF while parsing an object at line 1 column 1; mend it there (JSON has no comments and no trailing commas)",
    );
    check(
        World::new().file(USER, r#"{"permissions": {"additionalDirectories": ["~/x"]}}"#),
        &format!(
            "E {USER}: key `permissions.additionalDirectories` `~/x` begins with `~`, but HOME is not set; write the whole path"
        ),
    );
    check(World::new().file(USER, "<unreadable>"), &format!("E {USER}: cannot be read: permission denied"));
}

#[test]
fn a_default_timeout_never_exceeds_the_longest_one() {
    let found = World::new().file(USER, r#"{"bash": {"maxTimeoutSeconds": 60}}"#).loaded();
    assert_eq!(found.settings.bash.default_timeout, Duration::from_secs(60));
}

#[test]
fn documents_that_were_found_are_listed() {
    let found = trusted().file(USER, "{}").file(LOCAL, "{}").loaded();
    let names: Vec<&str> = found.documents.iter().map(|origin| origin.name.as_str()).collect();
    assert_eq!(names, [USER, LOCAL]);
}

#[test]
fn the_users_file_is_not_a_workspace_file_where_both_are_one() {
    // As with PERI_HOME=/ws/.peri and the workspace /ws: simulated by a source whose user file is the workspace's.
    struct OneFile(World);
    #[async_trait::async_trait]
    impl peri_acp_types::ports::ConfigSource for OneFile {
        async fn read(
            &self,
            place: &peri_acp_types::ports::ConfigPlace,
        ) -> Result<Option<peri_acp_types::ports::ConfigDocument>, peri_acp_types::ports::ConfigSourceError> {
            use peri_acp_types::ports::ConfigPlace;
            let place = match place {
                ConfigPlace::User => &ConfigPlace::Workspace { root: "/ws".to_owned() },
                other => other,
            };
            self.0.read(place).await
        }
        async fn write(
            &self,
            place: &peri_acp_types::ports::ConfigPlace,
            expected: Option<&peri_acp_types::ports::ConfigRevision>,
            bytes: Vec<u8>,
        ) -> Result<peri_acp_types::ports::ConfigRevision, peri_acp_types::ports::ConfigSourceError> {
            self.0.write(place, expected, bytes).await
        }
        fn env(&self, name: &str) -> Option<String> {
            self.0.env(name)
        }
    }
    let source = OneFile(World::new().file(SHARED, r#"{"model": "p/m", "permissions": {"allow": ["Read"]}}"#));
    let load = peri_config::load(&source, &source.0, "/ws", &source.0.overlay);
    let found = futures::executor::block_on(load).unwrap();
    assert_eq!(found.diagnostics, []);
    assert_eq!(found.settings.permissions.allow.len(), 1);
    assert_eq!(found.origins["model"].layer, Layer::User);
}
