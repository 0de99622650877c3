//! Many jobs, and nothing that piles up.

use std::process::Command;
use std::time::Duration;

use peri_acp_types::ports::{KillProof, ProcessExit};

use crate::stage::{FIXTURE, PATIENCE, Stage, all_pids, read_all, state_and_parent, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_jobs_at_once() {
    let stage = std::sync::Arc::new(Stage::new());
    let jobs = (0..50).map(|number| {
        let stage = std::sync::Arc::clone(&stage);
        tokio::spawn(async move {
            let mut child = stage.spawn(stage.script(&format!("sleep 600 & echo {number}; exit {number}"))).await;
            assert_eq!(child.wait().await, ProcessExit::Code(number));
            let output = child.take_stdout();
            assert_eq!(child.kill(Duration::ZERO).await, KillProof::Gone);
            assert_eq!(read_all(output).await, format!("{number}\n"));
        })
    });
    for job in jobs.collect::<Vec<_>>() {
        job.await.unwrap();
    }
    std::sync::Arc::into_inner(stage).unwrap().close().await;
}

#[tokio::test]
async fn a_finished_job_leaves_no_leader_and_no_zombie() {
    let stage = Stage::new();
    let lasting = stage.ready("echo ready; exec sleep 600").await;
    let leader = state_and_parent(lasting.pid().cast_signed()).unwrap().1;
    let supervisor = state_and_parent(leader).unwrap().1;
    for _ in 0..10 {
        assert_eq!(stage.spawn(stage.script("(sleep 0 &) ; true")).await.wait().await, ProcessExit::Code(0));
    }
    let children = |of: i32| {
        let is_child = |pid: &i32| state_and_parent(*pid).is_some_and(|(_, parent)| parent == of);
        all_pids().into_iter().filter(is_child).collect::<Vec<i32>>()
    };
    until("one leader is left", PATIENCE, || children(supervisor) == [leader]).await;
    assert_eq!(children(leader), [lasting.pid().cast_signed()]);
    stage.close().await;
}

#[test]
fn no_descriptor_is_lost() {
    let output = Command::new(FIXTURE).args(["descriptors", "20"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let counts: Vec<&str> = text.lines().collect();
    assert!(matches!(counts[..], [first, last] if first == last), "{text} {}", String::from_utf8_lossy(&output.stderr));
}
