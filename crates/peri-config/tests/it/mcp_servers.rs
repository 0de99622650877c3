//! MCP servers of settings and of `.mcp.json`: what counts, which wins, what is said of those that cannot be used.

use peri_acp_types::ports::{HeaderValue, McpTransport, TrustState, TrustVerdict};
use peri_config::Layer;

use crate::memory::{LOCAL, MCP, SHARED, USER, World, verdict};

fn trusted() -> World {
    World::new().state(TrustState::Trusted)
}

/// Every server in a line, with all that a start needs; `off` before those that are not enabled.
fn all_servers(world: &World) -> Vec<String> {
    let shown = |transport: &McpTransport| match transport {
        McpTransport::Stdio { command, args, env } => {
            let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={}", value.reveal())).collect();
            [env, vec![command.clone()], args.clone()].concat().join(" ")
        }
        McpTransport::Http { url, headers } => {
            let header = |(name, value): &(String, HeaderValue)| match value {
                HeaderValue::Secret(value) => format!(" {name}={}", value.reveal()),
                HeaderValue::Plain(value) => panic!("{name}: {value} is not kept secret"),
            };
            format!("{url}{}", headers.iter().map(header).collect::<String>())
        }
        McpTransport::Builtin(_) => panic!("settings make no builtin server"),
    };
    let found = world.loaded();
    let line = |(name, server): (&String, &peri_config::Sourced<peri_config::McpServer>)| {
        let off = if server.value.enabled { "" } else { "off " };
        format!("{off}{name}: {}", shown(&server.value.transport))
    };
    found.settings.mcp_servers.iter().map(line).collect()
}

/// Those that are enabled.
fn servers(world: &World) -> Vec<String> {
    all_servers(world).into_iter().filter(|line| !line.starts_with("off ")).collect()
}

/// The servers of a trusted `.mcp.json`, and the findings about it without its name.
#[track_caller]
fn check(file: &str, expect: &[&str], said: &[&str]) {
    let world = trusted().var("HOST", "h.example").var("TOKEN", "geheim").file(MCP, file);
    let found = if said.is_empty() { all_servers(&world) } else { servers(&world) };
    assert_eq!(found, expect, "{file}");
    let findings: Vec<String> =
        world.findings().iter().map(|finding| finding.replace(&format!("W {MCP}: "), "")).collect();
    assert_eq!(findings, said, "{file}");
}

#[test]
fn files_of_other_tools_work() {
    check(
        r#"{"mcpServers": {"fs": {"command": "npx", "args": ["-y", "server", "/tmp"], "env": {"A": "1"}}}}"#,
        &["fs: A=1 npx -y server /tmp"],
        &[],
    );
    check(r#"{"mcpServers": {"a": {"type": "stdio", "command": "./a"}}}"#, &["a: ./a"], &[]);
    check(
        r#"{"mcpServers": {"a": {"type": "http", "url": "https://${HOST}/mcp?x=1", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}"#,
        &["a: https://h.example/mcp?x=1 Authorization=Bearer geheim"],
        &[],
    );
    check(r#"{"mcpServers": {"a": {"type": "streamable-http", "url": "http://h/"}}}"#, &["a: http://h/"], &[]);
    check(r#"{"mcpServers": {"a": {"url": "http://h"}}}"#, &["a: http://h"], &[]);
    check(
        r#"{"mcpServers": {"a": {"command": "a", "disabled": true}, "b": {"command": "b", "enabled": false}, "c": {"command": "c", "disabled": false}}}"#,
        &["off a: a", "off b: b", "c: c"],
        &[],
    );
    check(
        r#"{"mcpServers": {"a": {"command": "${X:-npx}", "args": ["${X:-}", "$HOME", "${x:0:1}"], "env": {"T": "${TOKEN}"}}}}"#,
        &["a: T=geheim npx  $HOME ${x:0:1}"],
        &[],
    );
    check("\u{feff}{\"mcpServers\": {}}", &[], &[]);
    check("", &[], &[]);
}

#[test]
fn one_server_that_cannot_be_used_takes_no_other_with_it() {
    let beside = |server: &str| format!(r#"{{"mcpServers": {{"a": {server}, "good": {{"command": "good"}}}}}}"#);
    for (server, said) in [
        (
            r#"{"command": "a", "env": {"T": "${NOWHERE}"}}"#,
            "key `mcpServers.a.env.T` names the environment variable `NOWHERE`, which is not set: the server is left out; set it, or write `${NOWHERE:-DEFAULT}`",
        ),
        (
            r#"{"command": "a", "args": ["x", "${NOWHERE}", "${NOWHERE}"]}"#,
            "key `mcpServers.a.args[1]` names the environment variable `NOWHERE`, which is not set: the server is left out; set it, or write `${NOWHERE:-DEFAULT}`",
        ),
        (
            r#"{"type": "sse", "url": "http://h"}"#,
            "key `mcpServers.a.type` is `sse`, which Peri does not speak: the server is left out; most such servers speak streamable HTTP as well: write `http`, with the address that is meant for it",
        ),
        (
            r#"{"type": "ws", "url": "http://h"}"#,
            "key `mcpServers.a.type` must be one of stdio, http, streamable-http: the server is left out",
        ),
        (r#""npx""#, "key `mcpServers.a` must be an object, not text: the server is left out"),
        (
            "{}",
            "key `mcpServers.a.command` is missing: the server is left out; set `command` (a program to start) or `url` (a server over HTTP)",
        ),
        (
            r#"{"type": "http", "command": "a"}"#,
            "key `mcpServers.a.url` is missing: the server is left out; set it to the server's address",
        ),
        (
            r#"{"type": "stdio", "enabled": false}"#,
            "key `mcpServers.a.command` is missing: the server is left out; set it to the program to start",
        ),
        (
            r#"{"command": "a", "url": "http://h"}"#,
            "key `mcpServers.a.url` stands beside `command`: the server is left out; keep the one that is meant, or set `type`",
        ),
        (
            r#"{"command": "a", "disabled": true, "enabled": true}"#,
            "key `mcpServers.a.disabled` stands beside `enabled`: the server is left out; keep one of them",
        ),
        (
            r#"{"command": "a", "args": ["x", 1]}"#,
            "key `mcpServers.a.args[1]` must be text, not a number: the server is left out",
        ),
        (
            r#"{"command": " "}"#,
            "key `mcpServers.a.command` must not be empty: the server is left out; set it to the program to start",
        ),
        (
            r#"{"command": "${X:-}"}"#,
            "key `mcpServers.a.command` must not be empty, with its variables filled in: the server is left out; set it to the program to start",
        ),
        (
            r#"{"url": "ftp://h"}"#,
            "key `mcpServers.a.url` must begin with `http://` or `https://`: the server is left out; put the scheme in front of the host",
        ),
        (
            r#"{"url": "https://u:${TOKEN}@h"}"#,
            "key `mcpServers.a.url` must not hold a user or password, with its variables filled in: the server is left out; keys have a place of their own: `apiKeyEnv`, `headers`",
        ),
        (
            r#"{"url": "http://h", "headers": {"x": "${X:-\n}"}}"#,
            "key `mcpServers.a.headers.x` must be printable ASCII, 8192 bytes at most, with its variables filled in: the server is left out",
        ),
    ] {
        check(&beside(server), &["good: good"], &[said]);
    }
}

#[test]
fn what_has_no_effect_is_named() {
    check(
        r#"{"mcpServers": {"a": {"command": "a", "autoApprove": ["x"], "type": "stdio", "url": "http://h"}}, "inputs": []}"#,
        &["a: a"],
        &[
            "key `mcpServers.a.url` has no effect on a server of this kind",
            "key `mcpServers.a.autoApprove` is not known and has no effect",
            "key `inputs` is not known and has no effect",
        ],
    );
    check(
        r#"{"mcpServers": {"a": {"url": "http://h", "headers": {"Content-Type": "x", "ACCEPT": "y", "authorization": "z"}}}}"#,
        &["a: http://h authorization=z"],
        &[
            "key `mcpServers.a.headers.Content-Type` has no effect: Peri sets this header itself; leave it out",
            "key `mcpServers.a.headers.ACCEPT` has no effect: Peri sets this header itself; leave it out",
            "key `mcpServers.a.headers.authorization` holds a secret in plain text; better keep it in an environment variable and write `${NAME}` in its place",
        ],
    );
    check(
        r#"{"servers": {"a": {"command": "a"}}}"#,
        &[],
        &[
            "key `mcpServers` is missing; write `{\"mcpServers\": {\"NAME\": {\"command\": ...}}}`",
            "key `servers` is not known and has no effect; did you mean `mcpServers`?",
        ],
    );
}

#[test]
fn a_damaged_file_is_left_out_and_named() {
    for (file, said) in [
        ("{".as_bytes(), "is not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"\xff", "is not valid UTF-8"),
        (br#"{"mcpServers": {"a": {"command": "a"}, "a": {"command": "b"}}}"#, "key `mcpServers.a` is there twice"),
        (br#"{"mcpServers": [1]}"#, "key `mcpServers` must be an object, not a list"),
        (b"<unreadable>", "cannot be read: permission denied"),
    ] {
        let world = trusted().file(MCP, file).file(USER, r#"{"mcpServers": {"u": {"command": "u"}}}"#);
        assert_eq!(servers(&world), ["u: u"]);
        let findings = world.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with(&format!("W {MCP}: {said}")), "{findings:?}");
        assert!(findings[0].contains("left out"), "{findings:?}");
    }
}

#[test]
fn names_are_those_that_a_rule_can_have() {
    for name in ["a", "github", "awslabs.core-mcp-server", "@scope/pkg", "Figma Dev", "a_b", "_a", &"x".repeat(64)] {
        let world = trusted().file(MCP, format!(r#"{{"mcpServers": {{"{name}": {{"command": "c"}}}}}}"#));
        assert_eq!(servers(&world), [format!("{name}: c")]);
        let world =
            World::new().file(USER, format!(r#"{{"permissions": {{"deny": ["mcp__{name}", "mcp__{name}__t"]}}}}"#));
        assert_eq!(world.findings(), Vec::<String>::new());
        let rule: peri_config::PermissionRule = format!("mcp__{name}__t").parse().unwrap();
        assert!(
            matches!(rule.subject(), peri_config::RuleSubject::ServerTool { server, tool } if server == name && tool == "t")
        );
    }
    for name in ["", "a__b", "a_", " a", "a ", "a\\u0000", "a\\n", "\\u202ea", "é", "a(b)", "a,b", &"x".repeat(65)] {
        let world = trusted().file(MCP, format!(r#"{{"mcpServers": {{"{name}": {{"command": "c"}}}}}}"#));
        assert_eq!(servers(&world), Vec::<String>::new(), "{name}");
        let findings = world.findings();
        assert!(findings[0].contains("has a name that permission rules could not use"), "{findings:?}");
        assert!(!findings[0].contains(char::is_control) && findings[0].len() < 700, "{findings:?}");
    }
}

#[test]
fn a_higher_source_replaces_a_whole_server() {
    let with =
        |command: &str| format!(r#"{{"mcpServers": {{"s": {{"command": "{command}", "args": ["{command}"]}}}}}}"#);
    let origin = |world: &World| {
        let found = world.loaded();
        assert_eq!(found.origins["mcpServers.s"], found.settings.mcp_servers["s"].origin);
        found.settings.mcp_servers["s"].origin.layer
    };
    let mut world = trusted();
    for (path, layer) in
        [(USER, Layer::User), (MCP, Layer::WorkspaceMcp), (SHARED, Layer::Workspace), (LOCAL, Layer::WorkspaceLocal)]
    {
        world = world.file(path, with(path));
        assert_eq!(servers(&world), [format!("s: {path} {path}")]);
        assert_eq!(origin(&world), layer);
    }
    world.overlay.settings = Some(peri_config::SettingsArgument::Inline(
        r#"{"mcpServers": {"s": {"url": "http://h"}, "t": {"command": "t"}}}"#.to_owned(),
    ));
    assert_eq!(servers(&world), ["s: http://h", "t: t"]);
    assert_eq!(origin(&world), Layer::Argument);
    // Nothing is said of a server that is replaced.
    let replaced = r#"{"mcpServers": {"s": {"command": "${NOWHERE}"}}}"#;
    let world = trusted().file(MCP, replaced).file(LOCAL, r#"{"mcpServers": {"s": {"command": "x"}}}"#);
    assert_eq!(world.findings(), Vec::<String>::new());
    assert_eq!(servers(&world), ["s: x"]);
}

#[test]
fn a_higher_source_switches_a_server_off_and_on() {
    let off = r#"{"mcpServers": {"s": {"enabled": false}}}"#;
    let world = trusted().file(MCP, r#"{"mcpServers": {"s": {"command": "${NOWHERE}"}}}"#).file(LOCAL, off);
    // Its variables are not needed then.
    assert_eq!(all_servers(&world), ["off s: ${NOWHERE}"]);
    let found = world.loaded();
    assert_eq!(found.origins["mcpServers.s"].layer, Layer::WorkspaceMcp);
    assert_eq!(found.origins["mcpServers.s.enabled"].layer, Layer::WorkspaceLocal);
    assert_eq!(found.diagnostics, []);

    let world = trusted()
        .file(USER, r#"{"mcpServers": {"s": {"command": "x", "disabled": true}}}"#)
        .file(LOCAL, r#"{"mcpServers": {"s": {"disabled": false}}}"#);
    assert_eq!(servers(&world), ["s: x"]);
    assert_eq!(
        World::new().file(USER, off).findings(),
        [format!("W {USER}: key `mcpServers.s` switches a server that no lower source names")]
    );
}

#[test]
fn in_settings_faults_stop_the_start_and_what_is_missing_here_does_not() {
    let world = World::new().file(USER, r#"{"mcpServers": {"a": {"command": 1}}}"#);
    assert_eq!(world.findings(), [format!("E {USER}: key `mcpServers.a.command` must be text, not a number")]);
    let world = World::new().file(
        USER,
        r#"{"mcpServers": {"a": {"command": "${NOWHERE}"}, "b": {"type": "sse", "url": "http://h"}, "c": {"command": "c"}}}"#,
    );
    assert_eq!(servers(&world), ["c: c"]);
    assert_eq!(world.findings().len(), 2);
    // It is known, so that a person sees all of it before it may start; and it is not started.
    assert_eq!(all_servers(&world), ["off a: ${NOWHERE}", "c: c"]);
}

#[test]
fn an_untrusted_workspace_starts_no_server() {
    let servers_of = r#"{"mcpServers": {"a": {"command": "evil"}}}"#;
    let why = "workspace is not trusted; run `peri trust` or pass --trust-workspace";
    let world = World::new().file(MCP, servers_of).file(SHARED, servers_of);
    assert_eq!(servers(&world), Vec::<String>::new());
    assert_eq!(
        world.findings(),
        [format!("W {MCP}: ignored: {why}"), format!("W {SHARED}: key `mcpServers` (1 server) ignored: {why}")]
    );
    // However damaged; and where trust is not known.
    for file in ["{", "<unreadable>"] {
        assert_eq!(World::new().file(MCP, file).findings(), [format!("W {MCP}: ignored: {why}")]);
    }
    let world = World::new().file(MCP, servers_of).verdict_of(Err("x".to_owned()));
    assert_eq!(servers(&world), Vec::<String>::new());
    assert_eq!(world.findings().len(), 2);
    // Files that change while they are read are not trusted.
    let world = World::new().file(MCP, servers_of);
    *world.verdicts.lock().unwrap() = vec![
        Ok(verdict(TrustState::Trusted)),
        Ok(TrustVerdict { digest: "d2".to_owned(), ..verdict(TrustState::Trusted) }),
    ];
    assert!(world.loaded().settings.mcp_servers.is_empty());
}

#[test]
fn servers_are_displayed_without_secrets() {
    let world = trusted().var("TOKEN", "geheim-1").file(
        MCP,
        r#"{"mcpServers": {
            "p": {"command": "npx", "args": ["--token", "${TOKEN}"], "env": {"A": "geheim-2", "B": "${TOKEN}"}},
            "h": {"url": "https://h/mcp?key=geheim-3", "headers": {"X-Key": "geheim-4", "Y": "Bearer ${TOKEN}"}},
            "off": {"url": "https://u:geheim-5@${H}/", "disabled": true}}}"#,
    );
    let settings = world.loaded().settings;
    let shown = settings.to_display_json();
    assert_eq!(
        shown["mcpServers"],
        serde_json::json!({
            "p": {"command": "npx", "args": ["--token", "${TOKEN}"], "env": {"A": "[redacted]", "B": "${TOKEN}"}, "enabled": true},
            "h": {"type": "http", "url": "https://h/mcp?[redacted]",
                  "headers": {"X-Key": "[redacted]", "Y": "[redacted] with ${TOKEN}"}, "enabled": true},
            "off": {"type": "http", "url": "https://[redacted]@${H}/", "enabled": false},
        })
    );
    assert!(!format!("{settings:?}{shown}").contains("geheim"));
    let found = world.loaded();
    assert!(!format!("{found:?}").contains("geheim"));
}

/// What must not be shown of the only server of a file.
#[track_caller]
fn check_secrets(server: &str, expect: &[&str]) {
    let world = trusted()
        .var("TOKEN", "geheim-variable")
        .var("HOME", "/home/someone")
        .file(MCP, format!(r#"{{"mcpServers": {{"a": {server}}}}}"#));
    let found = world.loaded().settings.mcp_servers;
    let mut secrets: Vec<String> = found["a"].value.secrets().map(|secret| secret.reveal().to_owned()).collect();
    secrets.sort();
    secrets.dedup();
    assert_eq!(secrets, expect, "{server}");
}

#[test]
fn secrets_are_known_whole_and_in_parts() {
    check_secrets(
        r#"{"url": "https://h", "headers": {"A": "Bearer ${TOKEN}"}}"#,
        &["Bearer geheim-variable", "geheim-variable"],
    );
    check_secrets(r#"{"url": "https://h", "headers": {"A": "Basic geheimes"}}"#, &["Basic geheimes", "geheimes"]);
    check_secrets(r#"{"command": "c", "env": {"A": "pre-${TOKEN}"}}"#, &["geheim-variable", "pre-geheim-variable"]);
    check_secrets(r#"{"command": "c", "args": ["x:${TOKEN}", "${HOME}/docs"]}"#, &["geheim-variable"]);
    check_secrets(r#"{"url": "https://h/${TOKEN}/mcp"}"#, &["geheim-variable"]);
    // Off here, it may have run elsewhere.
    check_secrets(r#"{"command": "c", "args": ["${TOKEN}"], "disabled": true}"#, &["geheim-variable"]);
    check_secrets(r#"{"command": "c", "args": ["${TOKEN}", "${NOWHERE}"]}"#, &["geheim-variable"]);
}

#[test]
fn what_variables_hold_is_bounded() {
    let world = trusted()
        .var("BIG", &"x".repeat(100_000))
        .file(MCP, r#"{"mcpServers": {"a": {"command": "c", "args": ["${BIG}", "${BIG}", "${BIG}", "${BIG}"]}, "b": {"command": "${BIG}"}}}"#);
    let found = world.loaded().settings.mcp_servers;
    assert_eq!((found["a"].value.enabled, found["b"].value.enabled), (false, true));
    let findings = world.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("makes the server's texts larger than 262144 bytes"), "{findings:?}");
    let many: Vec<String> = (0..101).map(|index| format!(r#""s{index}": {{"command": "c"}}"#)).collect();
    check(
        &format!(r#"{{"mcpServers": {{{}}}}}"#, many.join(",")),
        &[],
        &["key `mcpServers` holds more than 100 servers: the file is left out; keep those that are used"],
    );
}

#[test]
fn the_budget_of_tool_schemas() {
    let budget = |document: &str| World::new().file(USER, document).loaded().settings.mcp_tool_schema_budget;
    assert_eq!(budget("{}"), 40 * 1024);
    assert_eq!(budget(r#"{"mcp": {"toolSchemaBudgetBytes": 0}}"#), 0);
    assert_eq!(budget(r#"{"mcp": {"toolSchemaBudgetBytes": 9000}}"#), 9000);
}
