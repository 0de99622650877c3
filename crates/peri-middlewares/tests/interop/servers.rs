//! Each server: what it lists, a call, an error.

use std::path::Path;
use std::process::Command;

use peri_acp_types::{Content, ToolOutput};
use serde_json::json;
use tempfile::TempDir;

use crate::session::{Session, node_program, process, python_program};

#[track_caller]
fn check_text(output: &ToolOutput, is_error: bool, expect: &str) {
    assert!(output.is_error == is_error && output.joined_text().contains(expect), "{expect}: {output:?}");
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// It has a tool for nearly everything that the protocol knows, and lists some of them only when it knows its client.
#[tokio::test]
async fn server_everything() {
    let root = folder();
    let program = node_program("mcp-server-everything");
    let session = Session::open(vec![process("all", &program, &["stdio"], root.path())]).await;
    for tool in ["echo", "get-sum", "get-tiny-image", "get-structured-content"] {
        let name = format!("mcp__all__{tool}");
        assert!(session.names().contains(&name.as_str()), "{name}: {:?}; {:?}", session.names(), session.notices());
    }
    check_text(&session.call("mcp__all__echo", json!({"message": "ho 🦀"})).await, false, "ho 🦀");
    check_text(&session.call("mcp__all__get-sum", json!({"a": 2, "b": 40})).await, false, "42");
    check_text(&session.call("mcp__all__get-sum", json!({"a": "two"})).await, true, "it lacks `b`");
    let picture = session.call("mcp__all__get-tiny-image", json!({})).await;
    assert!(picture.content.iter().any(|part| matches!(part, Content::Image(_))), "{picture:?}");
    let weather = session.call("mcp__all__get-structured-content", json!({"location": "Chicago"})).await;
    check_text(&weather, false, "temperature");
    let slow = json!({"duration": 1, "steps": 2});
    check_text(&session.call("mcp__all__trigger-long-running-operation", slow).await, false, "completed");

    let prompt = session.command("mcp__all__args-prompt", "Lisbon Estremadura").await.expect("a prompt");
    assert!(prompt.contains("Lisbon") && prompt.contains("Estremadura"), "{prompt}");
    let missing = session.command("mcp__all__args-prompt", "").await.expect_err("an argument is missing");
    assert!(missing.contains("needs `city`"), "{missing}");
    session.close().await;
}

#[tokio::test]
async fn server_filesystem() {
    let root = folder();
    let path = root.path().canonicalize().expect("its real path");
    std::fs::write(path.join("a.txt"), "hello\n").expect("a file");
    let program = node_program("mcp-server-filesystem");
    let session = Session::open(vec![process("fs", &program, &[path.to_str().expect("UTF-8")], &path)]).await;
    let at = |name: &str| path.join(name).to_str().expect("UTF-8").to_owned();
    check_text(&session.call("mcp__fs__read_text_file", json!({"path": at("a.txt")})).await, false, "hello");
    let write = json!({"path": at("b.txt"), "content": "new"});
    check_text(&session.call("mcp__fs__write_file", write).await, false, "b.txt");
    assert_eq!(std::fs::read_to_string(path.join("b.txt")).expect("written"), "new");
    check_text(&session.call("mcp__fs__read_text_file", json!({"path": "/etc/hostname"})).await, true, "denied");
    check_text(&session.call("mcp__fs__read_text_file", json!({"path": at("none")})).await, true, "ENOENT");
    check_text(&session.call("mcp__fs__read_text_file", json!({})).await, true, "it lacks `path`");
    session.close().await;
}

/// It allows the roots that it is told of over the protocol.
#[tokio::test]
async fn server_filesystem_by_roots() {
    let (root, elsewhere) = (folder(), folder());
    let root = root.path().canonicalize().expect("its real path");
    let program = node_program("mcp-server-filesystem");
    // It wants a folder to begin with; what the client says replaces it.
    let args = [elsewhere.path().to_str().expect("UTF-8")];
    let session = Session::open(vec![process("fs", &program, &args, &root)]).await;
    let wanted = root.to_str().expect("UTF-8");
    // The server asks for the roots after the handshake, when a session may already call.
    let mut allowed = session.call("mcp__fs__list_allowed_directories", json!({})).await;
    while !allowed.joined_text().contains(wanted) {
        assert!(!allowed.is_error, "{allowed:?}");
        allowed = session.call("mcp__fs__list_allowed_directories", json!({})).await;
    }
    session.close().await;
}

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]).args(args).current_dir(folder);
    assert!(command.output().expect("git runs").status.success(), "git {args:?}");
}

#[tokio::test]
async fn server_git() {
    let root = folder();
    let path = root.path().canonicalize().expect("its real path");
    git(&path, &["init", "--quiet"]);
    std::fs::write(path.join("a.txt"), "hello\n").expect("a file");
    git(&path, &["add", "a.txt"]);
    git(&path, &["commit", "--quiet", "--message", "First of all"]);
    std::fs::write(path.join("a.txt"), "changed\n").expect("a file");
    let repository = path.to_str().expect("UTF-8");
    let program = python_program("mcp-server-git");
    let session = Session::open(vec![process("git", &program, &["--repository", repository], &path)]).await;
    let about = |more: serde_json::Value| {
        let mut arguments = json!({"repo_path": repository});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    check_text(&session.call("mcp__git__git_status", about(json!({}))).await, false, "a.txt");
    check_text(&session.call("mcp__git__git_log", about(json!({"max_count": 1}))).await, false, "First of all");
    check_text(&session.call("mcp__git__git_diff_unstaged", about(json!({}))).await, false, "+changed");
    check_text(&session.call("mcp__git__git_show", about(json!({"revision": "nothing"}))).await, true, "nothing");
    session.close().await;
}

#[tokio::test]
async fn server_time() {
    let root = folder();
    let program = python_program("mcp-server-time");
    let session = Session::open(vec![process("time", &program, &["--local-timezone=UTC"], root.path())]).await;
    assert_eq!(session.names(), ["mcp__time__get_current_time", "mcp__time__convert_time"]);
    let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    check_text(&session.call("mcp__time__convert_time", arguments).await, false, "T21:00:00+09:00");
    let wrong = json!({"timezone": "Middle/Earth"});
    check_text(&session.call("mcp__time__get_current_time", wrong).await, true, "timezone");
    session.close().await;
}

/// All at once, with one among them that does not start, and one that is killed in between.
#[tokio::test]
async fn one_that_fails_leaves_the_others_alone() {
    let root = folder();
    let path = root.path();
    let session = Session::open(vec![
        process("absent", Path::new("/no/such/program"), &[], path),
        process("wrong", &python_program("mcp-server-time"), &["--no-such-option"], path),
        process("frail", Path::new("sh"), &["-c", "exec \"$0\" stdio", &program_text("mcp-server-everything")], path),
        process("time", &python_program("mcp-server-time"), &["--local-timezone=UTC"], path),
    ])
    .await;
    let notices = session.notices();
    assert!(notices[0].starts_with("MCP server `absent`: cannot start /no/such/program"), "{notices:?}");
    assert!(notices[1].starts_with("MCP server `wrong` did not start: it ended with exit code 2"), "{notices:?}");
    assert!(notices[1].contains("no-such-option"), "its own words are told: {notices:?}");
    let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    check_text(&session.call("mcp__frail__echo", json!({"message": "here"})).await, false, "here");
    check_text(&session.call("mcp__time__convert_time", arguments).await, false, "21:00");
    session.close().await;
}

fn program_text(name: &str) -> String {
    node_program(name).to_str().expect("UTF-8").to_owned()
}
