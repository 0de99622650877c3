//! From a model's name to everything that a request needs.

use peri_acp_types::ports::HeaderValue;
use peri_config::{ModelRef, Protocol, ResolvedModel};

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
    assert_eq!(resolved(&world), expect);
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

#[test]
fn settings_that_name_a_provider_are_not_joined_by_the_environment() {
    let named = r#"{"providers": {"mine": {"protocol": "anthropic"}}}"#;
    check(
        with(named).var("ANTHROPIC_API_KEY", "k").var("ANTHROPIC_MODEL", "m"),
        "error: no model is chosen; set `model` in settings.json, PERI_MODEL or --model to PROVIDER/MODEL, for example \
         `mine/MODEL` (providers: mine)",
    );
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let found = resolved(&World::new().var("ANTHROPIC_API_KEY", "").var("ANTHROPIC_BASE_URL", " "));
    assert!(found.starts_with("error: no model is chosen; set ANTHROPIC_API_KEY"), "{found}");
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
         ANTHROPIC_API_KEY to use `anthropic/MODEL`",
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
