//! Starting: streams, exit, environment, and what comes back where it fails.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use futures::AsyncWriteExt;
use peri_acp_types::ports::{ProcessError, ProcessExit, ProcessOutput, ProcessStdin};
use peri_process::SupervisorCommand;

use crate::stage::{FIXTURE, Stage, new_mark, read_all};

#[tokio::test]
async fn the_exit_code_is_exact() {
    let stage = Stage::new();
    for code in [0, 1, 127, 255] {
        let child = stage.spawn(stage.script(&format!("exit {code}"))).await;
        assert_eq!(child.wait().await, ProcessExit::Code(code));
        assert_eq!(child.wait().await, ProcessExit::Code(code), "it may be asked again");
    }
    stage.close().await;
}

#[tokio::test]
async fn the_signal_is_exact() {
    let stage = Stage::new();
    for signal in [6, 9, 13, 15] {
        let child = stage.spawn(stage.script(&format!("kill -{signal} $$"))).await;
        assert_eq!(child.wait().await, ProcessExit::Signal(signal));
    }
    stage.close().await;
}

#[tokio::test]
async fn merged_output_keeps_the_order_of_writing() {
    let stage = Stage::new();
    let script = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done";
    let mut child = stage.spawn(stage.script(script)).await;
    assert!(child.take_stderr().is_none());
    let text = read_all(child.take_stdout()).await;
    assert_eq!(text, "out1\nerr1\nout2\nerr2\nout3\nerr3\nout4\nerr4\nout5\nerr5\n");
    assert!(child.take_stdout().is_none(), "it can be taken once");
    stage.close().await;
}

#[tokio::test]
async fn separate_output_is_told_apart() {
    let stage = Stage::new();
    let mut spec = stage.script("echo out; echo err >&2");
    spec.output = ProcessOutput::Separate;
    let mut child = stage.spawn(spec).await;
    assert_eq!(read_all(child.take_stdout()).await, "out\n");
    assert_eq!(read_all(child.take_stderr()).await, "err\n");
    stage.close().await;
}

#[tokio::test]
async fn more_output_than_a_pipe_holds_arrives_whole() {
    let stage = Stage::new();
    let mut child = stage.spawn(stage.script("head -c 3000000 /dev/zero | tr '\\0' x")).await;
    assert_eq!(read_all(child.take_stdout()).await.len(), 3_000_000);
    assert_eq!(child.wait().await, ProcessExit::Code(0));
    stage.close().await;
}

#[tokio::test]
async fn piped_input_arrives_and_ends() {
    let stage = Stage::new();
    let mut spec = stage.script("cat; echo end");
    spec.stdin = ProcessStdin::Piped;
    let mut child = stage.spawn(spec).await;
    let mut stdin = child.take_stdin().unwrap();
    stdin.write_all("first 🦀\n".as_bytes()).await.unwrap();
    stdin.close().await.unwrap();
    drop(stdin);
    assert_eq!(read_all(child.take_stdout()).await, "first 🦀\nend\n");
    stage.close().await;
}

#[tokio::test]
async fn without_a_pipe_input_is_at_its_end() {
    let stage = Stage::new();
    let mut child = stage.spawn(stage.script("cat; echo end")).await;
    assert!(child.take_stdin().is_none());
    assert_eq!(read_all(child.take_stdout()).await, "end\n");
    stage.close().await;
}

#[tokio::test]
async fn directory_and_environment_are_as_ordered() {
    let stage = Stage::new();
    let directory = tempfile::tempdir().unwrap();
    let canonical = directory.path().canonicalize().unwrap();
    let mut spec = stage.script("pwd; echo \"$ADDED|${HOME-unset}|${PATH:+inherited}\"");
    spec.cwd = canonical.to_str().unwrap().to_owned();
    spec.env.insert("ADDED".to_owned(), Some("a b".to_owned()));
    spec.env.insert("HOME".to_owned(), None);
    let mut child = stage.spawn(spec).await;
    assert_eq!(read_all(child.take_stdout()).await, format!("{}\na b|unset|inherited\n", canonical.display()));
    stage.close().await;
}

/// A session of its own, no blocked or ignored signal, no descriptor but the standard ones: also where the program that
/// plays peri was itself started with an open descriptor and ignored signals.
#[test]
fn nothing_is_inherited_that_should_not_be() {
    let script = r#"
        trap '' HUP INT TERM USR1
        exec 9</dev/null
        exec "$0" hold '
            grep -E "^Sig(Blk|Ign):" /proc/self/status | cut -f 2
            [ "$(ps -o sid= -p $$ | tr -d " ")" = $$ ] && echo own session
            ls /proc/self/fd | tr "\n" " "
            kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $(ps -o ppid= -p $$)))'"#;
    let output = Command::new("sh").args(["-c", script, FIXTURE]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let [blocked, ignored, session, descriptors] = lines[..] else { panic!("{output:?}") };
    // The C library keeps signals 32 and 33 for itself and lets nobody set them.
    let own = |mask| u64::from_str_radix(mask, 16).unwrap() & !(0b11 << 31);
    assert_eq!((own(blocked), own(ignored)), (0, 0), "{text}");
    assert_eq!((session, descriptors), ("own session", "0 1 2 3 "), "3 is what ls reads");
}

async fn check_not_started(change: impl FnOnce(&mut peri_acp_types::ports::ProcessSpec), expected: &str) {
    let stage = Stage::new();
    let mut spec = stage.script("true");
    change(&mut spec);
    let program = spec.program.clone();
    match stage.try_spawn(spec).await.map(|_| ()) {
        Err(ProcessError::NotStarted { program: named, reason }) => {
            assert_eq!(named, program);
            assert!(reason.contains(expected), "{reason:?} does not say {expected:?}");
        }
        other => panic!("{other:?}"),
    }
    stage.close().await;
}

#[tokio::test]
async fn a_program_that_is_not_in_path() {
    check_not_started(|spec| spec.program = "no-such-program".to_owned(), "no such program in PATH").await;
}

#[tokio::test]
async fn a_program_file_that_is_not_there() {
    check_not_started(|spec| spec.program = "/no/such/file".to_owned(), "no such file").await;
}

#[tokio::test]
async fn a_file_that_is_not_executable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    check_not_started(|spec| spec.program = path, "not an executable file").await;
}

#[tokio::test]
async fn a_directory_that_is_not_there() {
    check_not_started(|spec| spec.cwd = "/no/such/dir".to_owned(), "working directory /no/such/dir").await;
}

#[tokio::test]
async fn a_relative_directory() {
    check_not_started(|spec| spec.cwd = "src".to_owned(), "not absolute").await;
}

#[tokio::test]
async fn a_nul_in_an_argument() {
    check_not_started(|spec| spec.args = vec!["a\0b".to_owned()], "nul byte").await;
}

#[tokio::test]
async fn arguments_longer_than_the_system_takes() {
    check_not_started(|spec| spec.args = vec!["x".repeat(4 << 20)], "too long").await;
}

#[tokio::test]
async fn arguments_longer_than_the_supervisor_takes() {
    check_not_started(|spec| spec.args = vec!["x".repeat(17 << 20)], "over the limit").await;
}

/// The order is larger than a socket's buffer, so it is sent in parts.
#[tokio::test]
async fn long_arguments_arrive() {
    let stage = Stage::new();
    let mut spec = stage.script("shift 8; echo ${#1}");
    spec.args.extend((0..10).map(|_| "x".repeat(100_000)));
    let mut child = stage.spawn(spec).await;
    assert_eq!(read_all(child.take_stdout()).await, "100000\n");
    stage.close().await;
}

async fn check_no_supervisor(program: &str, args: &[&str]) {
    let command =
        SupervisorCommand { program: program.into(), args: args.iter().map(|arg| (*arg).to_owned()).collect() };
    let stage = Stage { host: peri_process::SupervisedHost::new(command), mark: new_mark() };
    let refusal = stage.try_spawn(stage.script("true")).await.map(|_| ());
    assert!(matches!(refusal, Err(ProcessError::NoSupervisor(_))), "{refusal:?}");
}

#[tokio::test]
async fn a_supervisor_that_is_not_there() {
    check_no_supervisor("/no/such/file", &[]).await;
}

#[tokio::test]
async fn a_supervisor_that_is_another_program() {
    check_no_supervisor("true", &[]).await;
    check_no_supervisor("sh", &["-c", "echo rubbish of more than four bytes >&0; exec sleep 600"]).await;
}

#[test]
fn the_command_of_the_supervisor_is_not_for_people() {
    let output = Command::new(FIXTURE).arg(peri_process::SUPERVISE_COMMAND).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not for use"));
}
