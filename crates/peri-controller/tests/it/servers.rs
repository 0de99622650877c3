//! Which MCP servers a session has.

use peri_acp_types::ports::{BuiltinSettings, McpTransport};
use peri_controller::{LiteParams, OfferedServer};

use crate::assembly::notices;
use crate::world::{CWD, Settings, World, params};

const USER: &str = r#"{"model": "mine/some-model",
    "providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9"}},
    "mcpServers": {"zebra": {"command": "zebra-server", "args": ["-q"]},
                   "docs": {"url": "http://127.0.0.1:9/mcp"},
                   "off": {"command": "off-server", "enabled": false}}}"#;

fn offered(name: &str) -> OfferedServer {
    let transport = McpTransport::Http { url: "http://127.0.0.1:1/".to_owned(), headers: Vec::new() };
    OfferedServer { name: name.to_owned(), transport }
}

fn with(offered_servers: Vec<OfferedServer>) -> LiteParams {
    LiteParams { offered_servers, ..params(CWD) }
}

/// The servers that a session asks for, and what it says beside that none of them can be reached here.
async fn check(user: &'static str, offered: Vec<OfferedServer>, expect: &[&str]) -> Vec<String> {
    let world = World::new(Settings { user, ..Settings::default() });
    let mut opened = world.controller.new_session(with(offered), None).await.expect("a session");
    let asked: Vec<String> = world.servers.lock().expect("no panic").iter().map(|server| server.name.clone()).collect();
    assert_eq!(asked, expect);
    world.controller.events_ended(opened.facts.session_id, opened.facts.session_epoch);
    let mut said = Vec::new();
    // Each of them is also told to be out of reach; the complaints come first.
    while said.iter().filter(|line: &&String| line.contains("has no servers")).count() < expect.len() {
        said.extend(notices(&mut opened.events, 1).await);
    }
    said.retain(|line| !line.contains("has no servers"));
    said
}

#[tokio::test]
async fn builtin_ones_come_first_then_those_of_settings_by_name_then_the_clients_in_its_order() {
    let said =
        check(USER, vec![offered("theirs"), offered("also")], &["workspace", "docs", "zebra", "theirs", "also"]).await;
    assert_eq!(said, Vec::<String>::new());
}

#[tokio::test]
async fn the_clients_server_takes_the_place_of_a_configured_one_of_its_name() {
    let world = World::new(Settings { user: USER, ..Settings::default() });
    world.controller.new_session(with(vec![offered("docs")]), None).await.expect("a session");
    let servers = world.servers.lock().expect("no panic").clone();
    let docs = servers.iter().find(|server| server.name == "docs").expect("the server");
    assert_eq!(docs.transport, offered("docs").transport);
    assert_eq!(docs.roots, [CWD]);

    let said = check(USER, vec![offered("docs")], &["workspace", "zebra", "docs"]).await;
    assert!(
        matches!(said.as_slice(), [line] if line.contains("`docs`") && line.contains("/user/settings.json")),
        "{said:?}"
    );
}

#[tokio::test]
async fn names_that_are_not_to_be_had_are_refused_one_by_one() {
    let builtin = BuiltinSettings {
        env: Default::default(),
        command_timeout: std::time::Duration::ZERO,
        max_command_timeout: std::time::Duration::ZERO,
    };
    let disguised = OfferedServer { name: "mine".to_owned(), transport: McpTransport::Builtin(builtin) };
    let long = offered(&"x".repeat(300));
    let bad = ["Workspace", " config ", "", "a\u{1b}[2Jb", "twice"].map(offered);
    let all = [vec![offered("twice"), disguised, long], bad.to_vec()].concat();
    let said = check(USER, all, &["workspace", "docs", "zebra", "twice"]).await;
    assert_eq!(said.len(), 7, "{said:?}");
    assert!(said.iter().all(|line| !line.contains(char::is_control)), "{said:?}");
    assert!(said.iter().any(|line| line.contains("another one of that name")), "{said:?}");
}

#[tokio::test]
async fn there_is_a_bound() {
    let many: Vec<OfferedServer> = (0..100).map(|number| offered(&format!("s{number:03}"))).collect();
    let world = World::new(Settings::default());
    let mut opened = world.controller.new_session(with(many), None).await.expect("a session");
    assert_eq!(world.servers.lock().expect("no panic").len(), 65, "64 and the builtin one");
    let said = notices(&mut opened.events, 1).await.remove(0);
    assert!(said.contains("more than 64") && said.contains("s064") && !said.contains("s063"), "{said}");
}
