//! Killing one job: all of it, and nothing else.

use std::time::{Duration, Instant};

use peri_acp_types::ports::{KillProof, ProcessExit};

use crate::stage::{PATIENCE, SURVIVAL_LIMIT, Stage, read_all, read_until, state_and_parent, until};

/// A daemon as by the book: forks, leaves the session, forks again. `$daemon` runs the rest of its line in it.
const DAEMON: &str = r#"
daemon() {
    perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; open STDIN, "</dev/null"; exec @ARGV' -- "$@"
}
"#;

const GRACE: Duration = Duration::from_millis(300);

/// Runs a script until it says "ready", kills its job, and looks for anything that carries its mark or holds its output.
async fn check_kill(script: &str) {
    let stage = Stage::new();
    let mut child = stage.spawn(stage.script(&format!("{DAEMON}\n{script}"))).await;
    let mut output = child.take_stdout().unwrap();
    read_until(&mut output, "ready").await;
    until("the script shows something to kill", PATIENCE, || !stage.survivors().is_empty()).await;
    assert_eq!(child.kill(GRACE).await, KillProof::Gone);
    assert_eq!(stage.survivors(), [0; 0]);
    read_all(Some(output)).await;
    assert_eq!(child.kill(GRACE).await, KillProof::Gone, "a kill may be repeated");
    stage.close().await;
}

#[tokio::test]
async fn a_plain_command() {
    check_kill("echo ready; exec sleep 600").await;
}

#[tokio::test]
async fn a_command_with_children() {
    check_kill("sleep 600 & sleep 600 & (sleep 600; true) & echo ready; wait").await;
}

#[tokio::test]
async fn children_that_outlive_their_command() {
    check_kill("sleep 600 & echo ready").await;
}

#[tokio::test]
async fn a_child_in_a_session_of_its_own() {
    check_kill("setsid -f sh -c 'echo ready; sleep 600'; exec sleep 600").await;
}

#[tokio::test]
async fn a_daemon() {
    check_kill("daemon sh -c 'echo ready; exec sleep 600'").await;
}

#[tokio::test]
async fn a_daemon_of_a_daemon() {
    check_kill("daemon perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; exec qw(sh -c), q(echo ready; exec sleep 600)'")
        .await;
}

#[tokio::test]
async fn a_command_that_ignores_sigterm() {
    check_kill("trap '' TERM INT HUP; echo ready; while :; do sleep 600; done").await;
}

#[tokio::test]
async fn a_stopped_process() {
    check_kill("sleep 600 & kill -STOP $!; echo ready; kill -STOP $$").await;
}

#[tokio::test]
async fn a_daemon_that_is_its_own_reaper() {
    // PR_SET_CHILD_SUBREAPER is 36, SYS_prctl is 157 on x86-64 and 167 on aarch64.
    let syscall = if cfg!(target_arch = "x86_64") { 157 } else { 167 };
    check_kill(&format!(
        "daemon perl -MPOSIX -e 'syscall({syscall}, 36, 1, 0, 0, 0); if (!fork) {{ fork and exit; POSIX::setsid(); \
         syswrite STDOUT, qq(ready\\n); sleep 600 }} sleep 600'"
    ))
    .await;
}

#[tokio::test]
async fn a_process_in_a_pid_namespace_of_its_own() {
    let script = "unshare --user --map-root-user --pid --fork sh -c 'setsid sleep 600 & echo ready; wait' \
                  || { echo ready; exec sleep 600; }";
    check_kill(script).await;
}

#[tokio::test]
async fn a_child_holding_the_pipe_open_does_not_hold_up_the_wait() {
    let stage = Stage::new();
    let child = stage.spawn(stage.script("sleep 600 & exit 4")).await;
    let exit = tokio::time::timeout(PATIENCE, child.wait()).await.expect("the command's own exit counts");
    assert_eq!(exit, ProcessExit::Code(4));
    until("the background child runs on", PATIENCE, || stage.survivors().len() == 1).await;
    assert_eq!(child.kill(GRACE).await, KillProof::Gone);
    stage.close().await;
}

/// Sixteen processes that fork without end, each child in a session of its own, and all deaf to SIGTERM. Bounded by time,
/// should the kill fail.
#[tokio::test]
async fn a_fork_storm() {
    let storm = r#"perl -MPOSIX -e '
        $SIG{TERM} = "IGNORE"; $SIG{CHLD} = "IGNORE"; my $end = time + 40;
        fork for 1 .. 4;
        syswrite STDOUT, "ready\n";
        while (time < $end) {
            if (!fork) { POSIX::setsid(); fork; select undef, undef, undef, 0.3; exit }
            select undef, undef, undef, 0.02;
        }'"#;
    check_kill(storm).await;
}

/// A process that has always just exited and left a child: whoever looks it up comes too late.
#[tokio::test]
async fn a_process_that_runs_away_by_forking() {
    check_kill(r#"perl -e '$SIG{TERM} = "IGNORE"; my $end = time + 40; syswrite STDOUT, "ready\n"; while (time < $end) { fork and exit }'"#).await;
}

/// The same, and each in a session of its own, so that a signal to its group does not reach it.
#[tokio::test]
async fn a_process_that_runs_away_by_forking_and_changing_sessions() {
    check_kill(
        r#"perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; my $end = time + 40; syswrite STDOUT, "ready\n"; while (time < $end) { fork and exit; POSIX::setsid() }'"#,
    )
    .await;
}

#[tokio::test]
async fn the_grace_is_used() {
    let stage = Stage::new();
    let mut child =
        stage.spawn(stage.script("trap 'echo cleaned; exit 7' TERM; sh -c 'echo ready; exec sleep 600' & wait")).await;
    let mut output = child.take_stdout().unwrap();
    read_until(&mut output, "ready").await;
    let (proof, text) = tokio::join!(child.kill(PATIENCE), read_until(&mut output, "cleaned"));
    assert_eq!((proof, text.as_str()), (KillProof::Gone, "\ncleaned"));
    assert_eq!(child.wait().await, ProcessExit::Code(7));
    stage.close().await;
}

#[tokio::test]
async fn a_second_kill_shortens_the_grace() {
    let stage = Stage::new();
    let child = stage.ready("trap '' TERM; echo ready; while :; do sleep 600; done").await;
    let begin = Instant::now();
    let (patient, hasty) = tokio::join!(child.kill(PATIENCE * 10), child.kill(Duration::ZERO));
    assert_eq!((patient, hasty), (KillProof::Gone, KillProof::Gone));
    assert!(begin.elapsed() < PATIENCE);
    stage.close().await;
}

#[tokio::test]
async fn a_grace_without_end_is_no_grace_without_end_for_the_proof() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; sleep 600").await;
    assert_eq!(child.kill(Duration::MAX).await, KillProof::Gone);
    stage.close().await;
}

/// As in a `select!` whose other branch kills: the wait is there, but nobody polls it.
#[tokio::test]
async fn a_wait_that_is_not_polled_does_not_hold_up_a_kill() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; sleep 600").await;
    let mut wait = child.wait();
    assert!(futures::poll!(&mut wait).is_pending());
    let proof = tokio::time::timeout(PATIENCE, child.kill(GRACE)).await.expect("the kill goes on");
    assert_eq!(proof, KillProof::Gone);
    assert_eq!(wait.await, ProcessExit::Signal(15));
    stage.close().await;
}

#[tokio::test]
async fn many_waits_are_all_answered() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; sleep 600").await;
    let waits = futures::future::join_all((0..20).map(|_| child.wait()));
    let (exits, proof) = tokio::join!(waits, child.kill(GRACE));
    assert_eq!(exits, [ProcessExit::Signal(15); 20]);
    assert_eq!(proof, KillProof::Gone);
    stage.close().await;
}

#[tokio::test]
async fn another_job_lives_on() {
    let stage = Stage::new();
    let other = Stage::new();
    let mut spec = stage.script(&format!("{DAEMON}\ndaemon sh -c 'echo ready; exec sleep 600'; exec sleep 600"));
    let doomed = stage.ready(&spec.args[1]).await;
    spec.env.clone_from(&other.script("").env);
    let mut spared = stage.spawn(spec).await;
    read_until(&mut spared.take_stdout().unwrap(), "ready").await;
    until("a command and its daemon are left", PATIENCE, || other.survivors().len() == 2).await;
    let before = other.survivors();

    assert_eq!(doomed.kill(GRACE).await, KillProof::Gone);
    assert_eq!(stage.survivors(), [0; 0]);
    assert_eq!(other.survivors(), before);
    let stopped = |pid: &i32| state_and_parent(*pid).is_none_or(|(state, _)| state == 'T');
    assert!(!before.iter().any(stopped), "they run on");
    drop(spared);
    until("a dropped job is killed", SURVIVAL_LIMIT, || other.survivors().is_empty()).await;
    stage.close().await;
}

#[tokio::test]
async fn a_job_that_is_over_needs_no_kill() {
    let stage = Stage::new();
    let child = stage.spawn(stage.script("true")).await;
    assert_eq!(child.wait().await, ProcessExit::Code(0));
    assert_eq!(child.kill(PATIENCE).await, KillProof::Gone);
    stage.close().await;
}
