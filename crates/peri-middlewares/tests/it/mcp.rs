//! The bridge against servers that behave, and servers that do not.

use std::sync::Arc;

use futures::FutureExt;
use peri_acp_types::{
    Content, FileDiff, Image, ToolArguments, ToolDetails, ToolKind, ToolLocation, ToolOrigin, ToolOutput,
};
use peri_agent::Middleware;
use peri_middlewares::mcp::{McpConfig, McpMiddleware};
use peri_middlewares::permission::{PermissionPolicy, ToolFilter};
use serde_json::{Value, json};

use crate::bridge::{bridge, bridge_to, ports, text, tool};
use crate::fakes::{StillClock, scope};
use crate::servers::{FakeConnector, FakeServer, Reply, builtin_spec, external_spec};

#[tokio::test]
async fn tools_keep_the_order_of_their_servers() {
    let connector = FakeConnector::default();
    let mut first = tool("Read");
    first["_meta"] = json!({"peri/kind": "read"});
    first["annotations"] = json!({"readOnlyHint": true});
    connector.add("workspace", FakeServer::with_tools(json!([first, tool("Bash")]), |_| Reply::Silence));
    connector.add("docs", FakeServer::with_tools(json!([first, tool("b.c"), tool("a")]), |_| Reply::Silence));
    let bridge = bridge(connector, vec![builtin_spec("workspace"), external_spec("docs")]).await;

    assert_eq!(bridge.notices(), [""; 0]);
    let dotted = peri_middlewares::mcp::external_tool_name("docs", "b.c");
    assert_eq!(bridge.names(), ["Read", "Bash", "mcp__docs__Read", &dotted, "mcp__docs__a"]);
    let read = &bridge.offered.tools[0];
    assert_eq!((read.kind, read.read_only), (ToolKind::Read, true));
    assert_eq!(read.origin, ToolOrigin::Builtin("workspace".to_owned()));
    assert_eq!(read.description, "Does Read.");
    assert_eq!(read.input_schema, json!({"type": "object"}));
    let posing = &bridge.offered.tools[2];
    assert_eq!((posing.kind, posing.read_only), (ToolKind::Other, false), "an external server's word is not taken");
    assert_eq!(posing.origin, ToolOrigin::External("docs".to_owned()));
}

#[tokio::test]
async fn denied_tools_are_not_shown() {
    let connector = FakeConnector::default();
    connector
        .add("workspace", FakeServer::with_tools(json!([tool("Read"), tool("Bash"), tool("Write")]), |_| text("ok")));
    connector.add("docs", FakeServer::with_tools(json!([tool("a"), tool("b")]), |_| text("ok")));
    let deny = ["Bash", "Edit", "mcp__docs__a", "Read(secret/**)"].map(|rule| rule.parse().unwrap()).to_vec();
    let hidden = ToolFilter::new(&PermissionPolicy { deny, ..PermissionPolicy::default() });
    let servers = vec![builtin_spec("workspace"), external_spec("docs")];
    let config = McpConfig { servers, hidden, ..McpConfig::default() };
    let middleware = McpMiddleware::new(config, ports(connector, Arc::default(), Arc::default()));
    let offered = middleware.open(&scope()).await;
    let names: Vec<&str> = offered.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["Read", "mcp__docs__b"]);
}

#[tokio::test]
async fn all_pages_of_a_list_are_asked_for_and_doubles_named() {
    let connector = FakeConnector::default();
    let server = FakeServer::new(|method, params| match (method, params["cursor"].as_str()) {
        ("tools/list", None) => Reply::Result(json!({"tools": [tool("a")], "nextCursor": "2"})),
        ("tools/list", Some("2")) => Reply::Result(json!({"tools": [tool("b"), tool("a")], "nextCursor": "3"})),
        ("tools/list", _) => Reply::Result(json!({"tools": [tool("c")]})),
        _ => Reply::Error("no"),
    });
    connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!(bridge.names(), ["mcp__docs__a", "mcp__docs__b", "mcp__docs__c"]);
    assert_eq!(bridge.notices(), ["MCP server `docs` lists `a` twice; the first is used"]);
}

#[tokio::test]
async fn an_endless_list_is_cut() {
    let connector = FakeConnector::default();
    let server = FakeServer::new(|method, params| match method {
        "tools/list" => {
            let page: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let tools: Vec<Value> = (0..20).map(|index| tool(&format!("t{page}x{index}"))).collect();
            Reply::Result(json!({"tools": tools, "nextCursor": (page + 1).to_string()}))
        }
        _ => Reply::Error("no"),
    });
    connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!(bridge.names().len(), 512);
    assert!(bridge.notices()[0].contains("only the first 512 are used"), "{:?}", bridge.notices());
}

#[tokio::test]
async fn a_call_carries_arguments_and_grants() {
    let (bridge, server) = bridge_to(|_| text("done")).await;
    let mut call = bridge.pending("Tool", json!({"a": {"b": [1, "🦀"]}, "_meta": {"peri/grantedPaths": ["/evil"]}}));
    call.granted_paths = vec!["/etc/hosts".to_owned()];
    let output = bridge.middleware.run_call(&call).await.expect("its own tool");
    assert_eq!(output, ToolOutput::text("done"));
    let params = server.hears("tools/call").await["params"].clone();
    assert_eq!(params["name"], "Tool");
    assert_eq!(params["arguments"]["a"], json!({"b": [1, "🦀"]}));
    assert_eq!(params["_meta"]["peri/grantedPaths"], json!(["/etc/hosts"]), "what the model writes grants nothing");
}

#[tokio::test]
async fn an_external_server_gets_its_own_name_for_a_tool_no_grants_and_shows_no_edits() {
    let connector = FakeConnector::default();
    let result = json!({
        "content": [{"type": "text", "text": "done"}],
        "_meta": {"peri/details": {"diffs": [{"path": "/a", "newText": "y"}]}},
    });
    let server = FakeServer::with_tools(json!([tool("page.read")]), move |_| Reply::Result(result.clone()));
    let server = connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    let mut call = bridge.pending(&peri_middlewares::mcp::external_tool_name("docs", "page.read"), json!({}));
    call.granted_paths = vec!["/etc/hosts".to_owned()];
    assert_eq!(bridge.middleware.run_call(&call).await, Some(ToolOutput::text("done")));
    let params = server.hears("tools/call").await["params"].clone();
    assert_eq!(params["name"], "page.read");
    assert_eq!(params["_meta"].get("peri/grantedPaths"), None);
}

#[tokio::test]
async fn content_and_details_of_a_result_are_kept() {
    let result = json!({
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "QUJD", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "b"}},
            {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "image/gif", "blob": "QUJD"}},
            {"type": "resource_link", "uri": "file:///d", "name": "d"},
            {"type": "audio", "data": "QUJD", "mimeType": "audio/wav"},
        ],
        "isError": true,
        "_meta": {"peri/details": {
            "locations": [{"path": "/a", "line": 3}, {"path": "/b"}, {"line": 1}],
            "diffs": [{"path": "/a", "oldText": "x", "newText": "y"}, {"path": "/b", "newText": "z"}, "?"],
        }},
    });
    let (bridge, _server) = bridge_to(move |_| Reply::Result(result.clone())).await;
    let output = bridge.call("Tool", json!({})).await;
    let resource = |uri: &str, mime_type: Option<&str>, text: Option<&str>| Content::Resource {
        uri: uri.to_owned(),
        mime_type: mime_type.map(str::to_owned),
        text: text.map(str::to_owned),
    };
    let image = |mime_type: &str| Content::Image(Image { mime_type: mime_type.to_owned(), base64: "QUJD".to_owned() });
    assert_eq!(
        output.content,
        [
            Content::Text("a".to_owned()),
            image("image/png"),
            resource("file:///a", Some("text/plain"), Some("b")),
            image("image/gif"),
            resource("file:///d", None, None),
            Content::Text("[audio (audio/wav) cannot be shown]".to_owned()),
        ]
    );
    assert!(output.is_error);
    let location = |path: &str, line| ToolLocation { path: path.to_owned(), line };
    let diff = |path: &str, old: Option<&str>, new: &str| FileDiff {
        path: path.to_owned(),
        old_text: old.map(str::to_owned),
        new_text: new.to_owned(),
    };
    assert_eq!(
        output.details,
        ToolDetails {
            locations: vec![location("/a", Some(3)), location("/b", None)],
            diffs: vec![diff("/a", Some("x"), "y"), diff("/b", None, "z")],
        }
    );
}

#[tokio::test]
async fn structure_alone_is_shown_as_text() {
    let (bridge, _server) = bridge_to(|_| Reply::Result(json!({"structuredContent": {"n": 1}}))).await;
    assert_eq!(bridge.call("Tool", json!({})).await, ToolOutput::text("{\"n\":1}"));
}

#[tokio::test]
async fn wrong_arguments_never_reach_the_server() {
    let connector = FakeConnector::default();
    let schema = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
    let listed = json!([{"name": "Tool", "inputSchema": schema}]);
    let server = connector.add("workspace", FakeServer::with_tools(listed, |_| text("ran")));
    let bridge = bridge(connector, vec![builtin_spec("workspace")]).await;
    let refused = bridge.call("Tool", json!({"limit": 1})).await;
    assert!(refused.is_error);
    assert_eq!(
        refused.joined_text(),
        "`Tool` was not run, because it lacks `path`. Required: path. Optional: limit. Send the call again."
    );
    let mut call = bridge.pending("Tool", json!({}));
    call.call.arguments = ToolArguments::Invalid { raw: "{".to_owned(), reason: "cut short".to_owned() };
    let refused = bridge.middleware.run_call(&call).await.expect("its own tool");
    assert!(refused.is_error && refused.joined_text().contains("cut short"), "{refused:?}");
    assert_eq!(bridge.call("Tool", json!({"path": "x"})).await, ToolOutput::text("ran"));
    assert_eq!(server.methods().iter().filter(|method| *method == "tools/call").count(), 1);
}

#[tokio::test]
async fn tools_of_others_are_left_to_others() {
    let (bridge, _server) = bridge_to(|_| text("ok")).await;
    let mut call = bridge.pending("Tool", json!({}));
    call.call.name = "Other".to_owned();
    assert_eq!(bridge.middleware.run_call(&call).await, None);
}

#[tokio::test]
async fn a_refusal_of_the_server_is_a_result() {
    let (bridge, _server) = bridge_to(|_| Reply::Error("the disk is full")).await;
    assert_eq!(bridge.call("Tool", json!({})).await, ToolOutput::error("the disk is full"));
}

#[tokio::test]
async fn five_megabytes_are_cut() {
    let (bridge, _server) = bridge_to(|_| text(&"line\n".repeat(1024 * 1024))).await;
    let text = bridge.call("Tool", json!({})).await.joined_text();
    assert!(text.len() < 300 * 1024 && text.contains("lines left out ...]"), "{} bytes", text.len());
}

#[tokio::test]
async fn rubbish_between_messages_is_passed_over() {
    let rubbish =
        [json!("log line"), json!({"jsonrpc": "2.0"}), json!(null), json!([1]), json!({"id": 77, "result": {}})];
    let (bridge, _server) = bridge_to(move |_| Reply::After(rubbish.to_vec(), Box::new(text("ok")))).await;
    for _ in 0..3 {
        assert_eq!(bridge.call("Tool", json!({})).await, ToolOutput::text("ok"));
    }
}

#[tokio::test]
async fn rubbish_at_the_start_is_counted_and_named_once() {
    let connector = FakeConnector::default();
    let noise = vec![json!("Starting\u{1b}[0m..."), json!([1])];
    let started = noise.clone();
    connector.add(
        "loud",
        FakeServer::new(move |method, _| match method {
            "tools/list" => Reply::After(started.clone(), Box::new(Reply::Result(json!({"tools": [tool("a")]})))),
            _ => Reply::Error(""),
        }),
    );
    connector.add("lost", FakeServer::new(move |_, _| Reply::After(noise.clone(), Box::new(Reply::Death))));
    let bridge = bridge(connector, vec![external_spec("loud"), external_spec("lost")]).await;
    assert_eq!(bridge.names(), ["mcp__loud__a"]);
    let words = "it sent 2 lines that are no messages and were passed over, the first: `Starting[0m...`";
    assert_eq!(
        bridge.notices(),
        [
            format!("MCP server `loud`: {words}"),
            format!("MCP server `lost` did not start: it closed the connection before it answered; {words}"),
        ]
    );
}

#[tokio::test]
async fn a_tool_that_cannot_be_understood_costs_no_other() {
    let with = |field: &str, value: Value| {
        let mut odd = tool("odd");
        odd[field] = value;
        odd
    };
    for (odd, expect) in [
        (json!({"name": "odd"}), "tool `odd` (missing field"),
        (with("inputSchema", json!("object")), "tool `odd` (invalid type: string"),
        (with("inputSchema", Value::Null), "tool `odd` (invalid type: null"),
        (with("description", json!(5)), "tool `odd` (invalid type: integer"),
        (with("name", Value::Null), "tool number 2 (invalid type: null"),
        (json!({"inputSchema": {}}), "tool number 2 (missing field"),
        (json!("odd"), "tool number 2 (invalid type: string"),
        (Value::Null, "tool number 2 (invalid type: null"),
    ] {
        let connector = FakeConnector::default();
        connector.add("docs", FakeServer::with_tools(json!([tool("first"), odd, tool("last")]), |_| text("ok")));
        let bridge = bridge(connector, vec![external_spec("docs")]).await;
        assert_eq!(bridge.names(), ["mcp__docs__first", "mcp__docs__last"], "{expect}");
        let notices = bridge.notices();
        let words = format!("MCP server `docs` lists what cannot be used and is left out: {expect}");
        assert!(notices.len() == 1 && notices[0].starts_with(&words), "{words}: {notices:?}");
    }
}

#[tokio::test]
async fn what_is_left_out_of_all_pages_is_counted_once_and_the_first_are_named() {
    let connector = FakeConnector::default();
    let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = FakeServer::new(move |method, params| match (method, params["cursor"].as_str()) {
        ("initialize", _) => Reply::Result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        ("tools/list", None) => {
            let tools = Reply::Result(json!({"tools": [tool("a"), {}, {}, {}], "nextCursor": "2"}));
            match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Reply::After(vec![change.clone()], Box::new(tools)),
                _ => tools,
            }
        }
        ("tools/list", _) => Reply::Result(json!({"tools": [{}, {}, tool("b")]})),
        ("prompts/list", _) => Reply::Result(json!({"prompts": [{"name": "p"}, {"name": 5}]})),
        _ => Reply::Error("no"),
    });
    connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!(bridge.names(), ["mcp__docs__a", "mcp__docs__b"]);
    assert_eq!(bridge.offered.commands.len(), 1);
    let notices = bridge.notices();
    assert!(notices.len() == 1 && notices[0].ends_with(", and 1 more"), "{notices:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_understood_is_an_error_of_its_call() {
    let (bridge, _server) = bridge_to(|_| Reply::Raw(json!({"error": {"code": "x"}}))).await;
    let output = bridge.call("Tool", json!({})).await;
    assert!(output.is_error, "{output:?}");
    assert!(output.joined_text().contains("its answer cannot be understood"), "{output:?}");
}

#[tokio::test]
async fn a_list_that_changes_stays_as_it_was_and_the_next_result_says_so() {
    let connector = FakeConnector::default();
    let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let server = FakeServer::with_tools(json!([tool("a")]), move |_| {
        Reply::After(vec![change.clone()], Box::new(Reply::Error("Unknown tool: a")))
    });
    let server = connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    let output = bridge.call("mcp__docs__a", json!({})).await;
    assert!(output.is_error);
    assert!(
        output
            .joined_text()
            .starts_with("Unknown tool: a\n[MCP server `docs` has changed its tools. This session keeps"),
        "{output:?}"
    );
    let lists = server.methods().iter().filter(|method| *method == "tools/list").count();
    assert_eq!(lists, 1, "the list that the model was shown stays");
}

#[tokio::test]
async fn a_list_that_changes_while_it_is_asked_for_is_asked_for_again() {
    let connector = FakeConnector::default();
    let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = FakeServer::new(move |method, _| match method {
        "tools/list" => match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::After(vec![change.clone()], Box::new(Reply::Result(json!({"tools": [tool("a")]})))),
            _ => Reply::Result(json!({"tools": [tool("a"), tool("b")]})),
        },
        _ => Reply::Error(""),
    });
    connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!(bridge.names(), ["mcp__docs__a", "mcp__docs__b"]);
}

#[tokio::test]
async fn progress_and_logging_disturb_nothing() {
    let noise = vec![
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": {"a": 1}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x", "progress": 0.5}}),
        json!({"jsonrpc": "2.0", "method": "notifications/made/up", "params": [1]}),
    ];
    let (bridge, _server) = bridge_to(move |_| Reply::After(noise.clone(), Box::new(text("ok")))).await;
    assert_eq!(bridge.call("Tool", json!({})).await, ToolOutput::text("ok"));
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_the_server() {
    let (bridge, server) = bridge_to(|_| Reply::Silence).await;
    {
        let call = bridge.pending("Tool", json!({}));
        let running = bridge.middleware.run_call(&call);
        tokio::select! {
            output = running => panic!("{output:?}"),
            _ = server.hears("tools/call") => {}
        }
    }
    let cancelled = server.hears("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], server.hears("tools/call").await["id"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_at_once_is_cancelled_after_it_was_sent() {
    let (bridge, server) = bridge_to(|_| Reply::Silence).await;
    let call = bridge.pending("Tool", json!({}));
    assert_eq!(bridge.middleware.run_call(&call).now_or_never(), None);
    server.hears("notifications/cancelled").await;
    let methods = server.methods();
    let place = |method: &str| methods.iter().position(|heard| heard == method);
    assert!(place("tools/call") < place("notifications/cancelled"), "{methods:?}");
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let (bridge, _server) = bridge_to(|params| text(params["arguments"]["n"].as_str().unwrap_or_default())).await;
    let names: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let outputs = futures::future::join_all(names.iter().map(|n| bridge.call("Tool", json!({ "n": n })))).await;
    let texts: Vec<String> = outputs.iter().map(ToolOutput::joined_text).collect();
    assert_eq!(texts, names);
}

#[tokio::test]
async fn a_server_that_dies_costs_its_own_calls_only() {
    let connector = FakeConnector::default();
    connector.add("frail", FakeServer::with_tools(json!([tool("a")]), |_| Reply::Death));
    connector.add("sound", FakeServer::with_tools(json!([tool("a")]), |_| text("ok")));
    let bridge = bridge(connector, vec![external_spec("frail"), external_spec("sound")]).await;
    for _ in 0..2 {
        let output = bridge.call("mcp__frail__a", json!({})).await;
        assert!(output.is_error && output.joined_text().starts_with("MCP server `frail` is gone"), "{output:?}");
        assert_eq!(bridge.call("mcp__sound__a", json!({})).await, ToolOutput::text("ok"));
    }
}

#[tokio::test]
async fn servers_that_do_not_start_are_named_and_the_others_go_on() {
    let connector = FakeConnector::default();
    connector.add("dead", FakeServer::new(|_, _| Reply::Death));
    connector.add(
        "deaf",
        FakeServer::new(|method, _| if method == "initialize" { Reply::Error("") } else { Reply::Error("not today") }),
    );
    connector.add(
        "odd",
        FakeServer::new(
            |method, _| if method == "initialize" { Reply::Result(json!({"x": 1})) } else { Reply::Silence },
        ),
    );
    connector.add("sound", FakeServer::with_tools(json!([tool("a")]), |_| text("ok")));
    let servers = ["absent", "dead", "deaf", "odd", "sound"].map(external_spec).to_vec();
    let bridge = bridge(connector, servers).await;
    assert_eq!(bridge.names(), ["mcp__sound__a"]);
    let notices = bridge.notices();
    assert_eq!(notices.len(), 4, "{notices:?}");
    for (notice, name) in notices.iter().zip(["absent", "dead", "deaf", "odd"]) {
        assert!(notice.starts_with(&format!("MCP server `{name}`")), "{notice}");
    }
    assert!(notices[2].contains("not today"), "{notices:?}");
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_given_up() {
    let connector = FakeConnector::default();
    let hung = connector.add("hung", FakeServer::new(|_, _| Reply::Silence));
    let clock = Arc::new(StillClock::default());
    let config = McpConfig { servers: vec![external_spec("hung")], ..McpConfig::default() };
    let middleware = McpMiddleware::new(config, ports(connector, clock.clone(), Arc::default()));
    let session = scope();
    let opening = middleware.open(&session);
    let ringing = async {
        hung.hears("initialize").await;
        clock.ring.notify_waiters();
    };
    let (offered, ()) = futures::join!(opening, ringing);
    assert_eq!(offered.notices[0].1, "MCP server `hung` was not ready within 30 s");
    hung.left.subscribe().wait_for(|left| *left).await.expect("its input has ended");
}

#[tokio::test]
async fn closing_ends_the_servers() {
    let (bridge, server) = bridge_to(|_| text("ok")).await;
    assert_eq!(bridge.middleware.close(&scope()).await, [""; 0]);
    assert!(*server.left.borrow());
    assert_eq!(bridge.middleware.run_call(&bridge.pending("Tool", json!({}))).await, None);
    assert_eq!(bridge.middleware.close(&scope()).await, [""; 0], "once is enough");
}

#[tokio::test]
async fn a_server_that_clings_is_reported() {
    let connector = FakeConnector::default();
    let server = connector.add("workspace", FakeServer::with_tools(json!([tool("a")]), |_| text("ok")).clinging());
    let bridge = bridge(connector, vec![builtin_spec("workspace")]).await;
    let session = scope();
    let closing = bridge.middleware.close(&session);
    let ringing = async {
        server.left.subscribe().wait_for(|left| *left).await.expect("its input has ended");
        // The wait for its end may begin only after this; every wait is let go until the close returns.
        loop {
            bridge.clock.ring.notify_waiters();
            tokio::task::yield_now().await;
        }
    };
    let unconfirmed = tokio::select! {
        unconfirmed = closing => unconfirmed,
        () = ringing => Vec::new(),
    };
    assert_eq!(unconfirmed, ["MCP server `workspace` has not confirmed its end"]);
}

#[tokio::test]
async fn dropping_the_bridge_ends_the_servers() {
    let (bridge, server) = bridge_to(|_| text("ok")).await;
    drop(bridge);
    server.left.subscribe().wait_for(|left| *left).await.expect("its input has ended");
}
