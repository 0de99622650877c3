//! Signals: the run ends in order, no child survives, history goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use peri_testkit::gate::Gate;
use peri_testkit::model_server::{Answer, CapturedRequest, FakeModelServer, Reply, Script};
use rustix::process::Signal;
use serde_json::json;

use crate::sandbox::{Running, Sandbox};

/// Leaves a child of its own session, one whose parent is gone, and one that ignores SIGTERM. Each notes its id.
pub const BROOD: &str = "\
setsid sh -c 'echo $$ >> pids; exec sleep 300' &
(sh -c 'echo $$ >> pids; exec sleep 300' &)
sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 300; done' &
echo $$ >> pids
sleep 300
";
const BROOD_SIZE: usize = 4;

/// No child may be left so long after a signal.
const SURVIVAL_LIMIT: Duration = Duration::from_secs(2);

/// Runs the brood, unless it is asked to go on.
fn brooding() -> FakeModelServer {
    FakeModelServer::start(Script::computed(|request: &CapturedRequest| {
        let asked_to_go_on = request.messages().iter().any(|message| message.to_string().contains("go on"));
        match asked_to_go_on {
            true => Answer::new().text("Gone on."),
            false => Answer::new().text("I will.").tool_use("toolu_1", "Bash", &json!({"command": BROOD})),
        }
    }))
}

const BYPASS: [&str; 4] = ["-p", "x", "--permission-mode", "bypass"];

/// The ids of the brood, once all of them are there.
pub fn wait_for_brood(sandbox: &Sandbox) -> Vec<u32> {
    let file = sandbox.work().join("pids");
    wait_until("the brood is there", Duration::from_secs(60), || {
        let noted = std::fs::read_to_string(&file).unwrap_or_default();
        let ids: Vec<u32> = noted.lines().filter_map(|line| line.parse().ok()).collect();
        (ids.len() == BROOD_SIZE).then_some(ids)
    })
}

/// There is no event for a file that another process writes or for the end of a process that is not ours.
#[track_caller]
fn wait_until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[track_caller]
pub fn check_no_survivor(brood: &[u32], signalled: Instant) {
    let limit = SURVIVAL_LIMIT.saturating_sub(signalled.elapsed());
    wait_until("every process of the brood is gone", limit, || (!brood.iter().any(|pid| is_there(*pid))).then_some(()));
}

#[track_caller]
fn check_resumes(sandbox: &Sandbox, model: &FakeModelServer) {
    sandbox.peri(["-p", "-c", "go on"]).run().code(0).stdout_is("Gone on.\n");
    model.check_invariants();
}

#[track_caller]
fn check_signal(signal: Signal, code: i32) {
    let model = brooding();
    let sandbox = Sandbox::with_model(&model.base_url());
    let running = sandbox.peri(BYPASS.into_iter().chain(["--output-format", "json"])).start();
    let brood = wait_for_brood(&sandbox);
    running.signal(signal);
    let signalled = Instant::now();
    let run = running.finish();
    run.check(!brood.iter().any(|pid| is_there(*pid)), "no child is left when it exits");
    check_no_survivor(&brood, signalled);
    let result = run.code(code).json();
    run.check(result["is_error"] == true && result["stop_reason"] == "cancelled", "the result says so");
    check_resumes(&sandbox, &model);
    let resumed = model.requests().pop().expect("a request");
    run.check(resumed.tool_results().len() == 1, "the call has its one result");
}

#[test]
fn an_interrupt_during_a_tool() {
    check_signal(Signal::INT, 130);
}

#[test]
fn a_termination_during_a_tool() {
    check_signal(Signal::TERM, 143);
}

#[test]
fn a_hangup_during_a_tool() {
    check_signal(Signal::HUP, 129);
}

#[test]
fn a_kill_during_a_tool() {
    let model = brooding();
    let sandbox = Sandbox::with_model(&model.base_url());
    let running = sandbox.peri(BYPASS).start();
    let brood = wait_for_brood(&sandbox);
    running.signal(Signal::KILL);
    let signalled = Instant::now();
    let run = running.finish();
    run.check(run.status.code().is_none(), "it was killed");
    check_no_survivor(&brood, signalled);
    check_resumes(&sandbox, &model);
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let model = brooding();
    let sandbox = Sandbox::with_model(&model.base_url());
    let running = sandbox.peri(BYPASS).start();
    let brood = wait_for_brood(&sandbox);
    running.signal(Signal::INT);
    // Two of the same that are pending at once count as one; the second is of another kind.
    running.signal(Signal::TERM);
    let signalled = Instant::now();
    let run = running.finish();
    run.check(matches!(run.status.code(), Some(130 | 143)), "it ended by a signal");
    check_no_survivor(&brood, signalled);
    check_resumes(&sandbox, &model);
}

fn held_answer() -> (Gate, FakeModelServer) {
    let gate = Gate::shut();
    let reply = Reply::from(Answer::new().text("Hello.")).before_head(&gate);
    (gate, FakeModelServer::start(Script::repeating_last([reply])))
}

#[test]
fn an_interrupt_while_the_model_thinks_drops_the_request() {
    let (_gate, model) = held_answer();
    let sandbox = Sandbox::with_model(&model.base_url());
    let running = sandbox.peri(["-p", "x"]).start();
    model.block_until_requested(1);
    running.signal(Signal::INT);
    running.finish().code(130).stdout_is("").stderr_has("SIGINT");
    model.block_until_hung_up(1);
}

#[test]
fn a_hangup_that_was_ignored_at_the_start_stays_ignored() {
    let (gate, model) = held_answer();
    let sandbox = Sandbox::with_model(&model.base_url());
    let running = sandbox.peri(["-p", "x"]).ignoring_hangup().start();
    model.block_until_requested(1);
    running.signal(Signal::HUP);
    gate.open();
    running.finish().code(0).stdout_is("Hello.\n");
}

#[test]
fn a_termination_while_nobody_reads_the_output() {
    let long = "x".repeat(1 << 20);
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text(&long)]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let running: Running<'_> = sandbox.peri(["-p", "x", "--output-format", "stream-json"]).stdout_stuck().start();
    model.block_until_requested(1);
    running.signal(Signal::TERM);
    running.finish().code(143);
}
