//! The end of sessions: asked for, or because the client went away.

use peri_acp_types::StoredTurnEnd;
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::json;

use crate::world::{CWD, World};

#[tokio::test]
async fn a_close_never_cancels_a_turn() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: "Let me".to_owned() }]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    let pending = client.start_prompt("hello").await;
    model.asked(1).await;

    let error = client.request("session/close", json!({"sessionId": session})).await.expect_err("a turn runs");
    assert_eq!(error.code, -32010);
    assert_eq!(error.data["reasons"], json!([{"kind": "prompt-active"}]));
    assert!(error.data["retryAfterMs"].is_u64());

    client.cancel().await;
    assert_eq!(client.finish(pending).await.stop_reason(), "cancelled");
    client.must("session/close", json!({"sessionId": session})).await;
    client.must("session/close", json!({"sessionId": session})).await;
    let error = client
        .request("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}))
        .await
        .expect_err("the session is closed");
    assert_eq!(error.code, -32002);
    assert_eq!(world.thread(&session).close_intent, None, "a settled close leaves no intent");
}

#[tokio::test]
async fn a_client_that_goes_away_has_its_turns_cancelled_and_its_sessions_closed() {
    let models = [FakeModel::new([FakeAnswer::Hangs { text: "a".to_owned() }]), FakeModel::default()];
    let world = World::new(models.clone());
    let (mut client, served) = world.connect();
    client.initialize().await;
    let idle = {
        let busy = client.new_session(CWD).await;
        let idle = client.new_session(CWD).await;
        client.use_session(&busy);
        client.start_prompt("hello").await;
        models[0].asked(1).await;
        drop(client);
        served.end().await.expect("the connection ends in order");
        let turns = world.thread(&busy).turns;
        assert!(matches!(&turns[0].end, StoredTurnEnd::Interrupted(why) if why == "cancelled"), "{turns:?}");
        assert_eq!(world.thread(&busy).close_intent, None);
        idle
    };
    assert_eq!(world.thread(&idle).open_turn, None);
}

#[tokio::test]
async fn a_client_that_stops_sending_still_hears_the_end_of_its_turn() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: "Let me".to_owned() }]);
    let world = World::new([model.clone()]);
    let (mut client, served) = world.connect();
    client.initialize().await;
    client.new_session(CWD).await;
    let pending = client.start_prompt("hello").await;
    model.asked(1).await;
    client.stop_sending();
    assert_eq!(client.finish(pending).await.stop_reason(), "cancelled");
    client.read_to_end().await;
    served.end().await.expect("the connection ends in order");
}

#[tokio::test]
async fn a_session_whose_client_went_away_can_be_opened_by_another() {
    let models = [FakeModel::new([FakeAnswer::text("One.")]), FakeModel::new([FakeAnswer::text("Two.")])];
    let world = World::new(models);
    let (mut first, served) = world.connect();
    first.initialize().await;
    let session = first.new_session(CWD).await;
    first.prompt("hello").await;
    drop(first);
    served.end().await.expect("the connection ends in order");

    let (mut second, _served) = world.connect();
    second.initialize().await;
    let answer = second.must("session/resume", json!({"sessionId": session, "cwd": CWD})).await;
    assert_eq!(answer["_meta"]["peri"]["epoch"], 2);
    second.use_session(&session);
    assert_eq!(second.prompt("go on").await.text(), "Two.");
}

#[tokio::test]
async fn a_session_is_one_clients_at_a_time() {
    let world = World::new([FakeModel::default(), FakeModel::default()]);
    let (mut first, _first) = world.connect();
    let (mut second, _second) = world.connect();
    first.initialize().await;
    second.initialize().await;
    let session = first.new_session(CWD).await;

    let error =
        second.request("session/resume", json!({"sessionId": session, "cwd": CWD})).await.expect_err("it is open");
    assert_eq!((error.code, error.data["kind"].as_str()), (-32602, Some("session-open")));
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]});
    let error = second.request("session/prompt", prompt).await.expect_err("it is another client's");
    assert_eq!(error.code, -32002);
}

#[tokio::test]
async fn deleting_removes_the_history_and_closes_before() {
    let world = World::new([FakeModel::new([FakeAnswer::text("One.")])]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    client.prompt("hello").await;
    client.must("session/delete", json!({"sessionId": session})).await;
    let answer = client.must("session/list", json!({})).await;
    assert_eq!(answer["sessions"], json!([]));
    let error = client.request("session/close", json!({"sessionId": session})).await.expect_err("it is gone");
    assert_eq!(error.code, -32002);
}

#[tokio::test]
async fn a_session_that_another_process_took_over_ends_here_and_nobody_waits_in_vain() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: String::new() }]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    let running = client.start_prompt("first").await;
    model.asked(1).await;
    let waiting = client.start_prompt("second").await;
    world.store.take_over(session.parse().expect("an id"));
    client.cancel().await;

    let failed = client.finish(running).await;
    assert_eq!((failed.error().code, failed.error().data["kind"].as_str()), (-32603, Some("store")));
    let dropped = client.finish(waiting).await;
    assert_eq!((dropped.error().code, dropped.error().data["kind"].as_str()), (-32603, Some("session-ended")));
    let late = client.prompt("third").await;
    assert_eq!(late.error().code, -32002, "it is not open here any more");
}
