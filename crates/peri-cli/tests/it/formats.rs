//! The three output formats, over turns that talk, read, edit and run.

use peri_acp_types::Usage;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::sandbox::{Finished, Sandbox};

fn hello() -> Answer {
    let usage = Usage { input_tokens: 12, output_tokens: 3, cache_read_tokens: 5, cache_write_tokens: 7 };
    Answer::new().text_deltas(["Hel", "lo."]).usage(usage)
}

/// Reads a file, edits it, runs its test, and says that it is done.
fn mending(sandbox: &Sandbox) -> Script {
    let file = sandbox.work().join("answer.sh").display().to_string();
    Script::in_order([
        Answer::new().text("I will look.").tool_use("toolu_1", "Read", &json!({"file_path": file})),
        Answer::new().tool_use(
            "toolu_2",
            "Edit",
            &json!({"file_path": file, "old_string": "echo 41", "new_string": "echo 42"}),
        ),
        Answer::new().tool_use("toolu_3", "Bash", &json!({"command": "sh answer.sh"})),
        Answer::new().text("It says 42 now."),
    ])
}

/// A sandbox with something to mend.
fn with_something_to_mend() -> (Sandbox, FakeModelServer) {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.work().join("answer.sh"), "echo 41\n");
    let model = FakeModelServer::start(mending(&sandbox));
    (sandbox.and_model(&model.base_url()), model)
}

const MENDING: [&str; 6] =
    ["-p", "--permission-mode", "accept-edits", "--allowed-tools", "Bash(sh answer.sh)", "mend it"];

fn lines_of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[track_caller]
fn check_result(run: &Finished<'_>, result: &Value, text: &str) {
    run.check(result["type"] == "result", "the type is `result`")
        .check(result["subtype"] == "success", "the subtype is `success`")
        .check(result["is_error"] == false, "it is no error")
        .check(result["result"] == text, "the text is the answer's")
        .check(result["stop_reason"] == "end_turn", "the model ended its turn")
        .check(result["duration_ms"].is_u64() && result["duration_api_ms"].is_u64(), "there are durations")
        .check(result["session_id"].as_str().is_some_and(|id| id.len() == 36), "there is a session id");
}

/// A server over standard streams, with one tool.
const SEARCHING_SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"search","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}}]}' ;;
    *) result='{}' ;;
  esac
  if [ -n "$id" ]; then printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"; fi
done
"#;

#[test]
fn servers_that_are_connected_are_named_at_the_start() {
    let model = FakeModelServer::start(Script::repeating_last([hello()]));
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.write_user_settings(&json!({
        "model": "mine/some-model",
        "providers": {"mine": {"protocol": "anthropic", "baseUrl": model.base_url(), "apiKeyEnv": "MY_KEY"}},
        "mcpServers": {
            "docs": {"command": "sh", "args": ["-c", SEARCHING_SERVER]},
            "absent": {"command": "no-such-program-here"},
        },
    }));
    let run = sandbox.peri(["-p", "hi", "--output-format", "stream-json"]).run();
    let lines = run.code(0).json_lines();
    run.check(lines[0]["mcp_servers"] == json!([{"name": "docs", "status": "connected"}]), "the one that is connected");
    run.check(lines[1]["subtype"] == "notice", "what was found on the way comes after the first line")
        .check(lines[1]["text"].as_str().is_some_and(|text| text.contains("`absent`")), "it tells of the other")
        .check(lines[1]["session_id"] == lines[0]["session_id"], "it is of the session");
}

#[test]
fn a_text_turn() {
    let model = FakeModelServer::start(Script::repeating_last([hello()]));
    let sandbox = Sandbox::with_model(&model.base_url());

    let run = sandbox.peri(["-p", "say hello"]).run();
    run.code(0).stdout_is("Hello.\n").check(run.stderr.is_empty(), "nothing on stderr that is no terminal");

    let run = sandbox.peri(["-p", "say hello", "--output-format", "json"]).run();
    let result = run.code(0).json();
    check_result(&run, &result, "Hello.");
    let usage = json!({"input_tokens": 12, "output_tokens": 3,
        "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7});
    run.check(result["usage"] == usage, "the provider's figures")
        .check(result["num_turns"] == 1, "one request")
        .check(result["permission_denials"] == json!([]), "nothing was denied");

    let run = sandbox.peri(["-p", "say hello", "--output-format", "stream-json"]).run();
    let lines = run.code(0).json_lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    run.check(kinds == ["system", "assistant", "result"], "three lines");
    let init = &lines[0];
    run.check(init["subtype"] == "init", "the first line is system/init")
        .check(init["model"] == "mine/some-model" && init["permissionMode"] == "default", "model and mode")
        .check(init["cwd"] == sandbox.canonical_work(), "the working directory")
        .check(init["tools"].as_array().is_some_and(|tools| tools.contains(&json!("Read"))), "the tools");
    let message = &lines[1]["message"];
    run.check(message["role"] == "assistant" && message["type"] == "message", "an assistant message")
        .check(message["content"] == json!([{"type": "text", "text": "Hello."}]), "its text")
        .check(message["stop_reason"] == "end_turn" && message["usage"] == usage, "its end and figures")
        .check(lines[1]["parent_tool_use_id"].is_null(), "no parent")
        .check(lines.iter().all(|line| line["session_id"] == init["session_id"]), "one session")
        .check(lines.iter().all(|line| line["uuid"].is_string()), "each line has an id");
    check_result(&run, &lines[2], "Hello.");
    assert!(model.unexpected().is_empty());
}

#[test]
fn pieces_of_an_answer_are_lines_if_asked_for() {
    let model = FakeModelServer::start(Script::in_order([hello()]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--output-format", "stream-json", "--include-partial-messages"]).run();
    let lines = run.code(0).json_lines();
    let events: Vec<&Value> = lines_of_type(&lines, "stream_event").into_iter().map(|line| &line["event"]).collect();
    let text: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    run.check(text == "Hello.", "the deltas make the text");
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    run.check(kinds.first() == Some(&"message_start") && kinds.last() == Some(&"message_stop"), "start and stop");
}

#[test]
fn a_turn_that_reads_edits_and_runs_a_test_in_text() {
    let (sandbox, model) = with_something_to_mend();
    let run = sandbox.peri(MENDING).run();
    run.code(0).stdout_is("It says 42 now.\n");
    let file = std::fs::read_to_string(sandbox.work().join("answer.sh")).expect("the file");
    run.check(file == "echo 42\n", "the file is mended");
    model.check_invariants();
    let last = model.requests().pop().expect("a request");
    let results = last.tool_results();
    run.check(results[0].1.contains("echo 41"), "the model read the file");
    run.check(results[2].1.contains("42"), "the model saw the test's output");
}

#[test]
fn a_turn_that_reads_edits_and_runs_a_test_in_json() {
    let (sandbox, _model) = with_something_to_mend();
    let run = sandbox.peri(MENDING.into_iter().chain(["--output-format", "json"])).run();
    let result = run.code(0).json();
    check_result(&run, &result, "It says 42 now.");
    run.check(result["num_turns"] == 4, "four requests").check(result["usage"]["input_tokens"] == 400, "added up");
}

#[test]
fn a_turn_that_reads_edits_and_runs_a_test_in_stream_json() {
    let (sandbox, _model) = with_something_to_mend();
    let run = sandbox.peri(MENDING.into_iter().chain(["--output-format", "stream-json"])).run();
    let lines = run.code(0).json_lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    let step = ["assistant", "user"];
    let expected = [&["system"][..], &step, &step, &step, &["assistant", "result"]].concat();
    run.check(kinds == expected, "each step is an answer and its results");
    for (number, id) in ["toolu_1", "toolu_2", "toolu_3"].into_iter().enumerate() {
        let (answer, results) = (&lines[1 + 2 * number]["message"], &lines[2 + 2 * number]["message"]);
        let call = answer["content"].as_array().and_then(|content| content.last());
        run.check(call.is_some_and(|call| call["type"] == "tool_use" && call["id"] == id), "the call")
            .check(answer["stop_reason"] == "tool_use", "the answer wants a tool");
        let result = &results["content"][0];
        run.check(results["role"] == "user" && result["type"] == "tool_result", "the result")
            .check(result["tool_use_id"] == id && result["is_error"] == false, "it answers the call");
    }
    check_result(&run, lines.last().expect("a line"), "It says 42 now.");
}

#[test]
fn a_failure_has_a_result_object_and_words() {
    let script =
        Script::repeating_last([Reply::status(401).error_body("authentication_error", "bad key sk-test-secret")]);
    let model = FakeModelServer::start(script);
    let sandbox = Sandbox::with_model(&model.base_url());

    let run = sandbox.peri(["-p", "x"]).run();
    run.code(1).stdout_is("").stderr_has("mine/some-model").stderr_has("HTTP 401").stderr_has("hint:");
    run.check(!run.stderr.contains("sk-test-secret"), "the key is nowhere");

    let run = sandbox.peri(["-p", "x", "--output-format", "json"]).run();
    let result = run.code(1).json();
    run.check(result["subtype"] == "error_during_execution" && result["is_error"] == true, "an error result")
        .check(result["session_id"].is_string(), "the session is named")
        .check(!run.stdout.contains("sk-test-secret"), "the key is nowhere");

    let run = sandbox.peri(["-p", "x", "--output-format", "stream-json"]).run();
    let lines = run.code(1).json_lines();
    run.check(lines.last().is_some_and(|line| line["is_error"] == true), "the last line is an error result");
}

#[test]
fn an_overload_in_mid_stream_is_tried_again_and_leaves_no_trace_in_the_answer() {
    let overloaded = Answer::new().text("Half an ans").error("overloaded_error", "Overloaded");
    let model = FakeModelServer::start(Script::in_order([overloaded, hello()]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let settings = r#"{"retry": {"firstDelaySeconds": 0.01}}"#;
    let run = sandbox.peri(["-p", "x", "--output-format", "stream-json", "--settings", settings]).run();
    let lines = run.code(0).json_lines();
    check_result(&run, lines.last().expect("a line"), "Hello.");
    run.check(!run.stdout.contains("Half an ans"), "the void text is nowhere")
        .check(lines.iter().any(|line| line["subtype"] == "api_retry"), "the retry is told");
}

#[test]
fn verbose_shows_progress_and_colour_follows_the_variables() {
    let (sandbox, _model) = with_something_to_mend();
    let run = sandbox.peri(MENDING.into_iter().chain(["--verbose"])).env("CLICOLOR_FORCE", Some("1")).run();
    run.code(0).stdout_is("It says 42 now.\n").stderr_has("→ ").stderr_has("sh answer.sh").stderr_has("\x1b[");

    let (sandbox, _model) = with_something_to_mend();
    let run = sandbox
        .peri(MENDING.into_iter().chain(["--verbose"]))
        .env("CLICOLOR_FORCE", Some("1"))
        .env("NO_COLOR", Some("1"))
        .run();
    run.code(0).check(!run.stderr.contains('\x1b'), "no colour with NO_COLOR");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let endless = Script::computed(|request| {
        let text = "x".repeat(200_000);
        let id = format!("toolu_{}", request.number);
        Answer::new().text(&text).tool_use(&id, "Glob", &json!({"pattern": "*", "path": format!("{}", request.number)}))
    });
    let model = FakeModelServer::start(endless);
    let sandbox = Sandbox::with_model(&model.base_url());
    let run = sandbox.peri(["-p", "x", "--output-format", "stream-json"]).stdout_closed_after(1).run();
    run.check(run.status.code() == Some(1), "it ended by itself").check(run.stderr.is_empty(), "and said nothing");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let model = FakeModelServer::start(Script::repeating_last([hello()]));
    let sandbox = Sandbox::with_model(&model.base_url());
    for format in ["text", "json", "stream-json"] {
        let run = sandbox.peri(["-p", "x", "--output-format", format]).stdout_full().run();
        run.code(1).stderr_has("standard output cannot be written");
    }
}
