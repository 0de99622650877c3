//! Bash and its background tasks: cases 9, 14, 15 and their neighbours.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::ports::KillProof;
use peri_mcp_servers::workspace::ServeError;
use serde_json::{Value, json};

use crate::support::{ManualClock, Opening, PATIENCE, ScriptedHost, Session, session, until};

/// Reads a background task until its output holds the text; everything read so far.
async fn read_until(session: &Session, id: &str, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        all += &session.call("BashOutput", json!({"bash_id": id})).await.ok();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    all
}

async fn background(session: &Session, command: &str) {
    session.call("Bash", json!({"command": command, "run_in_background": true})).await.ok();
}

#[tokio::test]
async fn output_and_exit_code_are_told() {
    let session = session().await;
    assert_eq!(session.bash("echo out; echo err >&2; echo out2").await.ok(), "out\nerr\nout2");
    assert_eq!(session.bash("true").await.ok(), "(no output)");
    assert_eq!(session.bash("echo no; exit 3").await.error(), "no\n[Exit code 3.]");
    assert_eq!(session.bash("kill -9 $$").await.error(), "(no output)\n[Ended by signal 9 (SIGKILL).]");
    assert_eq!(session.bash("cat; echo $TERM $FROM_HOST").await.ok(), "dumb yes");
    assert_eq!(session.bash("cd /; pwd").await.ok(), "/");
    assert_eq!(session.bash("pwd").await.ok(), session.root.to_str().unwrap());
    assert_eq!(session.bash("  ").await.error(), "command is empty.");
    assert!(session.bash("a\0b").await.error().contains("NUL"));
    assert!(session.bash("no-such-program-here").await.error().contains("[Exit code 127.]"));
}

#[tokio::test]
async fn control_codes_and_overwritten_text_are_gone() {
    let session = session().await;
    let shown = session.bash(r"printf '\033[31mred\033[0m\n10%%\r50%%\r100%%\nab\bc\n\377\n'").await;
    assert_eq!(shown.ok(), "red\n100%\nac\n\u{fffd}");
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_the_whole_in_a_file() {
    let session = session().await;
    // 15,000 bytes fall into the middle of a crab.
    let shown = session.bash(r"printf 12345678; for i in $(seq 10000); do printf '🦀%05d\n' $i; done").await.ok();
    assert!(shown.len() < 30_300, "{}", shown.len());
    assert!(shown.starts_with("12345678🦀00001\n") && shown.ends_with("🦀10000"));
    let marker = shown.lines().find(|line| line.starts_with("[…")).unwrap();
    let spilled = session.spill_dir.join("bash_1.txt");
    assert_eq!(
        marker,
        format!("[… 70010 bytes (7001 lines) left out here; all of the output is in {} …]", spilled.display())
    );
    let whole = std::fs::read_to_string(&spilled).unwrap();
    assert_eq!(whole.len(), 100_008);
    // The file can be read on with the tools, though it lies outside the workspace; written it cannot be.
    let page = session.call("Read", json!({"file_path": spilled, "offset": 5000, "limit": 1})).await.ok();
    assert!(page.starts_with("  5000\t🦀05000\n"), "{page}");
    let found = session.call("Grep", json!({"pattern": "07777", "path": spilled, "output_mode": "content"})).await.ok();
    assert_eq!(found, format!("{}:7777:🦀07777", spilled.display()));
    session.call("Write", json!({"file_path": spilled, "content": ""})).await.error();
}

#[tokio::test]
async fn endless_output_is_bounded() {
    let session = session().await;
    background(&session, "yes 'a line of output, neither short nor long' | head -c 80000000; echo THE END").await;
    let shown = read_until(&session, "bash_1", "THE END").await;
    assert!(shown.contains("the first 64 MiB of the output are in"), "{}", &shown[shown.len() - 500..]);
    let spilled = std::fs::metadata(session.spill_dir.join("bash_1.txt")).unwrap();
    assert!(spilled.len() < (64 << 20) + 100, "{}", spilled.len());
    assert!(spilled.len() >= 64 << 20);
}

#[tokio::test]
async fn a_command_that_does_not_end_goes_to_the_background() {
    let clock = ManualClock::default();
    let session = Opening { clock: Arc::new(clock.clone()), ..Opening::default() }.session().await;
    for (timeout, limit) in [(None, 120), (Some(5_000), 5), (Some(3_600_000), 600)] {
        let mut arguments = json!({"command": "echo begun; cat fifo; echo done", "description": "Waits for a pipe"});
        arguments["timeout"] = timeout.map_or(Value::Null, Value::from);
        assert!(std::process::Command::new("mkfifo").arg(session.root.join("fifo")).status().unwrap().success());
        let call = session.call("Bash", arguments);
        let time = async {
            until("the call waits", || clock.has_sleeper(Duration::from_secs(limit))).await;
            clock.advance(Duration::from_secs(limit));
        };
        let (reply, ()) = tokio::join!(call, time);
        let text = reply.ok();
        let id = format!(
            "bash_{}",
            match limit {
                120 => 1,
                5 => 2,
                _ => 3,
            }
        );
        assert!(
            text.contains(&format!("[Still running after {limit} s. It goes on in the background as {id}:")),
            "{text}"
        );
        let listed = session.call("BashOutput", json!({})).await.ok();
        assert!(listed.contains(&format!("{id}: running for {limit} s: Waits for a pipe")), "{listed}");
        std::fs::write(session.root.join("fifo"), "from the pipe\n").unwrap();
        let rest = text + &read_until(&session, &id, "done").await;
        assert!(rest.contains("begun") && rest.contains("from the pipe\n"), "{rest}");
        std::fs::remove_file(session.root.join("fifo")).unwrap();
    }
}

#[tokio::test]
async fn a_background_task_is_read_piece_by_piece_and_killed() {
    let session = session().await;
    assert_eq!(session.call("BashOutput", json!({})).await.ok(), "There are no background tasks.");
    background(&session, "echo first; read line < go; echo $line; trap '' TERM; sleep 1000 & wait").await;
    assert!(std::process::Command::new("mkfifo").arg(session.root.join("go2")).status().unwrap().success());
    let error = session.call("BashOutput", json!({"bash_id": "bash_7"})).await.error();
    assert!(error.starts_with("There is no background task `bash_7`. bash_1: "), "{error}");
    read_until(&session, "bash_1", "first").await;
    let killed = session.call("KillBash", json!({"shell_id": "bash_1"})).await.ok();
    assert!(killed.starts_with("bash_1 was ended, and none of its processes is left."), "{killed}");
    assert_eq!(session.host.left(), Vec::<i32>::new());
    let after = session.call("BashOutput", json!({"shell_id": "bash_1"})).await.ok();
    assert!(after.contains("(no new output)"), "{after}");
    session.call("KillBash", json!({"bash_id": "bash_1"})).await.ok();
    session.call("KillBash", json!({"bash_id": "1"})).await.error();
}

#[tokio::test]
async fn what_is_left_running_does_not_hold_the_call() {
    let session = session().await;
    // In the group, with the pipe; out of the session, with the pipe; with the output elsewhere.
    let text = session.bash("sleep 1000 & echo started").await.ok();
    assert_eq!(
        text,
        "started\n[The command has ended, but something that it started is still running. Read its output with BashOutput and end it with KillBash, as bash_1.]"
    );
    let text = session.bash("setsid sh -c 'sleep 0.5; echo late; exec sleep 1000' & echo started").await.ok();
    assert!(text.contains("as bash_2"), "{text}");
    assert_eq!(session.bash("nohup sleep 1000 > log 2>&1 & echo started").await.ok(), "started");
    // All three live on, and what they write is still read.
    // A process in the middle of its exec shows no environment, and so no mark.
    until("its processes run", || session.host.left().len() >= 3).await;
    read_until(&session, "bash_2", "late").await;
    let listed = session.call("BashOutput", json!({})).await.ok();
    assert!(listed.contains("bash_2: exit code 0, but something that it started is still running: "), "{listed}");
    assert!(!listed.contains("bash_3"), "{listed}");
    session.call("KillBash", json!({"bash_id": "bash_2"})).await.ok();
    let host = session.close().await;
    assert_eq!(host.left(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_command_that_waits_for_its_server_goes_to_the_background() {
    let session = session().await;
    let reply = session.call("Bash", json!({"command": "sleep 1000 & wait", "timeout": 100})).await;
    assert!(reply.ok().contains("It goes on in the background as bash_1"));
    session.call("KillBash", json!({"bash_id": "bash_1"})).await.ok();
    assert_eq!(session.host.left(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing() {
    let session = session().await;
    let command = "trap '' TERM; setsid sleep 1000 & nohup sleep 1000 & touch started; sleep 1000";
    let call = session.start("Bash", json!({"command": command}), &[]).await;
    until("the command has started", || session.root.join("started").exists()).await;
    // A process in the middle of its exec shows no environment, and so no mark.
    until("its processes run", || session.host.left().len() >= 3).await;
    call.cancel(Some("the user pressed Esc".to_owned())).await.unwrap();
    until("its processes are gone", || session.host.left().is_empty()).await;
    assert_eq!(session.bash("echo next").await.ok(), "next");
}

#[tokio::test]
async fn a_machine_without_bash_has_sh() {
    let session = session().await;
    session.host.forget_program("bash");
    assert_eq!(session.bash("echo $0").await.ok(), "sh");
    session.host.forget_program("sh");
    assert_eq!(
        session.bash("echo $0").await.error(),
        "The command was not started: cannot start bash: not on this machine."
    );
}

#[tokio::test]
async fn too_many_commands_at_once_are_refused() {
    let session = session().await;
    for _ in 0..32 {
        background(&session, "exec sleep 1000").await;
    }
    let error = session.bash("echo one too many").await.error();
    assert!(error.contains("32 commands are running already"), "{error}");
    session.call("KillBash", json!({"bash_id": "bash_5"})).await.ok();
    assert_eq!(session.bash("echo fits").await.ok(), "fits");
}

#[tokio::test]
async fn what_is_not_known_to_be_gone_is_told() {
    let host = ScriptedHost::new(KillProof::Unconfirmed("no subreaper here".to_owned()));
    let session = Opening { process: Some(Arc::new(host)), ..Opening::default() }.session().await;
    assert_eq!(session.bash("x").await.ok(), "child 1");
    let error = session.call("KillBash", json!({"bash_id": "bash_1"})).await.error();
    assert_eq!(
        error,
        "bash_1 was told to end, but it is unknown whether all its processes are gone: no subreaper here. The command itself had ended before: exit code 0."
    );
    session.client.cancel().await.unwrap();
    let end = tokio::time::timeout(PATIENCE, session.server).await.unwrap().unwrap();
    let Err(ServeError::MayBeLeft(left)) = end else { panic!("{end:?}") };
    assert_eq!(left, ["bash_1: no subreaper here"]);
}

#[tokio::test]
async fn ended_commands_are_let_go_when_there_are_many() {
    let host = Arc::new(ScriptedHost::new(KillProof::Gone));
    let session = Opening { process: Some(host.clone()), ..Opening::default() }.session().await;
    for number in 1..=260 {
        assert_eq!(session.bash("x").await.ok(), format!("child {number}"));
    }
    until("the oldest are let go", || host.killed.lock().unwrap().len() == 4).await;
    let mut killed = host.killed.lock().unwrap().clone();
    killed.sort();
    assert_eq!(killed, [1, 2, 3, 4]);
    session.call("BashOutput", json!({"bash_id": "bash_4"})).await.error();
    session.call("BashOutput", json!({"bash_id": "bash_5"})).await.ok();
}

#[tokio::test]
async fn output_that_cannot_be_saved_is_told() {
    let session = session().await;
    std::fs::write(&session.spill_dir, "in the way").unwrap();
    let shown = session.bash("seq 20000").await.ok();
    assert!(shown.contains("left out here; they could not be saved: "), "{shown}");
    assert!(shown.starts_with("1\n2\n") && shown.ends_with("\n20000"));
}
