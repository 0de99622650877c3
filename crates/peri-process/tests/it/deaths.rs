//! The death of peri, of the supervisor, of a leader.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use peri_acp_types::ports::{KillProof, ProcessError, ProcessExit, ProcessHost};
use rustix::process::Signal;

use crate::stage::{
    FIXTURE, PATIENCE, SURVIVAL_LIMIT, Stage, mark_variable, marked, new_mark, parent, signal, state_and_parent, until,
};

/// Everything that is hard to catch, deaf to SIGTERM.
const STUBBORN: &str = r#"
trap '' TERM HUP INT
setsid -f sleep 600
perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; exec qw(sleep 600)'
sleep 600 & kill -STOP $!
sh -c 'while :; do sleep 1; done' &
echo ready
sleep 600
"#;

/// A stand-in for peri, which a failed test does not leave behind.
struct Peri(Child);

impl Drop for Peri {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Plays peri with a stubborn job, ends it by a signal, and looks for what is left.
async fn check_death_of_peri(by: Signal) {
    let mark = new_mark();
    let (name, value) = mark_variable(&mark);
    let mut command = Command::new(FIXTURE);
    let mut peri = Peri(command.args(["hold", STUBBORN]).env(name, value).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(peri.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // Peri, supervisor and leader inherit the mark here.
    until("all are there", PATIENCE, || marked(&mark).len() >= 8).await;
    signal(peri.0.id().cast_signed(), by);
    peri.0.wait().unwrap();
    until("no survivor of peri", SURVIVAL_LIMIT, || marked(&mark).is_empty()).await;
}

#[tokio::test]
async fn peri_is_killed() {
    check_death_of_peri(Signal::KILL).await;
}

#[tokio::test]
async fn peri_ends_by_a_signal_that_it_does_not_handle() {
    check_death_of_peri(Signal::TERM).await;
}

#[tokio::test]
async fn the_supervisor_is_killed() {
    let stage = Stage::new();
    let child = stage.ready(STUBBORN).await;
    let leader = parent(child.pid().cast_signed());
    let supervisor = parent(leader);
    signal(supervisor, Signal::KILL);
    until("no survivor of the supervisor", SURVIVAL_LIMIT, || stage.survivors().is_empty()).await;
    assert_eq!(child.wait().await, ProcessExit::Signal(9), "its leader has seen its end");
    assert_eq!(child.kill(Duration::ZERO).await, KillProof::Gone);

    let next = stage.spawn(stage.script("exit 5")).await;
    assert_eq!(next.wait().await, ProcessExit::Code(5), "another supervisor has taken over");
    assert_eq!(state_and_parent(supervisor), None, "the dead one was collected");
    stage.close().await;
}

#[tokio::test]
async fn a_leader_is_killed_by_its_own_job() {
    let stage = Stage::new();
    let mut spec = stage.script(STUBBORN);
    spec.args[1] = STUBBORN.replace("echo ready", "echo ready; kill -9 $PPID");
    let other = stage.ready("echo ready; exec sleep 600").await;
    let child = stage.spawn(spec).await;
    assert_eq!(child.wait().await, ProcessExit::Unknown);
    assert_eq!(child.kill(Duration::ZERO).await, KillProof::Gone);
    assert_eq!(stage.survivors(), [other.pid().cast_signed()]);
    stage.close().await;
}

/// No one is left who knows which processes were the job's; only its command is tied to the leader.
#[tokio::test]
async fn leader_and_supervisor_are_killed_at_once() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; exec sleep 600").await;
    let leader = parent(child.pid().cast_signed());
    let supervisor = parent(leader);
    signal(supervisor, Signal::STOP);
    signal(leader, Signal::KILL);
    signal(supervisor, Signal::KILL);
    assert_eq!(child.wait().await, ProcessExit::Unknown);
    assert!(matches!(child.kill(Duration::ZERO).await, KillProof::Unconfirmed(_)));
    until("the command has died with its leader", SURVIVAL_LIMIT, || stage.survivors().is_empty()).await;
    assert!(matches!(stage.host.shutdown(PATIENCE).await, KillProof::Unconfirmed(_)));
}

#[tokio::test]
async fn a_stopped_leader_is_woken() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; sleep 600").await;
    signal(parent(child.pid().cast_signed()), Signal::STOP);
    assert_eq!(child.kill(Duration::ZERO).await, KillProof::Gone);
    stage.close().await;
}

#[tokio::test]
async fn a_stopped_supervisor_is_woken() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; sleep 600").await;
    let leader = parent(child.pid().cast_signed());
    signal(parent(leader), Signal::STOP);
    assert_eq!(stage.spawn(stage.script("exit 5")).await.wait().await, ProcessExit::Code(5));
    signal(leader, Signal::STOP);
    signal(parent(leader), Signal::STOP);
    stage.close().await;
}

#[tokio::test]
async fn signals_from_a_terminal_do_not_reach_supervisor_and_leader() {
    let stage = Stage::new();
    let child = stage.ready("echo ready; sleep 600").await;
    let leader = parent(child.pid().cast_signed());
    for pid in [leader, parent(leader)] {
        for deaf_to in [Signal::INT, Signal::TERM, Signal::HUP, Signal::PIPE, Signal::QUIT, Signal::TSTP] {
            signal(pid, deaf_to);
        }
    }
    assert_eq!(stage.spawn(stage.script("exit 5")).await.wait().await, ProcessExit::Code(5));
    assert_eq!(child.kill(Duration::ZERO).await, KillProof::Gone);
    stage.close().await;
}

#[tokio::test]
async fn a_dropped_spawn_leaves_nothing() {
    let stage = Stage::new();
    for _ in 0..20 {
        let mut spawn = stage.host.spawn(stage.script("sleep 600"));
        assert!(futures::poll!(&mut spawn).is_pending());
        drop(spawn);
    }
    for turns in 0..20 {
        let mut spawn = stage.host.spawn(stage.script("sleep 600"));
        for _ in 0..turns {
            if futures::poll!(&mut spawn).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    until("dropped spawns leave nothing", PATIENCE, || stage.survivors().is_empty()).await;
    stage.close().await;
}

#[tokio::test]
async fn a_dropped_host_ends_its_jobs() {
    let stage = Stage::new();
    let child = stage.ready(STUBBORN).await;
    let Stage { host, mark } = stage;
    drop(host);
    until("no survivor of the host", SURVIVAL_LIMIT, || marked(&mark).is_empty()).await;
    assert_eq!(child.kill(Duration::ZERO).await, KillProof::Gone);
}

#[tokio::test]
async fn shutdown_ends_all_and_refuses_more() {
    let stage = Stage::new();
    let children = [stage.ready(STUBBORN).await, stage.ready(STUBBORN).await];
    let supervisor = parent(parent(children[0].pid().cast_signed()));
    assert_eq!(stage.host.shutdown(PATIENCE).await, KillProof::Gone);
    assert_eq!(stage.survivors(), [0; 0]);
    assert_eq!(state_and_parent(supervisor), None, "it is no zombie");
    for child in children {
        assert_eq!(child.wait().await, ProcessExit::Signal(9));
        assert_eq!(child.kill(PATIENCE).await, KillProof::Gone);
    }
    let refusal = stage.try_spawn(stage.script("true")).await.map(|_| ());
    assert!(matches!(refusal, Err(ProcessError::NoSupervisor(_))), "{refusal:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_shutdown_that_is_not_waited_for_still_ends_all() {
    let stage = Stage::new();
    let _child = stage.ready(STUBBORN).await;
    assert!(matches!(stage.host.shutdown(Duration::ZERO).await, KillProof::Unconfirmed(_)));
    until("no survivor of the shutdown", SURVIVAL_LIMIT, || stage.survivors().is_empty()).await;
}

/// Spawns that are under way either start and are ended, or are refused; the shutdown proves its end all the same.
#[tokio::test]
async fn a_shutdown_amid_spawns_is_confirmed() {
    let stage = Stage::new();
    stage.spawn(stage.script("true")).await;
    let spawns = futures::future::join_all((0..20).map(|_| stage.try_spawn(stage.script("sleep 600 & sleep 600"))));
    let shutdown = async {
        tokio::task::yield_now().await;
        stage.host.shutdown(PATIENCE).await
    };
    let (spawned, proof) = tokio::join!(spawns, shutdown);
    assert_eq!(proof, KillProof::Gone);
    for child in spawned {
        match child {
            Ok(child) => assert_eq!(child.kill(PATIENCE).await, KillProof::Gone),
            Err(error) => assert!(matches!(error, ProcessError::NoSupervisor(_)), "{error}"),
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn a_host_without_jobs_has_nothing_to_end() {
    Stage::new().close().await;
}
