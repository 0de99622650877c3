//! The server as an MCP server: its list, its answers to calls that are wrong, its end.

use peri_acp_types::ports::{META_TOOL_KIND, McpDuplex};
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::{Opening, PATIENCE, session, until};

#[tokio::test]
async fn the_list_names_every_tool_with_kind_hints_and_a_plain_schema() {
    let session = session().await;
    let tools = session.client.list_all_tools().await.unwrap();
    let summary: Vec<String> = tools
        .iter()
        .map(|tool| {
            let kind = tool.meta.as_ref().and_then(|meta| meta.get(META_TOOL_KIND)).and_then(Value::as_str).unwrap();
            let read_only = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap();
            let keys: Vec<&str> =
                tool.input_schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let required: Vec<&str> = match tool.input_schema.get("required") {
                Some(required) => required.as_array().unwrap().iter().filter_map(Value::as_str).collect(),
                None => Vec::new(),
            };
            format!("{} {kind} {read_only} {} | {}", tool.name, keys.join(","), required.join(","))
        })
        .collect();
    assert_eq!(
        summary,
        [
            "Read read true file_path,offset,limit | file_path",
            "Write edit false file_path,content | file_path,content",
            "Edit edit false file_path,old_string,new_string,replace_all | file_path,old_string,new_string",
            "Glob search true pattern,path | pattern",
            "Grep search true pattern,path,glob,type,output_mode,-i,-n,-A,-B,-C,head_limit,multiline | pattern",
            "Bash execute false command,timeout,description,run_in_background | command",
            "BashOutput read true bash_id | ",
            "KillBash execute false bash_id | bash_id",
        ]
    );
    let schemas =
        serde_json::to_string(&tools.iter().map(|tool| tool.input_schema.clone()).collect::<Vec<_>>()).unwrap();
    for noise in ["$schema", "\"title\"", "uint64", "\"null\"", "anyOf", "$ref"] {
        assert!(!schemas.contains(noise), "{noise} in {schemas}");
    }
    assert_eq!(
        tools[4].input_schema["properties"]["output_mode"]["enum"],
        json!(["content", "files_with_matches", "count"])
    );
}

#[tokio::test]
async fn wrong_arguments_are_results_that_name_the_field() {
    let session = session().await;
    for (tool, arguments, expected) in [
        ("Read", json!({}), "Invalid arguments for Read: missing field `file_path`."),
        (
            "Read",
            json!({"file_path": 5}),
            "Invalid arguments for Read: `file_path`: invalid type: integer `5`, expected a string.",
        ),
        (
            "Read",
            json!({"file_path": "a", "limit": -1}),
            "Invalid arguments for Read: `limit`: expected a whole number of at least 0, not -1.",
        ),
        (
            "Read",
            json!({"file_path": "a", "lines": 5}),
            "unknown field `lines`, expected one of `file_path`, `offset`, `limit`",
        ),
        ("Grep", json!({"pattern": "a", "output_mode": "all"}), "`output_mode`: unknown variant `all`"),
        ("Grep", json!({"pattern": "a", "-i": "maybe"}), "`-i`: expected true or false, not \"maybe\""),
        ("KillBash", json!({}), "missing field `bash_id`"),
        (
            "Delete",
            json!({}),
            "There is no tool `Delete`. There are: Read, Write, Edit, Glob, Grep, Bash, BashOutput, KillBash.",
        ),
    ] {
        let error = session.call(tool, arguments).await.error();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn numbers_and_truth_values_may_come_as_strings_or_null() {
    let session = session().await;
    session.put("a.txt", "one\ntwo\nthree\n");
    let reply = session.call("Read", json!({"file_path": "a.txt", "offset": "2", "limit": 1.0})).await;
    assert!(reply.ok().starts_with("     2\ttwo\n"), "{}", reply.text());
    let reply = session.call("Grep", json!({"pattern": "TWO", "-i": "true", "path": null, "head_limit": null})).await;
    assert_eq!(reply.ok(), "a.txt");
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_the_connection_lives_on() {
    use futures::{SinkExt as _, StreamExt as _};
    let workspace = tempfile::tempdir().unwrap();
    let ports = peri_mcp_servers::workspace::WorkspacePorts {
        process: std::sync::Arc::new(crate::support::PlainHost::default()),
        clock: std::sync::Arc::new(crate::support::RealClock),
        spill_dir: workspace.path().join("spill"),
        limits: Default::default(),
        env: Default::default(),
        home: None,
    };
    let roots = [workspace.path().to_owned()];
    let server = peri_mcp_servers::workspace::WorkspaceServer::new(&ports, &roots).unwrap();
    let (mut ours, theirs) = McpDuplex::pair(1);
    let server = tokio::spawn(server.serve(theirs));
    ours.outgoing.send(json!({"jsonrpc": "2.0", "id": 7, "method": 9})).await.unwrap();
    let refusal = tokio::time::timeout(PATIENCE, ours.incoming.next()).await.unwrap().unwrap();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(7), &json!(-32600)));
    let hello = json!({"jsonrpc": "2.0", "id": 8, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
    ours.outgoing.send(hello).await.unwrap();
    let welcome = tokio::time::timeout(PATIENCE, ours.incoming.next()).await.unwrap().unwrap();
    assert_eq!(welcome["result"]["serverInfo"]["name"], "workspace");
    drop(ours);
    tokio::time::timeout(PATIENCE, server).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_client_of_the_newest_protocol_is_served_as_well() {
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let session = Opening { lifecycle, ..Opening::default() }.session().await;
    session.put("a.txt", "one\n");
    session.read("a.txt").await.ok();
    let file = session.outside.join("x");
    session.call("Write", json!({"file_path": file, "content": "x"})).await.error();
    session.call_granting("Write", json!({"file_path": file, "content": "x"}), &[&file]).await.ok();
    let call = session.start("Bash", json!({"command": "touch started; sleep 1000"}), &[]).await;
    until("the command has started", || session.root.join("started").exists()).await;
    call.cancel(None).await.unwrap();
    until("its processes are gone", || session.host.left().is_empty()).await;
}

#[tokio::test]
async fn the_end_of_the_connection_ends_calls_and_processes() {
    let session = session().await;
    let started = session.root.join("started");
    let _call = session.start("Bash", json!({"command": "touch started; sleep 1000"}), &[]).await;
    session.call("Bash", json!({"command": "sleep 1000", "run_in_background": true})).await.ok();
    session.bash("sleep 1000 > /dev/null 2>&1 &").await.ok();
    until("the command has started", || started.exists()).await;
    until("its processes run", || session.host.left().len() >= 3).await;
    let host = session.close().await;
    assert_eq!(host.left(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_server_that_is_dropped_leaves_no_process() {
    let session = session().await;
    session.call("Bash", json!({"command": "sleep 1000", "run_in_background": true})).await.ok();
    session.server.abort();
    until("its processes are gone", || session.host.left().is_empty()).await;
}

#[tokio::test]
async fn a_root_that_is_not_there_is_told() {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ports = peri_mcp_servers::workspace::WorkspacePorts {
        process: std::sync::Arc::new(crate::support::PlainHost::default()),
        clock: std::sync::Arc::new(crate::support::RealClock),
        spill_dir: workspace.path().join("spill"),
        limits: Default::default(),
        env: Default::default(),
        home: None,
    };
    for (roots, expected) in [
        (vec![], "at least one root"),
        (vec![workspace.path().join("none")], "No such file"),
        (vec![file], "is not a directory"),
    ] {
        let error = peri_mcp_servers::workspace::WorkspaceServer::new(&ports, &roots).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
