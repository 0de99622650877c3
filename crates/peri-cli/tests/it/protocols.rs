//! The real binary against an endpoint of each protocol: what a user sees is the same.

use peri_acp_types::Usage;
use peri_model::ModelProtocol;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Rest, Script};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Each protocol and its word in settings.
const PROTOCOLS: [(ModelProtocol, &str); 3] = [
    (ModelProtocol::AnthropicMessages, "anthropic"),
    (ModelProtocol::OpenAiChat, "openai-chat"),
    (ModelProtocol::OpenAiResponses, "openai-responses"),
];

/// A user whose model is spoken to in that protocol.
fn sandbox(model: &FakeModelServer, (protocol, word): (ModelProtocol, &str)) -> Sandbox {
    let sandbox = Sandbox::new().env("MY_KEY", "sk-test-secret");
    sandbox.write_user_settings(&json!({
        "model": "mine/some-model",
        "retry": {"firstDelaySeconds": 0.01},
        "providers": {
            "mine": {"protocol": word, "baseUrl": model.base_url_for(protocol), "apiKeyEnv": "MY_KEY"},
        },
    }));
    sandbox
}

fn hello() -> Answer {
    let usage = Usage { input_tokens: 12, output_tokens: 3, cache_read_tokens: 5, cache_write_tokens: 0 };
    Answer::new().ping().thinking("Hm.", "c2ln").text_deltas(["Grüß ", "dich 🦀"]).usage(usage)
}

#[test]
fn a_text_turn_in_all_three_formats() {
    for protocol in PROTOCOLS {
        let model = FakeModelServer::start(Script::repeating_last([hello()]));
        let sandbox = sandbox(&model, protocol);
        sandbox.peri(["-p", "hello"]).run().code(0).stdout_is("Grüß dich 🦀\n");

        let run = sandbox.peri(["-p", "hello", "--output-format", "json"]).run();
        let result = run.code(0).json();
        let usage = json!({"input_tokens": 12, "output_tokens": 3,
            "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0});
        run.check(result["result"] == "Grüß dich 🦀" && result["subtype"] == "success", "the text")
            .check(result["usage"] == usage, "the provider's figures, what was cached apart")
            .check(result["stop_reason"] == "end_turn", "the model ended its turn");

        let run = sandbox.peri(["-p", "hello", "--output-format", "stream-json"]).run();
        let lines = run.code(0).json_lines();
        let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
        run.check(kinds == ["system", "assistant", "result"], "three lines");
        let content = lines[1]["message"]["content"].as_array().cloned().unwrap_or_default();
        let said: Vec<&Value> = content.iter().filter(|part| part["type"] == "text").collect();
        run.check(said == [&json!({"type": "text", "text": "Grüß dich 🦀"})], "the text in one part");
        model.check_invariants();
        assert!(model.requests().iter().all(|request| request.protocol() == Some(protocol.0)));
    }
}

#[test]
fn a_turn_that_calls_two_tools_at_once_and_goes_on() {
    for protocol in PROTOCOLS {
        let word = protocol.1;
        let calls: [(&str, &str, &[&str]); 2] = [
            ("call_1", "Read", &["{\"file_", "path\": \"notes.txt\"}"]),
            ("call_2", "Bash", &["{\"command\"", ": \"echo 4", "2\"}"]),
        ];
        let model = FakeModelServer::start(Script::by_history([
            Answer::new().thinking("Both.", "c2ln").text("I will look.").interleaved_tool_uses(&calls),
            Answer::new().tool_use("call_3", "Read", &json!({"file_path": "no such file"})),
            Answer::new().text("It says 42."),
            Answer::new().text("Still 42."),
        ]));
        let sandbox = sandbox(&model, protocol);
        sandbox.write(&sandbox.work().join("notes.txt"), "remember\n");
        let run = sandbox.peri(["-p", "--allowed-tools", "Bash(echo 42)", "look"]).run();
        run.code(0).stdout_is("It says 42.\n");
        let results = model.requests().pop().expect("a request").tool_results();
        let ids: Vec<&str> = results.iter().map(|(id, _)| id.as_str()).collect();
        run.check(ids == ["call_1", "call_2", "call_3"], &format!("{word}: each call has its result: {results:?}"))
            .check(results[0].1.contains("remember"), "the file was read")
            .check(results[1].1.contains("42"), "the command ran");

        let run = sandbox.peri(["-p", "-c", "and now?", "--output-format", "json"]).run();
        let result = run.code(0).json();
        run.check(result["result"] == "Still 42.", "the session goes on with its history");
        model.check_invariants();
    }
}

#[test]
fn faults_of_a_stream_are_recovered_from() {
    for protocol in PROTOCOLS {
        let partial = || Reply::from(Answer::new().text("partial"));
        let half = partial().body_bytes_in(protocol.0) / 2;
        let model = FakeModelServer::start(Script::in_order([
            Reply::status(529).header("retry-after", "0").error_body("overloaded_error", "Overloaded"),
            Reply::status(429).header("retry-after", "0").error_body("rate_limit_error", "Slow down"),
            Answer::new().text("partial").error("overloaded_error", "Overloaded").into(),
            partial().after(half, Rest::Reset),
            hello().into(),
        ]));
        let sandbox = sandbox(&model, protocol);
        let run = sandbox.peri(["-p", "hello"]).run();
        run.code(0).stdout_is("Grüß dich 🦀\n");
        run.check(model.requests().len() == 5, "five attempts");
        model.check_invariants();
    }
}

#[test]
fn failures_are_told_in_the_providers_words_and_never_a_success() {
    for protocol in PROTOCOLS {
        for (status, kind, words) in [
            (401, "authentication_error", "this key is not known"),
            (404, "not_found_error", "there is no model some-model"),
            (400, "invalid_request_error", "temperature is out of range"),
        ] {
            let model = FakeModelServer::start(Script::repeating_last([Reply::status(status).error_body(kind, words)]));
            let sandbox = sandbox(&model, protocol);
            let run = sandbox.peri(["-p", "hello"]).run();
            run.code(1).stderr_has(words).check(run.stdout.is_empty(), "nothing on stdout");
            run.check(model.requests().len() == 1, "not tried again");
        }
        let overloaded = Answer::new().text("partial").error("overloaded_error", "come back later");
        let model = FakeModelServer::start(Script::repeating_last([overloaded]));
        let run_sandbox = sandbox(&model, protocol);
        let run = run_sandbox.peri(["-p", "hello"]).run();
        run.code(1).stderr_has("come back later").check(model.requests().len() > 1, "tried again");
    }
}
