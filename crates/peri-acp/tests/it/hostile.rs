//! A client that means harm, or is broken: each frame gets what JSON-RPC says, and the connection lives.

use futures::StreamExt;
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::bytes::{RawClient, over_bytes};
use crate::world::{CWD, World};

/// The code of the one answer to this line, from an agent that has been initialised; its id is the line's.
async fn check(line: &str, id: Value, code: i64) {
    let world = World::new([FakeModel::default()]);
    let (mut client, _served) = over_bytes(&world);
    client.initialize().await;
    client.write_line(line.as_bytes()).await;
    let answer = client.next().await;
    let shown: String = line.chars().take(200).collect();
    assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    assert_eq!(answer["id"], id, "{shown}");
    client.still_there().await;
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[tokio::test]
async fn params_of_the_wrong_type_are_refused_whatever_the_method() {
    let methods = [
        "authenticate",
        "session/new",
        "session/load",
        "session/resume",
        "session/prompt",
        "session/set_mode",
        "session/set_config_option",
        "session/close",
        "session/delete",
    ];
    for method in methods {
        for params in ["{}", "[]", "[1]", r#"{"sessionId":7,"cwd":[],"prompt":"x","methodId":{},"modeId":0}"#] {
            check(&request("5", method, params), json!(5), -32602).await;
        }
    }
    check(&request("5", "session/list", r#"{"cwd":7}"#), json!(5), -32602).await;
    check(r#"{"jsonrpc":"2.0","id":5,"method":"session/new"}"#, json!(5), -32602).await;
    check(&request("5", "session/new", "7"), Value::Null, -32600).await;
}

#[tokio::test]
async fn ids_come_back_as_they_were_and_what_is_none_is_refused() {
    let lists = |id: &str| request(id, "session/list", "{}");
    let long = format!("\"{}\"", "x".repeat(100_000));
    for id in ["0", "-1", "9223372036854775807", "-9223372036854775808", "\"\"", "\"🦀\"", "null", &long] {
        let world = World::new([]);
        let (mut client, _served) = over_bytes(&world);
        client.initialize().await;
        client.write_line(lists(id).as_bytes()).await;
        let answer = client.next().await;
        assert_eq!(answer["id"].to_string(), serde_json::from_str::<Value>(id).expect("JSON").to_string());
        assert!(answer["result"]["sessions"].is_array(), "{answer}");
    }
    for id in ["9223372036854775808", "1e400", "1.5", "[]", "{}", "true"] {
        let world = World::new([]);
        let (mut client, _served) = over_bytes(&world);
        client.initialize().await;
        client.write_line(lists(id).as_bytes()).await;
        let answer = client.next().await;
        assert_eq!(answer["id"], Value::Null, "{id}: {answer}");
        assert!([json!(-32600), json!(-32700)].contains(&answer["error"]["code"]), "{id}: {answer}");
        client.still_there().await;
    }
}

#[tokio::test]
async fn an_id_that_is_used_twice_is_answered_twice() {
    let world = World::new([FakeModel::new([FakeAnswer::Hangs { text: String::new() }])]);
    let (mut client, _served) = over_bytes(&world);
    client.initialize().await;
    let line = request("5", "session/list", "{}");
    for _ in 0..2 {
        client.write_line(line.as_bytes()).await;
    }
    for _ in 0..2 {
        let answer = client.next().await;
        assert_eq!(answer["id"], 5);
        assert!(answer["result"]["sessions"].is_array(), "{answer}");
    }
}

#[tokio::test]
async fn depth_and_length_are_bounded() {
    let deep = |open: &str, close: &str| {
        let value = format!("{}{}", open.repeat(200_000), close.repeat(200_000));
        request("5", "session/new", &format!(r#"{{"cwd":"{CWD}","mcpServers":[],"_meta":{{"x":{value}}}}}"#))
    };
    check(&deep("[", "]"), Value::Null, -32700).await;
    check(&deep("{\"a\":", "}").replace(":}", ":1}"), Value::Null, -32700).await;
    check(&"[".repeat(1_000_000), Value::Null, -32700).await;
    check(&request("5", "session/new", &format!("\"{}\"", "x".repeat(33 * 1024 * 1024))), Value::Null, -32600).await;
}

#[tokio::test]
async fn what_no_rule_lets_be_answered_is_passed_over() {
    let world = World::new([]);
    let (mut client, _served) = over_bytes(&world);
    client.initialize().await;
    let stranger = "01234567-89ab-7def-8123-456789abcdef";
    for line in [
        // Answers to nothing, by any id.
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": {}, "result": 1}),
        json!({"jsonrpc": "2.0", "result": 1}),
        // Notifications that nobody knows, or of a session that is not there, or of another form.
        json!({"jsonrpc": "2.0", "method": "x"}),
        json!({"jsonrpc": "2.0", "method": "x", "params": {"sessionId": stranger}}),
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": stranger, "update": 7}}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": stranger}}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "no-uuid"}}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": [7]}),
        json!({"jsonrpc": "2.0", "method": "session/cancel"}),
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}}),
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": {}}}),
        // A request without an id is none.
        json!({"jsonrpc": "2.0", "method": "session/new", "params": {"cwd": CWD, "mcpServers": []}}),
        json!({"jsonrpc": "2.0", "method": "initialize", "params": {"protocolVersion": 7}}),
    ] {
        client.write_line(line.to_string().as_bytes()).await;
    }
    client.still_there().await;
}

#[tokio::test]
async fn a_line_in_pieces_is_one_and_a_half_line_at_the_end_is_refused() {
    let world = World::new([]);
    let (mut client, served) = over_bytes(&world);
    client.initialize().await;
    for byte in request("5", "session/list", "{}").bytes() {
        client.write(&[byte]).await;
    }
    client.write(b"\r\n").await;
    assert_eq!(client.next().await["id"], 5);
    client.write(br#"{"jsonrpc":"2.0","id":6,"meth"#).await;
    let mut messages = client.stop_sending().await;
    assert_eq!(messages.next().await.map(|answer| answer["error"]["code"].clone()), Some(json!(-32700)));
    assert_eq!(messages.next().await, None);
    served.end().await.expect("the connection ends in order");
}

#[tokio::test]
async fn a_flood_of_notifications_is_neither_kept_nor_in_the_way() {
    let world = World::new([FakeModel::new([FakeAnswer::text("Hello.")])]);
    let (mut client, _served) = over_bytes(&world);
    client.initialize().await;
    let session = client.new_session().await;
    let large = "x".repeat(8 * 1024);
    for number in 0..1_100 {
        let unknown = json!({"sessionId": session, "number": number, "text": large});
        let unknown = json!({"jsonrpc": "2.0", "method": "session/unknown", "params": unknown});
        client.write_line(unknown.to_string().as_bytes()).await;
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
        client.write_line(cancel.to_string().as_bytes()).await;
    }
    client.still_there().await;
}

#[tokio::test]
async fn an_answer_of_a_wrong_form_to_our_question_refuses_the_call() {
    for result in ["7", "null", "{}", r#"{"outcome":{"outcome":"selected"}}"#, r#"{"outcome":{"outcome":"maybe"}}"#] {
        let model = FakeModel::new([
            FakeAnswer::calls(&[("call-1", "Bash", json!({"command": "make test"}))]),
            FakeAnswer::text("Done."),
        ]);
        let world = World::new([model]);
        let (mut client, _served) = over_bytes(&world);
        client.initialize().await;
        let session = client.new_session().await;
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        client.write_line(request("8", "session/prompt", &prompt.to_string()).as_bytes()).await;
        let question = client.until(|message| message["method"] == "session/request_permission").await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, question["id"]);
        // The same answer again is one to nothing.
        client.write_line(answer.as_bytes()).await;
        client.write_line(answer.as_bytes()).await;
        let ended = client.until(|message| message["params"]["update"]["status"] == "failed").await;
        assert_eq!(ended["params"]["update"]["toolCallId"], "call-1", "{result}");
        let answered = client.until(|message| message["id"] == 8).await;
        assert_eq!(answered["result"]["stopReason"], "end_turn", "{result}");
    }
}

impl RawClient {
    /// The agent answers as ever, and with nothing else before.
    async fn still_there(&mut self) {
        self.write_line(request("\"still there\"", "session/list", "{}").as_bytes()).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], "still there", "{answer}");
        assert!(answer["result"]["sessions"].is_array(), "{answer}");
    }
}
