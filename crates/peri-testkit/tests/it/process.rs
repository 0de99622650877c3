//! The scripted endpoint in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use peri_testkit::model_server::{Answer, FakeModelServer, ScriptFile};
use serde_json::{Value, json};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(script: &Value, folder: &Folder) -> Child {
    let path = folder.0.join("script.json");
    std::fs::write(&path, script.to_string()).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_scripted-endpoint"))
        .arg("--script")
        .arg(&path)
        .arg("--log")
        .arg(folder.0.join("log"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn post(port: u16, body: &Value) -> String {
    let body = body.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let head = format!("POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn it_prints_its_port_serves_logs_and_ends_with_its_standard_input() {
    let folder = Folder::new("endpoint");
    let script = json!({"choose": "by_history", "replies": [
        {"thinking": "Hm.", "text": ["a", "b"], "text_times": 3, "usage": {"input": 7},
         "tool_calls": [{"name": "Read", "input": {"path": "x"}}, {"id": "mine", "name": "List"}]},
        {"status": 529, "headers": {"retry-after": "1"}, "error": {"type": "overloaded_error", "message": "no"}},
    ]});
    let mut child = start(&script, &folder);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let port: u16 = line.trim().parse().expect("a port");
    let user = json!({"role": "user", "content": "hi"});
    let first = post(port, &json!({"messages": [user]}));
    assert_eq!(first.matches("text_delta").count(), 6, "{first}");
    for part in ["\"toolu_0_0\"", "\"mine\"", "{\\\"path\\\":\\\"x\\\"}", "\"input_tokens\":7", "\"tool_use\""] {
        assert!(first.contains(part), "{part} in {first}");
    }
    let second = post(port, &json!({"messages": [user, {"role": "assistant", "content": "a"}, user]}));
    assert!(second.starts_with("HTTP/1.1 529 ") && second.contains("retry-after: 1\r\n"), "{second}");
    drop(child.stdin.take());
    assert!(child.wait().expect("a child of ours").success());
    let log = std::fs::read_to_string(folder.0.join("log")).expect("the log");
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(entries.len(), 2);
    assert!(entries[0]["at_us"].as_u64() <= entries[1]["at_us"].as_u64());
    assert_eq!(entries[1]["body"]["messages"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_is_no_script_is_refused_with_the_place() {
    let folder = Folder::new("no-script");
    let child = start(&json!({"replies": [{"texte": "a"}]}), &folder);
    let output = child.wait_with_output().expect("a child of ours");
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("unknown field `texte`") && words.contains("line 1 column"), "{words}");
}

#[test]
fn faults_of_a_script_are_those_of_a_reply() {
    let script = br#"{"replies": [{"text": "0123456789", "cut_after": 20, "chunk_bytes": 3},
                                  {"text": "x", "error": {"type": "api_error", "message": "oh"}}]}"#;
    let server = FakeModelServer::start(ScriptFile::parse(script).expect("a script"));
    let body = json!({"messages": [{"role": "user", "content": "hi"}]});
    let cut = post(server.port(), &body);
    let start = String::from_utf8(Answer::new().into_events().concat()).expect("UTF-8");
    let framed: String = start.as_bytes()[..20].chunks(3).fold(String::new(), |text, piece| {
        text + &format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece))
    });
    assert!(cut.ends_with(&format!("\r\n\r\n{framed}")), "{cut}");
    let failed = post(server.port(), &body);
    assert!(failed.contains("\"api_error\"") && !failed.contains("message_stop"), "{failed}");
}
