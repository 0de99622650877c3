//! Tools beyond the budget: found and called by name, judged as what they are. And prompts as commands.

use std::sync::Arc;

use peri_acp_types::{CommandSpec, PermissionAnswer, ToolArguments, ToolOrigin, ToolOutput};
use peri_agent::{CallVerdict, Middleware, PendingCall};
use peri_middlewares::chain::{ChainConfig, ChainPorts, production};
use peri_middlewares::mcp::{McpConfig, ToolSchemaBudget, external_tool_name};
use peri_middlewares::permission::PermissionPolicy;
use serde_json::{Value, json};

use crate::bridge::{Bridge, bridge, bridge_with, text, tool};
use crate::fakes::{FakeBroker, FakePaths, FakeSink, StillClock, pending, scope};
use crate::servers::{FakeConnector, FakeServer, Reply, builtin_spec, external_spec};

fn named(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {"n": {"type": "string"}}}})
}

fn three_servers() -> FakeConnector {
    let echo = |params: &Value| text(&format!("{} {}", params["name"].as_str().unwrap(), params["arguments"]));
    let connector = FakeConnector::default();
    connector.add("workspace", FakeServer::with_tools(json!([tool("Read")]), |_| text("ok")));
    let docs = json!([named("find.page", "Finds a page by words."), named("read_page", "Reads one page.")]);
    connector.add("docs", FakeServer::with_tools(docs, echo));
    connector.add("mail", FakeServer::with_tools(json!([named("send", "Sends a page by mail.")]), echo));
    connector
}

async fn with_budget(bytes: u64) -> Bridge {
    let servers = vec![builtin_spec("workspace"), external_spec("docs"), external_spec("mail")];
    let config = McpConfig { servers, tool_schema_budget: ToolSchemaBudget(bytes), ..McpConfig::default() };
    bridge_with(three_servers(), config).await
}

async fn resolved(bridge: &Bridge, arguments: Value) -> PendingCall {
    let mut call = bridge.pending("McpCall", arguments);
    bridge.middleware.resolve_call(&mut call).await;
    call
}

#[tokio::test]
async fn within_the_budget_every_tool_is_listed() {
    let bridge = with_budget(100_000).await;
    let dotted = external_tool_name("docs", "find.page");
    assert_eq!(bridge.names(), ["Read", &dotted, "mcp__docs__read_page", "mcp__mail__send"]);
    let call = pending(bridge.offered.tools[0].clone(), json!({}));
    let mut resolved = call.clone();
    bridge.middleware.resolve_call(&mut resolved).await;
    assert_eq!(resolved.call, call.call);
}

#[tokio::test]
async fn beyond_it_two_tools_stand_for_all_that_are_external() {
    let bridge = with_budget(100).await;
    assert_eq!(bridge.names(), ["Read", "McpSearch", "McpCall"]);
    let search = &bridge.offered.tools[1];
    assert!(search.description.ends_with("Servers: docs (2 tools), mail (1 tool)."), "{}", search.description);
    assert_eq!(search.origin, ToolOrigin::Builtin("mcp".to_owned()));
    assert!(search.read_only && bridge.offered.tools[2].read_only);
    assert_eq!(with_budget(100).await.offered.tools, bridge.offered.tools, "the same every time");
}

#[tokio::test]
async fn a_search_shows_what_is_needed_for_a_call() {
    let bridge = with_budget(100).await;
    let dotted = external_tool_name("docs", "find.page");
    let found = |query: &str, limit: u64| {
        let arguments = json!({"query": query, "limit": limit});
        let bridge = &bridge;
        async move { bridge.call("McpSearch", arguments).await.joined_text() }
    };
    let schema = r#"Input schema: {"type":"object","properties":{"n":{"type":"string"}}}"#;
    assert_eq!(
        found("page mail", 1).await,
        format!("mcp__mail__send\nSends a page by mail.\n{schema}\n\nNot shown: {dotted}, mcp__docs__read_page"),
        "a word in the name counts most"
    );
    let exact = found("mcp__docs__read_page", 20).await;
    assert!(exact.starts_with("mcp__docs__read_page\nReads one page."), "{exact}");
    let exact = found("find.page", 1).await;
    assert!(exact.starts_with(&format!("{dotted}\n")), "{exact}");
    let all = found("", 20).await;
    assert_eq!(all.matches("Input schema").count(), 3, "{all}");
    assert_eq!(found("calendar", 5).await, "No tool matches `calendar`. Servers: docs (2 tools), mail (1 tool).");
}

#[tokio::test]
async fn what_a_search_shows_is_bounded() {
    let connector = FakeConnector::default();
    let mut tools: Vec<Value> = (0..500).map(|index| named(&format!("t{index}"), &"word ".repeat(500))).collect();
    tools[0]["description"] = json!("x".repeat(1024 * 1024));
    connector.add("docs", FakeServer::with_tools(json!(tools), |_| text("ok")));
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!(bridge.names(), ["McpSearch", "McpCall"], "the usual budget");
    let text = bridge.call("McpSearch", json!({"query": "", "limit": 1_000_000})).await.joined_text();
    assert!(text.len() < 60 * 1024, "{} bytes", text.len());
    assert!(text.contains("too long to be shown") && text.contains(" more; say more in `query`"), "{text}");
}

#[tokio::test]
async fn a_call_by_name_becomes_the_call_that_it_stands_for() {
    let bridge = with_budget(100).await;
    let dotted = external_tool_name("docs", "find.page");
    let call = resolved(&bridge, json!({"name": dotted, "arguments": {"n": "1"}})).await;
    assert_eq!((call.call.name.as_str(), call.spec.name.as_str()), (dotted.as_str(), dotted.as_str()));
    assert_eq!(call.spec.origin, ToolOrigin::External("docs".to_owned()));
    assert!(!call.spec.read_only);
    assert_eq!(bridge.middleware.run_call(&call).await, Some(ToolOutput::text(r#"find.page {"n":"1"}"#)));

    for (arguments, expect) in [(json!("{\"n\":\"2\"}"), r#"send {"n":"2"}"#), (json!(null), "send {}")] {
        let call = resolved(&bridge, json!({"name": "mcp__mail__send", "arguments": arguments})).await;
        assert_eq!(bridge.middleware.run_call(&call).await, Some(ToolOutput::text(expect)));
    }
    let wrong = resolved(&bridge, json!({"name": "mcp__mail__send", "arguments": {"n": 1}})).await;
    let refused = bridge.middleware.run_call(&wrong).await.expect("its own tool").joined_text();
    assert!(refused.starts_with("`mcp__mail__send` was not run, because `n` must be string"), "{refused}");
}

#[tokio::test]
async fn a_call_by_a_wrong_name_runs_nothing() {
    let bridge = with_budget(100).await;
    for (arguments, expect) in [
        (json!({"name": "mcp__mail__receive", "arguments": {}}), "there is no tool `mcp__mail__receive`"),
        (json!({"name": "Read", "arguments": {}}), "there is no tool `Read`"),
        (json!({"arguments": {}}), "it needs `name`"),
        (json!({"name": "mcp__mail__send", "arguments": [1]}), "`arguments` must be an object"),
    ] {
        let call = resolved(&bridge, arguments).await;
        assert_eq!(call.call.name, "McpCall");
        let output = bridge.middleware.run_call(&call).await.expect("its own tool");
        assert!(output.is_error && output.joined_text().contains(expect), "{output:?}");
    }
}

/// Sends a call through the whole chain, as a turn does.
async fn judge(chain: &[Arc<dyn Middleware>], name: &str) -> CallVerdict {
    let mut offered = Vec::new();
    for middleware in chain {
        offered.extend(middleware.open(&scope()).await.tools);
    }
    let spec = offered.into_iter().find(|tool| tool.name == "McpCall").expect("deferred");
    let mut call = pending(spec, json!({"name": name, "arguments": {"n": "1"}}));
    for middleware in chain {
        middleware.resolve_call(&mut call).await;
    }
    for middleware in chain {
        if let CallVerdict::Refuse(output) = middleware.before_call(&mut call).await {
            return CallVerdict::Refuse(output);
        }
    }
    CallVerdict::Proceed
}

#[tokio::test]
async fn rules_and_people_judge_what_really_runs() {
    let broker = Arc::new(FakeBroker::default());
    let chain = || {
        let permission = PermissionPolicy {
            allow: vec!["mcp__docs".parse().unwrap()],
            deny: vec!["mcp__docs__read_page".parse().unwrap()],
            ..PermissionPolicy::default()
        };
        let servers = vec![external_spec("docs"), external_spec("mail")];
        let config = ChainConfig { permission, servers, tool_schema_budget: ToolSchemaBudget(0) };
        let ports = ChainPorts {
            broker: broker.clone(),
            paths: Arc::<FakePaths>::default(),
            rule_sink: Arc::<FakeSink>::default(),
            connector: Arc::new(three_servers()),
            clock: Arc::<StillClock>::default(),
        };
        production(config, ports)
    };
    assert_eq!(judge(&chain(), &external_tool_name("docs", "find.page")).await, CallVerdict::Proceed);
    assert!(broker.asked.lock().unwrap().is_empty(), "a rule allows it");

    // What is denied altogether is not there at all.
    assert_eq!(judge(&chain(), "mcp__docs__read_page").await, CallVerdict::Proceed);

    broker.answers.lock().unwrap().push_back(PermissionAnswer::RejectOnce);
    assert!(matches!(judge(&chain(), "mcp__mail__send").await, CallVerdict::Refuse(_)));
    let asked = broker.asked.lock().unwrap();
    assert_eq!(asked[0].call.name, "mcp__mail__send", "the person sees what would run");
    assert_eq!(asked[0].call.arguments.str("n"), Some("1"));
    assert_eq!(asked[0].always_rules, ["mcp__mail__send"]);
}

fn with_prompts(get: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> FakeServer {
    FakeServer::new(move |method, params| match (method, params["cursor"].as_str()) {
        ("initialize", _) => Reply::Result(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"prompts": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        ("prompts/list", None) => Reply::Result(json!({"prompts": [{
            "name": "sum.up",
            "description": "Sums a page up.",
            "arguments": [{"name": "page", "required": true}, {"name": "style"}],
        }], "nextCursor": "2"})),
        ("prompts/list", Some(_)) => Reply::Result(json!({"prompts": [{"name": "plain"}]})),
        ("prompts/get", _) => get(params),
        _ => Reply::Error("no such method"),
    })
}

#[tokio::test]
async fn prompts_become_commands() {
    let connector = FakeConnector::default();
    let server = connector.add(
        "docs",
        with_prompts(|params| {
            let user = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
            match params["name"].as_str() {
                Some("sum.up") => Reply::Result(json!({"messages": [user(&params["arguments"].to_string())]})),
                _ => Reply::Result(json!({"messages": [
                    user("a"),
                    {"role": "assistant", "content": {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}}},
                    {"role": "user", "content": {"type": "image", "data": "QUJD", "mimeType": "image/png"}},
                ]})),
            }
        }),
    );
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!((bridge.names(), bridge.notices()), (vec![], vec![]));
    let command = external_tool_name("docs", "sum.up");
    let expect = [
        CommandSpec {
            name: command.clone(),
            description: "Sums a page up.".to_owned(),
            input_hint: Some("<page> [style]".to_owned()),
        },
        CommandSpec { name: "mcp__docs__plain".to_owned(), description: "plain".to_owned(), input_hint: None },
    ];
    assert_eq!(bridge.offered.commands, expect);
    let run = |name: &str, input: &str| {
        let (name, input) = (name.to_owned(), input.to_owned());
        let bridge = &bridge;
        async move { bridge.middleware.run_command(&name, &input).await }
    };
    assert_eq!(
        run(&command, "'page one' short and dry").await,
        Some(Ok(r#"{"page":"page one","style":"short and dry"}"#.to_owned()))
    );
    assert_eq!(
        run(&command, "").await,
        Some(Err("`sum.up` needs `page`; it takes <page> [style]".to_owned())),
        "and the server is not asked"
    );
    assert_eq!(
        run("mcp__docs__plain", "").await,
        Some(Ok("User: a\n\nAssistant: b\n\nUser: [an image (image/png) cannot be part of a command]".to_owned()))
    );
    assert_eq!(run("compact", "").await, None);
    assert_eq!(server.methods().iter().filter(|method| *method == "tools/list").count(), 0, "it has no tools");
}

#[tokio::test]
async fn a_prompt_that_is_refused_is_an_error_for_the_user() {
    let connector = FakeConnector::default();
    connector.add("docs", with_prompts(|_| Reply::Error("not today")));
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    let refused = bridge.middleware.run_command("mcp__docs__plain", "").await;
    assert_eq!(refused, Some(Err("MCP server `docs` does not give `plain`: not today".to_owned())));
}

#[tokio::test]
async fn prompts_that_are_not_listed_cost_nothing_else() {
    let connector = FakeConnector::default();
    let server = FakeServer::new(|method, params| match method {
        "initialize" => Reply::Result(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"prompts": {}, "tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "tools/list" => Reply::Result(json!({"tools": [tool("a")]})),
        _ => Reply::Error("broken"),
    });
    connector.add("docs", server);
    let bridge = bridge(connector, vec![external_spec("docs")]).await;
    assert_eq!(bridge.names(), ["mcp__docs__a"]);
    assert_eq!(bridge.notices(), ["MCP server `docs` does not list its prompts: broken"]);
    assert_eq!(bridge.call("mcp__docs__a", json!({})).await, ToolOutput::error("broken"));
}

#[tokio::test]
async fn arguments_that_are_no_object_stay_what_they_are() {
    let bridge = with_budget(100).await;
    let mut call = bridge.pending("McpCall", json!({}));
    call.call.arguments = ToolArguments::Invalid { raw: "{".to_owned(), reason: "cut short".to_owned() };
    bridge.middleware.resolve_call(&mut call).await;
    let output = bridge.middleware.run_call(&call).await.expect("its own tool");
    assert!(output.is_error && call.call.name == "McpCall", "{output:?}");
}
