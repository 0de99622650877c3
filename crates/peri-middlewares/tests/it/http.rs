//! Servers that speak streamable HTTP, well and badly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use peri_acp_types::ToolOutput;
use peri_acp_types::ports::{
    HeaderValue, McpConnectError, McpConnector, McpDuplex, McpServerSpec, McpTransport, Secret,
};
use peri_agent::{Contribution, Middleware, PendingCall};
use peri_middlewares::mcp::{McpConfig, McpMiddleware, McpPorts, http};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bridge::tool;
use crate::fakes::{FakeBroker, pending, scope};
use crate::http_port::HyperTransport;
use crate::http_server::{Answer, Heard, HttpServer};
use crate::process::TokioClock;

#[derive(Default)]
struct Http {
    serving: std::sync::Mutex<JoinSet<Result<(), String>>>,
}

#[async_trait::async_trait]
impl McpConnector for Http {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let link = http::open(Arc::new(HyperTransport), Arc::new(TokioClock), server)?;
        self.serving.lock().unwrap().spawn(link.serving);
        Ok(link.duplex)
    }
}

struct Bridge {
    middleware: McpMiddleware,
    offered: Contribution,
}

const TOKEN: &str = "Bearer geheim-geheim";

async fn bridge_to(url: &str) -> Bridge {
    bridge_with(url, TOKEN).await
}

async fn bridge_with(url: &str, authorization: &str) -> Bridge {
    let header = |name: &str, value: HeaderValue| (name.to_owned(), value);
    let headers = vec![
        header("Authorization", HeaderValue::Secret(Secret::new(authorization))),
        // One that is the protocol's has no effect.
        header("Mcp-Session-Id", HeaderValue::Plain("mine".to_owned())),
    ];
    let spec = McpServerSpec {
        name: "web".to_owned(),
        roots: vec!["/work".to_owned()],
        hidden_env: Vec::new(),
        transport: McpTransport::Http { url: url.to_owned(), headers },
    };
    let ports = McpPorts {
        connector: Arc::<Http>::default(),
        clock: Arc::new(TokioClock),
        broker: Arc::<FakeBroker>::default(),
    };
    let middleware = McpMiddleware::new(McpConfig { servers: vec![spec], ..McpConfig::default() }, ports);
    let offered = middleware.open(&scope()).await;
    Bridge { middleware, offered }
}

impl Bridge {
    fn pending(&self) -> PendingCall {
        let spec = self.offered.tools.first().unwrap_or_else(|| panic!("no tool: {:?}", self.offered.notices));
        pending(spec.clone(), json!({}))
    }

    async fn call(&self) -> ToolOutput {
        self.middleware.run_call(&self.pending()).await.expect("its own tool")
    }

    fn notice(&self) -> &str {
        self.offered.notices.first().map_or("", |(_, text)| text)
    }
}

fn result(heard: &Heard, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": heard.body["id"], "result": result})
}

fn done(heard: &Heard) -> Value {
    result(heard, json!({"content": [{"type": "text", "text": "done"}]}))
}

/// The answer to the handshake.
fn greeting(heard: &Heard) -> Value {
    let info = json!({"name": "web", "version": "1"});
    result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}))
}

/// What every server here answers alike; the rest is the handler's.
fn usual(heard: &Heard, rest: impl FnOnce(&Heard) -> Answer) -> Answer {
    match heard.kind() {
        "initialize" => Answer::json(&greeting(heard)).with_header("mcp-session-id", "s1"),
        "notifications/initialized" | "notifications/cancelled" => Answer::new(202, "text/plain", ""),
        "tools/list" => Answer::json(&result(heard, json!({"tools": [tool("run")]}))),
        "GET" if heard.header("last-event-id").is_none() => Answer::new(405, "text/plain", ""),
        "DELETE" => Answer::new(200, "text/plain", ""),
        _ => rest(heard),
    }
}

fn event(id: &str, message: &Value) -> Bytes {
    format!("id: {id}\ndata: {message}\n\n").into()
}

#[tokio::test]
async fn a_session_from_the_handshake_to_its_deletion() {
    let server = HttpServer::start(|heard| usual(heard, |heard| Answer::json(&done(heard)))).await;
    let bridge = bridge_to(&server.url).await;
    assert_eq!(bridge.notice(), "");
    assert_eq!(bridge.call().await, ToolOutput::text("done"));
    assert_eq!(bridge.middleware.close(&scope()).await, [""; 0]);
    server.hears("DELETE", 1).await;

    let first = server.hears("initialize", 1).await;
    assert_eq!((first.header("mcp-session-id"), first.header("mcp-protocol-version")), (None, None));
    for kind in ["notifications/initialized", "tools/list", "tools/call", "DELETE"] {
        let heard = server.hears(kind, 1).await;
        assert_eq!(heard.header("mcp-session-id"), Some("s1"), "{kind}");
        assert_eq!(heard.header("mcp-protocol-version"), Some("2025-06-18"), "{kind}");
        assert_eq!(heard.header("authorization"), Some(TOKEN), "{kind}");
    }
    let call = server.hears("tools/call", 1).await;
    assert_eq!(call.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(call.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn an_answer_may_come_as_events_among_others() {
    let server = HttpServer::start(|heard| {
        usual(heard, |heard| {
            let (events, answer) = Answer::events();
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
            events.unbounded_send(": hello\r\n\r\nevent: ping\ndata: x\n\ndata: rubbish\n\n".into()).unwrap();
            events.unbounded_send(event("1", &progress)).unwrap();
            // A message in pieces.
            let whole = event("2", &done(heard));
            events.unbounded_send(whole.slice(..20)).unwrap();
            events.unbounded_send(whole.slice(20..)).unwrap();
            answer
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    for _ in 0..3 {
        assert_eq!(bridge.call().await, ToolOutput::text("done"));
    }
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_taken_up_where_it_was() {
    let waiting = Arc::new(std::sync::Mutex::new(Value::Null));
    let server = HttpServer::start(move |heard| {
        usual(heard, |heard| {
            let (events, answer) = Answer::events();
            if heard.kind() == "GET" {
                events.unbounded_send(event("8", &waiting.lock().unwrap())).unwrap();
            } else {
                *waiting.lock().unwrap() = done(heard);
                events.unbounded_send("id: 7\nretry: 10\ndata:\n\n".into()).unwrap();
            }
            answer
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    assert_eq!(bridge.call().await, ToolOutput::text("done"));
    let heard = server.all();
    let resumed = heard.iter().find(|heard| heard.header("last-event-id").is_some()).expect("resumed");
    assert_eq!(resumed.header("last-event-id"), Some("7"));
    assert_eq!((resumed.header("mcp-session-id"), resumed.header("authorization")), (Some("s1"), Some(TOKEN)));
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_is_an_error_of_its_call() {
    let server = HttpServer::start(|heard| {
        usual(heard, |_| {
            let (events, answer) = Answer::events();
            events.unbounded_send("data: {\"cut\":\n\n".into()).unwrap();
            answer
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    let output = bridge.call().await;
    assert!(
        output.is_error && output.joined_text().contains("the stream broke off before the answer had come"),
        "{output:?}"
    );
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn an_expired_session_is_begun_anew() {
    let (sessions, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = HttpServer::start(move |heard| match heard.kind() {
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let mut answer = usual(heard, |_| unreachable!("usual"));
            answer.headers.retain(|(name, _)| *name != "mcp-session-id");
            answer.with_header("mcp-session-id", &format!("s{number}"))
        }
        _ => usual(heard, |heard| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::new(404, "text/plain", ""),
            _ => Answer::json(&done(heard)),
        }),
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    assert_eq!(bridge.call().await, ToolOutput::text("done"));
    assert_eq!(server.hears("tools/call", 2).await.header("mcp-session-id"), Some("s2"));
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn refusals_say_why_and_show_no_secret() {
    for (status, kind, body, expect) in [
        (503, "text/plain", "busy, Bearer geheim-geheim", "it answered HTTP 503: busy, [redacted]"),
        (500, "text/html", "", "it answered HTTP 500"),
        (401, "text/plain", "", "it wants authorization (HTTP 401)"),
        (307, "text/plain", "", "it answered HTTP 307: the URL has moved"),
        (200, "text/html", "<html>", "its answer (HTTP 200) is neither JSON nor an event stream: text/html"),
        (200, "application/json", "{\"x\":", "its answer cannot be understood"),
    ] {
        let server = HttpServer::start(move |heard| usual(heard, |_| Answer::new(status, kind, body))).await;
        let bridge = bridge_to(&server.url).await;
        let output = bridge.call().await;
        let text = output.joined_text();
        assert!(output.is_error && text.contains(expect), "{status}: {text}");
        assert!(text.starts_with("MCP server `web` gave no result for `run`: "), "{text}");
        assert!(!text.contains("geheim"), "{text}");
        bridge.middleware.close(&scope()).await;
    }
}

#[tokio::test]
async fn a_header_is_known_in_its_parts() {
    const BARE: &str = "geheim-geheim";
    let error = |text: &str| json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": text}}).to_string();
    for authorization in ["Bearer geheim-geheim", "Basic geheim-geheim", BARE] {
        for (status, kind, body) in [
            (403, "text/plain", format!("bad token: {BARE}")),
            (403, "text/plain", format!("bad token: {authorization}")),
            // Cut in the middle of it.
            (403, "text/plain", format!("{}{BARE}", "x".repeat(2040))),
            (400, "application/json", error(BARE)),
            (200, "application/json", error(BARE)),
            (200, BARE, String::new()),
        ] {
            let server = HttpServer::start({
                let body = body.clone();
                move |_| Answer::new(status, kind, body.clone())
            })
            .await;
            let bridge = bridge_with(&server.url, authorization).await;
            let notice = bridge.notice();
            assert!(notice.starts_with("MCP server `web` did not start: "), "{notice}");
            // A long body is cut once more where it is shown.
            let is_told = notice.contains("[redacted]") || notice.ends_with('…');
            assert!(is_told && !notice.contains("geheim"), "{authorization}, {status}: {notice}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_cannot_be_understood_costs_no_other() {
    for by_events in [false, true] {
        let server = HttpServer::start(move |heard| match heard.kind() {
            "tools/list" => {
                let odd = json!({"name": null, "inputSchema": {}});
                let list = result(heard, json!({"tools": [{"name": "odd"}, tool("run"), odd]}));
                if !by_events {
                    return Answer::json(&list);
                }
                let (events, answer) = Answer::events();
                events.unbounded_send(event("1", &list)).unwrap();
                answer
            }
            _ => usual(heard, |heard| Answer::json(&done(heard))),
        })
        .await;
        let bridge = bridge_to(&server.url).await;
        assert_eq!(bridge.call().await, ToolOutput::text("done"));
        let (notice, words) =
            (bridge.notice(), "MCP server `web` lists what cannot be used and is left out: tool `odd` (");
        assert!(notice.starts_with(words) && notice.contains("tool number 3 ("), "{notice}");
        bridge.middleware.close(&scope()).await;
    }
}

#[tokio::test]
async fn answers_to_nothing_are_passed_over() {
    let stray = json!({"jsonrpc": "2.0", "id": 999, "result": {}});
    let sent = stray.clone();
    let server = HttpServer::start(move |heard| {
        let by_events = |answer: Value| {
            let (events, stream) = Answer::events();
            for bytes in [
                "data: rubbish

"
                .into(),
                event("1", &sent),
                event("2", &answer),
            ] {
                events.unbounded_send(bytes).unwrap();
            }
            stream
        };
        match heard.kind() {
            "initialize" => by_events(greeting(heard)).with_header("mcp-session-id", "s1"),
            _ => usual(heard, |heard| by_events(done(heard))),
        }
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    assert_eq!(bridge.call().await, ToolOutput::text("done"));
    bridge.middleware.close(&scope()).await;
    // Where no other can follow, it is an error.
    let server = HttpServer::start(move |_| Answer::json(&stray)).await;
    let bridge = bridge_to(&server.url).await;
    assert!(bridge.notice().contains("its answer is for another request than it was sent"), "{}", bridge.notice());
}

#[tokio::test]
async fn an_error_of_the_protocol_counts_more_than_its_status() {
    let server = HttpServer::start(|heard| {
        usual(heard, |heard| {
            let error =
                json!({"jsonrpc": "2.0", "id": heard.body["id"], "error": {"code": -32602, "message": "no such tool"}});
            Answer::new(400, "application/json", error.to_string())
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    assert_eq!(bridge.call().await, ToolOutput::error("no such tool"));
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn starts_that_fail_say_why() {
    let server = HttpServer::start(|_| Answer::new(401, "text/plain", "")).await;
    let refused = bridge_to(&server.url).await;
    assert!(
        refused.notice().starts_with("MCP server `web` did not start: it wants authorization"),
        "{}",
        refused.notice()
    );

    let url = server.url.clone();
    drop(server);
    let nobody = bridge_to(&url).await;
    assert!(nobody.notice().starts_with("MCP server `web` did not start: cannot connect: "), "{}", nobody.notice());
}

#[tokio::test]
async fn what_is_too_long_is_not_held() {
    let server = HttpServer::start(|heard| {
        usual(heard, |_| {
            let body = futures::stream::repeat_with(|| Bytes::from(vec![b'x'; 1024 * 1024]));
            Answer { body: Box::pin(body), ..Answer::new(200, "application/json", "") }
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    let text = bridge.call().await.joined_text();
    assert!(text.contains("its answer is longer than 16 MiB"), "{text}");
    bridge.middleware.close(&scope()).await;

    let server = HttpServer::start(|heard| {
        usual(heard, |_| {
            let first = futures::stream::once(async { Bytes::from("id: 1\ndata:\n\ndata: ") });
            let rest = futures::stream::repeat_with(|| Bytes::from(vec![b'x'; 1024 * 1024]));
            let body = futures::StreamExt::chain(first, rest);
            Answer { body: Box::pin(body), ..Answer::new(200, "text/event-stream", "") }
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    let output = bridge.call().await;
    assert!(
        output.is_error && output.joined_text().contains("the stream broke off before the answer had come"),
        "{output:?}"
    );
    let resumed = server.all().iter().any(|heard| heard.header("last-event-id").is_some());
    assert!(!resumed, "it would come again");
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_the_server() {
    let held = std::sync::Mutex::new(Vec::new());
    let server = HttpServer::start(move |heard| {
        usual(heard, |_| {
            let (events, answer) = Answer::events();
            held.lock().unwrap().push(events);
            answer
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    let call = bridge.pending();
    tokio::select! {
        output = bridge.middleware.run_call(&call) => panic!("{output:?}"),
        _ = server.hears("tools/call", 1) => {}
    }
    let cancelled = server.hears("notifications/cancelled", 1).await;
    assert_eq!(cancelled.body["params"]["requestId"], server.hears("tools/call", 1).await.body["id"]);
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let first = std::sync::Mutex::<Option<(futures::channel::mpsc::UnboundedSender<Bytes>, Value)>>::new(None);
    let server = HttpServer::start(move |heard| {
        usual(heard, |heard| {
            let (events, answer) = Answer::events();
            // The first is answered when the second has come.
            let mut first = first.lock().unwrap();
            match first.take() {
                None => *first = Some((events, done(heard))),
                Some((waiting, message)) => {
                    waiting.unbounded_send(event("1", &message)).unwrap();
                    events.unbounded_send(event("1", &done(heard))).unwrap();
                }
            }
            answer
        })
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    let (one, two) = futures::join!(bridge.call(), bridge.call());
    assert_eq!((one, two), (ToolOutput::text("done"), ToolOutput::text("done")));
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn a_server_may_speak_up_by_itself() {
    let open = Arc::new(std::sync::Mutex::new(None));
    let held = open.clone();
    let server = HttpServer::start(move |heard| match heard.kind() {
        "GET" => {
            let (events, answer) = Answer::events();
            *held.lock().unwrap() = Some(events);
            answer
        }
        _ => usual(heard, |heard| match heard.body.get("method") {
            Some(_) => Answer::json(&done(heard)),
            None => Answer::new(202, "text/plain", ""),
        }),
    })
    .await;
    let bridge = bridge_to(&server.url).await;
    let stream = server.hears("GET", 1).await;
    assert_eq!(stream.header("accept"), Some("application/json, text/event-stream"));
    let question = json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"});
    open.lock().unwrap().as_ref().expect("open").unbounded_send(event("1", &question)).unwrap();
    let mut heard = server.all();
    while !heard.iter().any(|heard| heard.body["id"] == "r") {
        tokio::task::yield_now().await;
        heard = server.all();
    }
    let answer = heard.iter().find(|heard| heard.body["id"] == "r").expect("answered");
    assert_eq!(answer.body["result"]["roots"], json!([{"uri": "file:///work"}]));
    bridge.middleware.close(&scope()).await;
}

#[tokio::test]
async fn a_server_that_never_answers_holds_up_no_end() {
    let never = || futures::StreamExt::boxed(futures::stream::pending::<Bytes>());
    let server = HttpServer::start(move |heard| match heard.kind() {
        "initialize" => Answer { body: never(), ..Answer::new(200, "application/json", "") },
        other => panic!("{other}"),
    })
    .await;
    let transport = McpTransport::Http { url: server.url.clone(), headers: Vec::new() };
    let spec = McpServerSpec { name: "web".to_owned(), roots: Vec::new(), hidden_env: Vec::new(), transport };
    let link = http::open(Arc::new(HyperTransport), Arc::new(TokioClock), &spec).expect("prepared");
    let serving = tokio::spawn(link.serving);
    let mut duplex = link.duplex;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    futures::SinkExt::send(&mut duplex.outgoing, begin).await.expect("it is heard");
    server.hears("initialize", 1).await;
    drop(duplex);
    assert_eq!(serving.await.expect("no panic"), Ok(()));
}
