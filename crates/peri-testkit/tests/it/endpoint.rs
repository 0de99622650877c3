//! The scripted endpoint, asked over plain HTTP.

use futures::StreamExt;
use peri_acp_types::ports::{HeaderValue, HttpError, HttpMethod, HttpRequest, HttpTransport, Secret};
use peri_testkit::gate::Gate;
use peri_testkit::loopback_http::LoopbackHttp;
use peri_testkit::model_server::{Answer, FakeModelServer, Reply, Rest, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn conversation(answers: usize) -> Value {
    let user = json!({"role": "user", "content": [{"type": "text", "text": "go on"}]});
    let assistant = json!({"role": "assistant", "content": [{"type": "text", "text": "so"}]});
    let mut messages = vec![user.clone()];
    for _ in 0..answers {
        messages.extend([assistant.clone(), user.clone()]);
    }
    json!({"messages": messages})
}

fn request(server: &FakeModelServer, path: &str, body: &Value) -> HttpRequest {
    HttpRequest {
        method: HttpMethod::Post,
        url: format!("{}{path}", server.base_url()),
        headers: vec![
            ("X-Plain".to_owned(), HeaderValue::Plain("1".into())),
            ("x-api-key".to_owned(), HeaderValue::Secret(Secret::new("k"))),
        ],
        body: body.to_string().into(),
    }
}

/// Status and body; the body ends with the error if there is one.
async fn ask(server: &FakeModelServer, body: &Value) -> (u16, String) {
    let mut response = LoopbackHttp.send(request(server, "/v1/messages", body)).await.expect("a head");
    let mut text = String::new();
    while let Some(piece) = response.body.next().await {
        match piece {
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            Err(error) => text.push_str(&error.to_string()),
        }
    }
    (response.status, text)
}

#[tokio::test]
async fn requests_get_their_replies_in_order_and_are_kept() {
    let server = FakeModelServer::start([
        Reply::from(Answer::new().text("one")),
        Reply::status(529).header("retry-after", "1").error_body("overloaded_error", "Overloaded"),
    ]);
    let (status, first) = ask(&server, &conversation(0)).await;
    assert!(
        status == 200 && first.contains("\"text\":\"one\"") && first.ends_with("{\"type\":\"message_stop\"}\n\n"),
        "{first}"
    );
    let (status, second) = ask(&server, &conversation(0)).await;
    assert!(status == 529 && second.contains("overloaded_error"), "{second}");
    let (status, beyond) = ask(&server, &conversation(0)).await;
    assert!(status == 400 && beyond.contains("the script has no reply 2"), "{beyond}");
    let captured = server.requests().swap_remove(1);
    assert_eq!((captured.number, captured.connection, captured.method.as_str()), (1, 2, "POST"));
    assert_eq!((captured.header("x-plain"), captured.header("x-api-key")), (Some("1"), Some("k")));
    assert_eq!(captured.json, conversation(0));
    assert_eq!(captured.last_text(), "go on");
    server.check_invariants();
}

#[tokio::test]
async fn a_reply_by_history_does_not_count_requests() {
    let server = FakeModelServer::start(Script::by_history([Answer::new().text("one"), Answer::new().text("two")]));
    for (answers, text) in [(0, "one"), (0, "one"), (1, "two"), (0, "one")] {
        let (_, body) = ask(&server, &conversation(answers)).await;
        assert!(body.contains(&format!("\"text\":\"{text}\"")), "{answers}: {body}");
    }
}

#[tokio::test]
async fn other_paths_are_kept_apart_and_fail_the_check() {
    let server = FakeModelServer::start([Answer::new()]);
    let response = LoopbackHttp.send(request(&server, "/v1/elsewhere?x=1", &json!({}))).await.expect("a head");
    assert_eq!(response.status, 404);
    assert_eq!(server.unexpected()[0].path, "/v1/elsewhere?x=1");
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.check_invariants()));
    assert!(checked.is_err());
}

#[tokio::test]
async fn a_call_without_its_result_fails_the_check() {
    let server = FakeModelServer::start([Answer::new()]);
    let calls = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Read", "input": {}}]});
    let mut body = conversation(0);
    body["messages"].as_array_mut().expect("messages").push(calls);
    ask(&server, &body).await;
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.check_invariants()));
    assert!(checked.is_err());
}

#[tokio::test]
async fn a_connection_is_kept_and_closed_as_both_sides_say() {
    let server = FakeModelServer::start([
        Reply::from(Answer::new().text("kept")),
        Reply::status(204),
        Reply::status(200).body("last").until_close(),
    ]);
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", server.port())).await.expect("it listens");
    let post = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    let chunked =
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";
    // The second and third before the first is answered.
    stream.write_all([post, chunked, post].concat().as_bytes()).await.expect("it reads");
    let mut all = String::new();
    stream.read_to_string(&mut all).await.expect("it closes after the third");
    assert_eq!(all.matches("HTTP/1.1 ").count(), 3, "{all}");
    assert!(all.ends_with("connection: close\r\n\r\nlast"), "{all}");
    let connections: Vec<usize> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!((connections, server.connections()), (vec![1, 1, 1], 1));
    assert!(server.requests().iter().all(|request| request.json == json!({})));
}

#[tokio::test]
async fn faults_come_where_the_script_puts_them() {
    let whole = Reply::from(Answer::new().text("0123456789"));
    let half = whole.body_bytes() / 2;
    let server = FakeModelServer::start([
        whole.clone().after(half, Rest::Close),
        whole.clone().after(half, Rest::Reset),
        whole.clone().until_close().after(half, Rest::Close),
        whole.clone().byte_at_a_time(),
        whole.clone().crlf(),
        Reply::raw(["HTTP/1.1 200 OK\r\ncontent-le", "ngth: 2\r\n\r\nok"]),
    ]);
    let (_, closed) = ask(&server, &conversation(0)).await;
    assert!(closed.ends_with("connection broke: unexpected end of file"), "{closed}");
    let (_, reset) = ask(&server, &conversation(0)).await;
    assert!(reset.contains("Connection reset by peer"), "{reset}");
    let (_, cut) = ask(&server, &conversation(0)).await;
    assert_eq!(cut.len(), half, "an end like any other: {cut}");
    let (_, bytes) = ask(&server, &conversation(0)).await;
    assert_eq!(bytes.len(), whole.body_bytes());
    let (_, crlf) = ask(&server, &conversation(0)).await;
    assert_eq!(crlf.replace("\r\n", "\n"), bytes);
    assert_eq!(ask(&server, &conversation(0)).await, (200, "ok".to_owned()));
}

#[tokio::test]
async fn a_stall_lasts_until_the_gate_opens_or_the_client_leaves() {
    let (head, middle) = (Gate::shut(), Gate::shut());
    let stalled = Reply::from(Answer::new().text("late")).before_head(&head).after(10, Rest::Stall(middle.clone()));
    let never = Reply::from(Answer::new()).after(10, Rest::Stall(Gate::shut()));
    let server = FakeModelServer::start([stalled, never]);
    let body = conversation(0);
    let ((_, text), ()) = tokio::join!(ask(&server, &body), async {
        head.reached().await;
        head.open();
        middle.reached().await;
        middle.open();
    });
    assert!(text.ends_with("{\"type\":\"message_stop\"}\n\n"), "{text}");
    let mut response = LoopbackHttp.send(request(&server, "/v1/messages", &body)).await.expect("a head");
    response.body.next().await.expect("some bytes").expect("bytes");
    drop(response);
    server.hung_up(1).await;
}

#[test]
fn a_thread_may_wait_for_it_and_dropping_it_ends_it() {
    let gate = Gate::shut();
    let server = FakeModelServer::start([Reply::from(Answer::new()).before_head(&gate)]);
    let port = server.port();
    let client = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.write_all(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 0\r\n\r\n").expect("it reads");
        let mut rest = Vec::new();
        // Ends when the server does.
        let _ = stream.read_to_end(&mut rest);
        rest
    });
    server.block_until_requested(1);
    gate.block_until_reached();
    drop(server);
    assert!(client.join().expect("no panic").is_empty());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody listens any more");
}

#[tokio::test]
async fn the_transport_reaches_this_machine_only() {
    let server = FakeModelServer::start([Answer::new()]);
    let mut elsewhere = request(&server, "/", &json!({}));
    elsewhere.url = "http://198.51.100.1:80/".to_owned();
    assert!(matches!(LoopbackHttp.send(elsewhere).await, Err(HttpError::Invalid(_))));
}
