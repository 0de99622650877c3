//! From a model's name to everything that a request needs.

use peri_acp_types::Effort;
use peri_acp_types::ports::HeaderValue;
use peri_config::{CommandLineOverlay, ModelRef, Protocol, ResolvedModel, SettingsArgument};

use crate::memory::{USER, World};

/// `PROVIDER MODEL URL KEY WINDOW/OUTPUT` of the chosen model, or the error.
fn resolved(world: &World) -> String {
    let settings = match world.load() {
        Ok(found) => found.settings,
        Err(error) => return format!("error: {error}"),
    };
    match settings.chosen_model().and_then(|model| settings.provider_for(model)) {
        Ok(ResolvedModel { provider, model, base_url, api_key, context_window, max_output_tokens, .. }) => {
            let key = api_key.map_or("-".to_owned(), |key| key.reveal().to_owned());
            let window = context_window.map_or("-".to_owned(), |tokens| tokens.to_string());
            let output = max_output_tokens.map_or("-".to_owned(), |tokens| tokens.to_string());
            format!("{provider} {model} {base_url} {key} {window}/{output}")
        }
        Err(error) => format!("error: {error}"),
    }
}

#[track_caller]
fn check(world: World, expect: &str) {
    check_ref(&world, expect);
}

#[track_caller]
fn check_ref(world: &World, expect: &str) {
    assert_eq!(resolved(world), expect);
}

fn with(document: &str) -> World {
    World::new().file(USER, document)
}

#[test]
fn the_environment_makes_a_provider_where_settings_name_none() {
    let key = || World::new().var("ANTHROPIC_API_KEY", "k");
    check(key(), "anthropic claude-sonnet-5-5 https://api.anthropic.com k -/-");
    check(key().var("ANTHROPIC_MODEL", "m"), "anthropic m https://api.anthropic.com k -/-");
    check(
        key().var("ANTHROPIC_MODEL", "m").var("PERI_MODEL", "anthropic/n"),
        "anthropic n https://api.anthropic.com k -/-",
    );
    check(
        key().var("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/"),
        "anthropic claude-sonnet-5-5 http://127.0.0.1:9 k -/-",
    );
    // A local endpoint may want no key.
    check(
        World::new().var("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
        "anthropic claude-sonnet-5-5 http://127.0.0.1:9 - -/-",
    );
    check(
        key().var("ANTHROPIC_BASE_URL", "127.0.0.1:9"),
        "error: environment variable ANTHROPIC_BASE_URL: must begin with `http://` or `https://`; put the scheme in front of the host",
    );
}

fn protocol_of(world: &World, provider: &str) -> Protocol {
    world.loaded().settings.providers[provider].value.protocol
}

#[test]
fn openai_speaks_responses_at_home_and_chat_elsewhere() {
    let key = || World::new().var("OPENAI_API_KEY", "k");
    let home = "openai gpt-6.1-sol https://api.openai.com/v1 k -/-";
    check(key(), home);
    check(key().var("OPENAI_BASE_URL", "https://api.openai.com/v1/"), home);
    check(key().var("OPENAI_BASE_URL", ""), home);
    check(key().var("OPENAI_MODEL", " m "), "openai m https://api.openai.com/v1 k -/-");
    for address in ["https://API.openai.com/v1", "https://eu.api.openai.com/v1"] {
        assert_eq!(protocol_of(&key().var("OPENAI_BASE_URL", address), "openai"), Protocol::OpenAiResponses);
    }
    for address in [
        "http://127.0.0.1:11434/v1",
        "https://me.openai.azure.com/openai/v1",
        "https://api.openai.com.example.com/v1",
        "https://notapi.openai.com/v1",
    ] {
        let world = key().var("OPENAI_BASE_URL", address).var("OPENAI_MODEL", "qwen/qwen3");
        check_ref(&world, &format!("openai qwen/qwen3 {address} k -/-"));
        assert_eq!(protocol_of(&world, "openai"), Protocol::OpenAiChat);
        assert_eq!(world.findings(), Vec::<String>::new());
    }
    // A local endpoint may want no key.
    let local = || World::new().var("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1");
    check(local().var("OPENAI_MODEL", "m"), "openai m http://127.0.0.1:8080/v1 - -/-");
    check(local().var("PERI_MODEL", "openai/n"), "openai n http://127.0.0.1:8080/v1 - -/-");
    check(
        local(),
        "error: no model is chosen; set OPENAI_MODEL to the id of one that the endpoint has, or --model to `openai/MODEL` \
         (`peri models` lists them)",
    );
}

#[test]
fn addresses_of_openai_that_look_wrong_are_named() {
    let findings = |address: &str| World::new().var("OPENAI_BASE_URL", address).findings();
    let origin = "environment variable OPENAI_BASE_URL";
    assert_eq!(
        findings("http://127.0.0.1:11434"),
        [format!(
            "W {origin}: has no path, while OpenAI's protocols usually live under `/v1`; write `http://127.0.0.1:11434/v1`"
        )]
    );
    assert_eq!(
        findings("http://h/v1/chat/completions"),
        [format!("W {origin}: ends in a part that Peri adds itself (`/chat/completions`); write `http://h/v1`")]
    );
    assert_eq!(
        findings("127.0.0.1:8080"),
        [format!("E {origin}: must begin with `http://` or `https://`; put the scheme in front of the host")]
    );
    assert!(!findings("http://u:geheim@h/v1")[0].contains("geheim"));
}

#[test]
fn both_vendors_at_once() {
    let both = || World::new().var("ANTHROPIC_API_KEY", "a").var("OPENAI_API_KEY", "o");
    let anthropic = "anthropic claude-sonnet-5-5 https://api.anthropic.com a -/-";
    check(both(), anthropic);
    assert_eq!(both().loaded().settings.providers.len(), 2);
    check(both().var("OPENAI_MODEL", "m"), "openai m https://api.openai.com/v1 o -/-");
    check(both().var("ANTHROPIC_MODEL", "n"), "anthropic n https://api.anthropic.com a -/-");
    check(both().var("OPENAI_MODEL", "m").var("ANTHROPIC_MODEL", "n"), "anthropic n https://api.anthropic.com a -/-");
    check(both().var("PERI_MODEL", "openai/x"), "openai x https://api.openai.com/v1 o -/-");
    let found = both().loaded();
    assert_eq!(found.settings.key_variables().collect::<Vec<_>>(), ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]);
    // A variable of other tools does not stop a start that does not need it.
    let odd = || both().var("OPENAI_BASE_URL", "localhost:1");
    check(odd(), anthropic);
    assert_eq!(odd().findings().len(), 1);
    assert!(odd().var("OPENAI_MODEL", "m").load().is_err());
    assert!(both().var("ANTHROPIC_BASE_URL", "localhost:1").load().is_err());
}

#[test]
fn headers_take_variables() {
    let document = r#"{"model": "p/m", "providers": {"p": {"protocol": "openai-chat", "baseUrl": "http://h/v1",
        "headers": {"api-key": "${KEY}", "X-Team": "${TEAM:-compilers}", "X-Plain": "$5"}}}}"#;
    let world = with(document).var("KEY", "geheim-key");
    let settings = world.loaded().settings;
    let model = settings.provider_for(settings.chosen_model().unwrap()).unwrap();
    let headers: Vec<String> = model
        .headers
        .iter()
        .map(|(name, value)| match value {
            HeaderValue::Secret(value) => format!("{name}: {}", value.reveal()),
            HeaderValue::Plain(_) => panic!("{name} is not kept secret"),
        })
        .collect();
    assert_eq!(headers, ["X-Plain: $5", "X-Team: compilers", "api-key: geheim-key"]);
    assert_eq!(settings.key_variables().collect::<Vec<_>>(), ["KEY", "TEAM"]);
    let shown = settings.to_display_json();
    assert_eq!(shown["providers"]["p"]["headers"]["api-key"], "${KEY}");
    assert!(!format!("{settings:?}{model:?}{shown}").contains("geheim"));
    assert_eq!(world.findings(), Vec::<String>::new());

    check(
        with(document),
        &format!(
            "error: header `api-key` of provider `p` ({USER}) names the environment variable KEY, which is not set; set it, or \
             write `${{KEY:-DEFAULT}}`"
        ),
    );
    for value in ["a\nb", &"x".repeat(9000)] {
        check(
            with(document).var("KEY", value),
            &format!(
                "error: the key of provider `p` (`headers.api-key` in {USER}, with its variables filled in) holds characters \
                 that no HTTP header may carry; copy it anew"
            ),
        );
    }
}

#[test]
fn effort_and_budget_replace_each_other() {
    let chosen = |world: &World| {
        let found = world.loaded();
        let origins: Vec<String> =
            found.origins.iter().filter(|(key, _)| key.starts_with("thinking")).map(|(key, _)| key.clone()).collect();
        let shown = found.settings.to_display_json()["thinking"].to_string();
        (found.settings.effort, found.settings.thinking_budget, origins.join(" "), shown)
    };
    let argument = |text: &str| CommandLineOverlay {
        settings: Some(SettingsArgument::Inline(text.to_owned())),
        ..CommandLineOverlay::default()
    };
    let effort = r#"{"thinking": {"effort": "high"}}"#;
    let budget = r#"{"thinking": {"budgetTokens": 2048}}"#;
    assert_eq!(chosen(&with("{}")), (None, None, String::new(), r#"{"budgetTokens":0}"#.to_owned()));
    let high = (Some(Effort::High), None, "thinking.effort".to_owned(), r#"{"effort":"high"}"#.to_owned());
    assert_eq!(chosen(&with(effort)), high);
    assert_eq!(chosen(&with(budget).overlay(argument(effort))), high);
    let budgeted = (None, Some(2048), "thinking.budgetTokens".to_owned(), r#"{"budgetTokens":2048}"#.to_owned());
    assert_eq!(chosen(&with(effort).overlay(argument(budget))), budgeted);
    let off = (None, None, "thinking.budgetTokens".to_owned(), r#"{"budgetTokens":0}"#.to_owned());
    assert_eq!(chosen(&with(effort).overlay(argument(r#"{"thinking": {"budgetTokens": 0}}"#))), off);
    let low = CommandLineOverlay { effort: Some(Effort::Low), ..CommandLineOverlay::default() };
    let world = with(budget).overlay(low);
    assert_eq!(world.loaded().settings.effort, Some(Effort::Low));
    assert_eq!(world.loaded().origins["thinking.effort"].to_string(), "--effort");
    assert_eq!(
        with(r#"{"thinking": {"effort": "high", "budgetTokens": 2048}}"#).findings(),
        [format!("E {USER}: key `thinking.budgetTokens` stands beside `effort`; keep one of them, best `effort`")]
    );
    assert_eq!(
        with(r#"{"thinking": {"effort": "xhigh"}}"#).findings(),
        [format!("E {USER}: key `thinking.effort` must be one of low, medium, high; did you mean `high`?")]
    );
}

#[test]
fn settings_that_name_a_provider_are_not_joined_by_the_environment() {
    let named = r#"{"providers": {"mine": {"protocol": "anthropic"}}}"#;
    check(
        with(named).var("ANTHROPIC_API_KEY", "k").var("ANTHROPIC_MODEL", "m").var("OPENAI_API_KEY", "k"),
        "error: no model is chosen; set `model` in settings.json, PERI_MODEL or --model to PROVIDER/MODEL, for example \
         `mine/MODEL` (providers: mine; `peri models` lists what they have)",
    );
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let found = resolved(&World::new().var("ANTHROPIC_API_KEY", "").var("ANTHROPIC_BASE_URL", " "));
    assert!(found.starts_with("error: no model is chosen; set ANTHROPIC_API_KEY or OPENAI_API_KEY"), "{found}");
}

#[test]
fn a_model_of_nobody() {
    check(
        with(r#"{"model": "meta/llama", "providers": {"mine": {"protocol": "anthropic"}}}"#),
        "error: model `meta/llama` names a provider that is not configured; the one provider is `mine`: did you mean \
         `mine/meta/llama`?",
    );
    check(
        with(r#"{"model": "a/b"}"#),
        "error: model `a/b` names a provider that is not configured; name it under `providers` in settings.json, or set \
         ANTHROPIC_API_KEY to use `anthropic/MODEL` or OPENAI_API_KEY to use `openai/MODEL`",
    );
    check(
        World::new().var("ANTHROPIC_API_KEY", "k").var("PERI_MODEL", "openai/m"),
        "error: model `openai/m` names a provider that is not configured; set OPENAI_API_KEY, or name it under `providers` \
         in settings.json",
    );
    check(
        with(r#"{"model": "openai/m", "providers": {"mine": {"protocol": "anthropic"}}}"#),
        "error: model `openai/m` names a provider that is not configured; the one provider is `mine`: did you mean \
         `mine/openai/m`?",
    );
}

#[test]
fn keys() {
    let document = |key: &str| format!(r#"{{"model": "p/m", "providers": {{"p": {{"protocol": "anthropic"{key}}}}}}}"#);
    let from_env = document(r#", "apiKeyEnv": "K""#);
    check(with(&from_env).var("K", "k"), "p m https://api.anthropic.com k -/-");
    check(with(&from_env).var("K", " k\n"), "p m https://api.anthropic.com k -/-");
    let missing = format!(
        "error: provider `p` ({USER}) takes its key from the environment variable K, which is not set; set it, or name \
         another in `providers.p.apiKeyEnv`"
    );
    check(with(&from_env), &missing);
    check(with(&from_env).var("K", ""), &missing);
    check(
        with(&from_env).var("K", "a b"),
        "error: the key of provider `p` (environment variable K) holds characters that no HTTP header may carry; copy it anew",
    );
    check(with(&document(r#", "apiKey": "k""#)), "p m https://api.anthropic.com k -/-");
    check(with(&document("")), "p m https://api.anthropic.com - -/-");
}

#[test]
fn limits() {
    let document = |top: &str, model: &str| {
        with(&format!(
            r#"{{{top} "model": "p/a/b", "providers": {{"p": {{"protocol": "openai-chat", "baseUrl": "http://h/v1", "models": {{"a/b": {{{model}}}}}}}}}}}"#
        ))
    };
    let limits_of = |world: World| resolved(&world).rsplit(' ').next().unwrap().to_owned();
    // What settings do not state is for the endpoint to tell.
    assert_eq!(limits_of(document("", "")), "-/-");
    assert_eq!(limits_of(document("", r#""contextWindow": 8192"#)), "8192/-");
    assert_eq!(limits_of(document("", r#""maxOutputTokens": 4000"#)), "-/4000");
    // The user's wish is no limit of the model's.
    assert_eq!(limits_of(document(r#""maxOutputTokens": 64000,"#, r#""maxOutputTokens": 8000"#)), "-/8000");
    check(
        document(r#""thinking": {"budgetTokens": 4096},"#, r#""maxOutputTokens": 4096"#),
        "error: key `thinking.budgetTokens` (4096) must be less than the 4096 tokens that an answer of p/a/b may have; \
         lower it, or raise `maxOutputTokens`",
    );
}

#[test]
fn headers_go_along_as_secrets() {
    let world = with(
        r#"{"providers": {"p": {"protocol": "openai-responses", "headers": {"X-Org": "o"}}}, "thinking": {"budgetTokens": 2048}}"#,
    );
    let settings = world.loaded().settings;
    let model = settings.provider_for(&"p/m".parse().unwrap()).unwrap();
    assert_eq!(model.protocol, Protocol::OpenAiResponses);
    assert_eq!(model.base_url, "https://api.openai.com/v1");
    assert!(
        matches!(&model.headers[..], [(name, HeaderValue::Secret(value))] if name == "X-Org" && value.reveal() == "o")
    );
    assert_eq!(settings.thinking_budget, Some(2048));
}

#[test]
fn names_of_models() {
    let check = |text: &str, expect: Option<(&str, &str)>| {
        let parsed: Option<ModelRef> = text.parse().ok();
        let parts = parsed.as_ref().map(|model| (model.provider(), model.model()));
        assert_eq!(parts, expect, "{text:?}");
        if let Some(model) = parsed {
            assert_eq!(model.to_string(), text);
        }
    };
    check("a/b", Some(("a", "b")));
    check("a/b/c:d", Some(("a", "b/c:d")));
    for text in ["", "/", "a", "a/", "/b", "a b/c", "a/b\n", "a/\u{202e}b"] {
        check(text, None);
    }
}
