//! Servers that are processes: real ones, by shell script.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use peri_acp_types::ToolOutput;
use peri_acp_types::ports::{McpConnectError, McpConnector, McpDuplex, McpServerSpec, McpTransport, Secret};
use peri_agent::{Contribution, Middleware};
use peri_middlewares::mcp::{McpConfig, McpMiddleware, McpPorts, stdio};
use serde_json::json;
use tokio::task::JoinSet;

use crate::fakes::{FakeBroker, pending, scope};
use crate::process::{TokioClock, TokioProcesses};

/// Opens processes, and runs what serves them.
#[derive(Default)]
struct Processes {
    host: TokioProcesses,
    serving: std::sync::Mutex<JoinSet<Result<(), String>>>,
}

#[async_trait::async_trait]
impl McpConnector for Processes {
    async fn open(&self, server: &McpServerSpec) -> Result<McpDuplex, McpConnectError> {
        let link = stdio::open(&self.host, Arc::new(TokioClock), server).await?;
        self.serving.lock().unwrap().spawn(link.serving);
        Ok(link.duplex)
    }
}

struct Bridge {
    middleware: McpMiddleware,
    offered: Contribution,
    processes: Arc<Processes>,
}

/// Answers the handshake and lists one tool, `run`; the script goes on with the call in its input.
const HANDSHAKE: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
next() { read -r line || exit 0; id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
next; answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}'
next; next; answer '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}'
next
"#;
const DONE: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

fn spec(name: &str, script: &str) -> McpServerSpec {
    let env = BTreeMap::from([("TOKEN".to_owned(), Secret::new("geheim-geheim"))]);
    McpServerSpec {
        name: name.to_owned(),
        roots: vec!["/".to_owned()],
        hidden_env: Vec::new(),
        transport: McpTransport::Stdio {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env,
        },
    }
}

async fn bridge(servers: Vec<McpServerSpec>) -> Bridge {
    let processes = Arc::new(Processes::default());
    let ports =
        McpPorts { connector: processes.clone(), clock: Arc::new(TokioClock), broker: Arc::<FakeBroker>::default() };
    let middleware = McpMiddleware::new(McpConfig { servers, ..McpConfig::default() }, ports);
    let offered = middleware.open(&scope()).await;
    Bridge { middleware, offered, processes }
}

async fn bridge_to(script: &str) -> Bridge {
    bridge(vec![spec("sh", &format!("{HANDSHAKE}{script}"))]).await
}

impl Bridge {
    async fn run(&self, server: &str) -> ToolOutput {
        let name = format!("mcp__{server}__run");
        let spec = self.offered.tools.iter().find(|tool| tool.name == name).expect("the tool").clone();
        self.middleware.run_call(&pending(spec, json!({}))).await.expect("its own tool")
    }

    fn notices(&self) -> Vec<&str> {
        self.offered.notices.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Closes, and gives what the processes' servers could not confirm.
    async fn close(self) -> Vec<String> {
        let mut trouble = self.middleware.close(&scope()).await;
        let mut serving = std::mem::take(&mut *self.processes.serving.lock().unwrap());
        while let Some(served) = serving.join_next().await {
            trouble.extend(served.expect("no panic").err());
        }
        trouble
    }
}

fn is_running(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_process_sees_what_it_is_given_and_not_what_is_hidden() {
    let shown = r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"${TOKEN-} ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME-hidden}\"}]}""#;
    let mut server = spec("sh", &format!("{HANDSHAKE}{shown}; cat >/dev/null"));
    server.hidden_env = vec!["CARGO_MANIFEST_DIR".to_owned(), "TOKEN".to_owned()];
    let bridge = bridge(vec![server]).await;
    // What is given by name wins; what nobody hides is there.
    assert_eq!(bridge.run("sh").await, ToolOutput::text("geheim-geheim hidden peri-middlewares"));
    assert_eq!(bridge.close().await, [""; 0]);
}

#[tokio::test]
async fn a_process_is_asked_and_ended() {
    let bridge = bridge_to(&format!("{DONE}; next; {DONE}; cat >/dev/null")).await;
    assert_eq!(bridge.notices(), [""; 0]);
    assert_eq!(bridge.run("sh").await, ToolOutput::text("done"));
    assert_eq!(bridge.run("sh").await, ToolOutput::text("done"));
    let pid = bridge.processes.host.started.borrow()[0];
    assert!(is_running(pid));
    assert_eq!(bridge.close().await, [""; 0]);
    assert!(!is_running(pid));
}

#[tokio::test]
async fn a_process_that_does_not_leave_is_killed() {
    let bridge = bridge_to(&format!("{DONE}; trap '' TERM HUP; sleep 1000 & exec sleep 1000")).await;
    assert_eq!(bridge.run("sh").await, ToolOutput::text("done"));
    let pid = bridge.processes.host.started.borrow()[0];
    assert_eq!(bridge.close().await, [""; 0]);
    assert!(!is_running(pid));
}

#[tokio::test]
async fn it_gets_its_folder_and_its_variables() {
    let script = r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"$PWD $TOKEN\"}]}"; cat >/dev/null"#;
    let bridge = bridge_to(script).await;
    assert_eq!(bridge.run("sh").await, ToolOutput::text("/ geheim-geheim"));
    bridge.close().await;
}

#[tokio::test]
async fn death_in_a_call_ends_it_at_once_though_a_child_holds_the_pipes() {
    let bridge = bridge_to("sleep 1000 & echo \"out of paper, $TOKEN\" >&2; exit 3").await;
    let output = bridge.run("sh").await;
    assert!(output.is_error);
    assert_eq!(
        output.joined_text(),
        "MCP server `sh` gave no result for `run`: it ended with exit code 3; its last words on standard error: out of \
         paper, [redacted]. What it has done until then is not known."
    );
    let again = bridge.run("sh").await.joined_text();
    assert!(again.starts_with("MCP server `sh` is gone"), "{again}");
    assert_eq!(bridge.close().await, [""; 0]);
}

#[tokio::test]
async fn what_was_written_before_death_still_counts() {
    let bridge = bridge_to(&format!("{DONE}; exit 0")).await;
    assert_eq!(bridge.run("sh").await, ToolOutput::text("done"));
    bridge.close().await;
}

#[tokio::test]
async fn starts_that_fail_say_why_and_others_go_on() {
    let mut absent = spec("absent", "");
    absent.transport = McpTransport::Stdio {
        command: "/no/such/program".to_owned(),
        args: vec!["--token=geheim".to_owned()],
        env: BTreeMap::new(),
    };
    let servers = vec![
        absent,
        spec("broken", "echo Loading...; echo \"Error: no $TOKEN\" >&2; exit 7"),
        spec("killed", "kill -KILL $$"),
        spec("shut", "exec >&-; exec sleep 1000"),
        spec("sound", &format!("echo hello; {HANDSHAKE}{DONE}; cat >/dev/null")),
    ];
    let bridge = bridge(servers).await;
    let notices = bridge.notices();
    assert!(notices[0].starts_with("MCP server `absent`: cannot start /no/such/program: "), "{notices:?}");
    assert!(!notices[0].contains("geheim"), "{notices:?}");
    assert_eq!(
        notices[1..],
        [
            "MCP server `broken` did not start: it ended with exit code 7; its last words on standard error: Error: no \
             [redacted]; it sent a line that is no message and was passed over: `Loading...`",
            "MCP server `killed` did not start: it was ended by signal 9",
            "MCP server `shut` did not start: it has closed its end of the connection",
            "MCP server `sound`: it sent a line that is no message and was passed over: `hello`",
        ]
    );
    assert_eq!(bridge.run("sound").await, ToolOutput::text("done"));
    assert_eq!(bridge.close().await, [""; 0]);
}

#[track_caller]
fn check_no_secret(texts: &[&str]) {
    assert!(!texts.is_empty());
    for text in texts {
        assert!(text.contains("[redacted]") && !text.contains("geheim") && !text.contains("hidden"), "{text}");
    }
}

/// Answers with an error, and stays.
const REFUSE: &str = r#"
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"%s"}}\n' "$id" "$1"; cat >/dev/null; }
"#;

#[tokio::test]
async fn what_servers_say_is_shown_without_what_they_were_given() {
    let (speech, _) = HANDSHAKE.split_once("next; answer").expect("how to speak");
    let (greeted, _) = HANDSHAKE.split_once("next; next;").expect("a greeting");
    let scripts = [
        r#"echo "rubbish $TOKEN"; exit 1"#.to_owned(),
        r#"printf 'ge\033heim-geheim\n'; exit 1"#.to_owned(),
        // Cut in the middle before it is shown.
        r#"echo "$LONG$LONG$LONG"; exit 1"#.to_owned(),
        r#"echo "[\"$TOKEN\"]"; exit 1"#.to_owned(),
        r#"echo "{\"x\":\"$TOKEN\"}"; exit 1"#.to_owned(),
        r#"echo "no $TOKEN" >&2; exit 1"#.to_owned(),
        r#"i=0; while [ $i -lt 50 ]; do echo "$LONG" >&2; i=$((i+1)); done; exit 1"#.to_owned(),
        format!(r#"{speech}{REFUSE} next; refuse "no $TOKEN""#),
        format!(r#"{greeted}{REFUSE} next; next; refuse "no $TOKEN""#),
        format!(r#"{greeted} next; next; answer "{{\"tools\":[{{\"name\":\"$TOKEN\"}}]}}"; cat >/dev/null"#),
        format!(r#"{greeted} next; next; echo "rubbish $TOKEN"; answer '{{"tools":[]}}'; cat >/dev/null"#),
    ];
    let servers = scripts.iter().enumerate().map(|(index, script)| {
        let mut server = spec(&format!("s{index}"), script);
        if let McpTransport::Stdio { env, .. } = &mut server.transport {
            env.insert("LONG".to_owned(), Secret::new("hidden-".repeat(13)));
        }
        server
    });
    let bridge = bridge(servers.collect()).await;
    assert_eq!(bridge.notices().len(), scripts.len(), "{:?}", bridge.notices());
    check_no_secret(&bridge.notices());
    bridge.close().await;
}

#[tokio::test]
async fn failed_calls_are_shown_without_secrets() {
    for end in [
        r#"answer "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"bad $TOKEN\"}]}"; cat >/dev/null"#,
        r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"bad %s"}}\n' "$id" "$TOKEN"; cat >/dev/null"#,
        r#"echo "bad $TOKEN" >&2; exit 1"#,
    ] {
        let bridge = bridge_to(end).await;
        let output = bridge.run("sh").await;
        assert!(output.is_error);
        check_no_secret(&[&output.joined_text()]);
        bridge.close().await;
    }
}

#[tokio::test]
async fn answers_to_nothing_are_passed_over() {
    let stray = r#"
echo '{"jsonrpc":"2.0","id":999,"result":{}}'; echo '{"jsonrpc":"2.0","id":998,"error":{"code":1,"message":"x"}}'
"#;
    let bridge = bridge(vec![spec("sh", &format!("{stray}{HANDSHAKE}{stray}{DONE}; cat >/dev/null"))]).await;
    let notices = bridge.notices();
    assert!(notices.len() == 1 && notices[0].contains("999"), "{notices:?}");
    assert_eq!(bridge.run("sh").await, ToolOutput::text("done"));
    bridge.close().await;
}

#[tokio::test]
async fn one_that_is_gone_before_its_client_begins_says_why() {
    let host = TokioProcesses::default();
    let server = spec("sh", "echo 'no paper' >&2; exit 3");
    let link = stdio::open(&host, Arc::new(TokioClock), &server).await.expect("it starts");
    let serving = tokio::spawn(link.serving);
    let pid = host.started.borrow()[0];
    while is_running(pid) {
        tokio::task::yield_now().await;
    }
    let McpDuplex { mut incoming, mut outgoing } = link.duplex;
    outgoing.send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"})).await.expect("it is heard");
    let answer = incoming.next().await.expect("an answer");
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["error"]["message"], "it ended with exit code 3; its last words on standard error: no paper");
    assert_eq!(incoming.next().await, None);
    assert_eq!(serving.await.expect("no panic"), Ok(()));
}

#[tokio::test]
async fn five_megabytes_on_a_line_arrive() {
    let script = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
        head -c 5000000 /dev/zero | tr '\0' x; printf '"}]}}\n'; cat >/dev/null"#;
    let bridge = bridge_to(script).await;
    let text = bridge.run("sh").await.joined_text();
    assert!(text.len() < 300 * 1024 && text.contains("lines left out ...]"), "{} bytes", text.len());
    bridge.close().await;
}

#[tokio::test]
async fn a_message_without_end_is_not_held() {
    let bridge = bridge_to(r#"printf '{"x":"'; tr '\0' x </dev/zero"#).await;
    let text = bridge.run("sh").await.joined_text();
    assert!(text.contains("it sent a message of more than 16 MiB and was ended"), "{text}");
    assert_eq!(bridge.close().await, [""; 0]);
}

#[tokio::test]
async fn one_that_does_not_read_its_input_is_noticed() {
    let (sh, script) = ("sh", format!("{HANDSHAKE}{DONE}; exec sleep 1000"));
    let bridge = bridge(vec![spec(sh, &script)]).await;
    assert_eq!(bridge.run(sh).await, ToolOutput::text("done"));
    let tool = bridge.offered.tools[0].clone();
    let large = "x".repeat(24 * 1024 * 1024);
    let calls = (0..3).map(|_| {
        let call = pending(tool.clone(), json!({"text": large}));
        let middleware = &bridge.middleware;
        async move { middleware.run_call(&call).await.expect("its own tool").joined_text() }
    });
    let texts = futures::future::join_all(calls).await;
    assert!(texts[0].contains("it does not read its input: 64 MiB wait for it"), "{texts:?}");
    assert_eq!(bridge.close().await, [""; 0]);
}

#[tokio::test]
async fn a_dropped_bridge_leaves_no_process() {
    let bridge = bridge_to(&format!("{DONE}; cat >/dev/null")).await;
    let pid = bridge.processes.host.started.borrow()[0];
    let mut serving = std::mem::take(&mut *bridge.processes.serving.lock().unwrap());
    drop(bridge);
    while let Some(served) = serving.join_next().await {
        served.expect("no panic").expect("gone");
    }
    assert!(!is_running(pid));
}
