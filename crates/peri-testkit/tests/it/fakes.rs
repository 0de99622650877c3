//! The fakes of model, clock and spawner.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use peri_acp_types::Content;
use peri_acp_types::ports::{Clock, IdSource, Spawner};
use peri_model::{LanguageModel, ModelMessage, ModelRequest, ModelStreamEvent, Thinking};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use peri_testkit::gate::Gate;
use peri_testkit::runtime::{FakeClock, FakeIds, TestSpawner};

fn request(text: &str) -> ModelRequest {
    let messages = vec![ModelMessage::User(vec![Content::Text(text.into())])];
    ModelRequest {
        system: vec![],
        tools: vec![],
        messages,
        max_output_tokens: None,
        output_room: 1,
        thinking: Thinking::Unset,
    }
}

#[tokio::test]
async fn a_gated_answer_waits_at_each_gate() {
    let gates = [Gate::shut(), Gate::shut()];
    let model = FakeModel::new([FakeAnswer::gated_text(gates.iter().zip(["one", "two"]))]);
    let mut stream = model.stream(request("go"));
    for (gate, text) in gates.iter().zip(["one", "two"]) {
        assert!(stream.next().now_or_never().is_none(), "the gate is shut");
        gate.reached().await;
        gate.open();
        assert_eq!(stream.next().await, Some(ModelStreamEvent::TextDelta(text.into())));
    }
    assert!(matches!(stream.next().await, Some(ModelStreamEvent::Finished(_))));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_dropped_too_early_is_told() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: "x".into() }, FakeAnswer::text("y")]);
    let whole = async {
        let mut hanging = model.stream(request("go"));
        hanging.next().await;
        drop(hanging);
        model.stream(request("go")).collect::<Vec<_>>().await
    };
    whole.await;
    model.aborted(1).await;
    assert!(model.aborted(2).now_or_never().is_none(), "the second ended in order");
}

#[tokio::test]
async fn a_computed_answer_sees_its_request() {
    let model = FakeModel::computed(|request| FakeAnswer::text(&format!("{} messages", request.messages.len())));
    let events: Vec<ModelStreamEvent> = model.stream(request("go")).collect().await;
    assert_eq!(events.first(), Some(&ModelStreamEvent::TextDelta("1 messages".into())));
}

#[tokio::test]
async fn a_request_that_does_not_begin_with_the_last_fails_the_check() {
    let model = FakeModel::computed(|_| FakeAnswer::text("x"));
    for text in ["one", "another"] {
        model.stream(request(text)).collect::<Vec<_>>().await;
    }
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.check_invariants()));
    let panic = panic.expect_err("the prefix moved");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(
        message.contains("-                    \"one\"") && message.contains("+                    \"another\""),
        "{message}"
    );
}

#[tokio::test]
async fn a_clock_that_the_test_moves_wakes_those_whose_time_has_come() {
    let clock = FakeClock::manual();
    let (mut short, mut long) = (clock.sleep(Duration::from_secs(1)), clock.sleep(Duration::from_secs(2)));
    assert!((&mut short).now_or_never().is_none() && (&mut long).now_or_never().is_none());
    clock.slept(2).await;
    clock.advance(Duration::from_secs(1));
    assert!((&mut short).now_or_never().is_some() && (&mut long).now_or_never().is_none());
    clock.advance(Duration::from_secs(1));
    long.await;
    assert_eq!(clock.monotonic(), Duration::from_secs(2));
}

#[tokio::test]
async fn a_clock_that_moves_itself_leaves_limits_alone() {
    let clock = FakeClock::automatic();
    clock.sleep(Duration::from_secs(30)).await;
    assert_eq!(clock.monotonic(), Duration::from_secs(30));
    assert!(clock.sleep(Duration::from_secs(600)).now_or_never().is_none());
}

#[test]
fn ids_are_the_same_in_every_run_and_never_twice() {
    let (first, second) = (FakeIds::default(), FakeIds::default());
    let ids: Vec<uuid::Uuid> = (0..3).map(|_| first.uuid()).collect();
    assert_eq!(ids, (0..3).map(|_| second.uuid()).collect::<Vec<_>>());
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]) && ids.iter().all(|id| id.get_version_num() == 7));
}

#[tokio::test]
async fn the_spawner_knows_when_all_is_over() {
    let spawner = Arc::new(TestSpawner::default());
    let gate = Gate::shut();
    let (task_spawner, task_gate) = (Arc::clone(&spawner), gate.clone());
    spawner.spawn(
        async move {
            task_gate.pass().await;
            task_spawner.spawn(futures::future::ready(()).boxed());
        }
        .boxed(),
    );
    gate.reached().await;
    gate.open();
    spawner.ended().await;
}
