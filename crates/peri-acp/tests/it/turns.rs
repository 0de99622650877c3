//! Turns: what a client sees of one, and how it ends.

use peri_acp_types::{ModelFailureKind, StoredTurnEnd};
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::json;

use crate::world::{CWD, World};

#[tokio::test]
async fn a_text_turn_over_plain_acp() {
    let model = FakeModel::new([FakeAnswer::text("Hello there.")]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let session = client.new_session(CWD).await;
    let prompted = client.prompt("hello").await;

    assert_eq!(prompted.text(), "Hello there.");
    assert_eq!(
        prompted.kinds(),
        ["session_info_update", "agent_message_chunk", "usage_update", "session_info_update"],
        "its title, the text, the figures, and when the session was last used"
    );
    assert_eq!(prompted.updates[0]["title"], "hello");
    assert_eq!(prompted.stop_reason(), "end_turn");
    assert_eq!(prompted.events, Vec::<serde_json::Value>::new(), "nothing of the extension without negotiation");
    let end = &prompted.answer.as_ref().expect("an answer")["_meta"]["peri"];
    assert_eq!(end["outcome"], "completed");
    assert_eq!(end["stopReason"], "end_turn");
    assert_eq!(end["steps"], 1);
    assert_eq!(end["usage"]["inputTokens"], 100);
    assert_eq!(world.thread(&session).messages.len(), 2);
    model.check_invariants();
}

#[tokio::test]
async fn the_extension_tells_the_whole_turn_and_its_end_comes_before_the_answer() {
    let world = World::new([FakeModel::new([FakeAnswer::text("Hello there.")])]);
    let (mut client, _served) = world.connect();
    client.initialize_with_events().await;
    let session = client.new_session(CWD).await;
    let prompted = client.prompt("hello").await;

    assert_eq!(
        prompted.event_types(),
        ["turn_started", "attempt_started", "llm_call_end", "step_committed", "turn_ended"]
    );
    let step = prompted.events.iter().find(|event| event["type"] == "step_committed").expect("a step");
    assert_eq!(step["message"]["parts"], json!([{"type": "text", "text": "Hello there."}]));
    assert_eq!(step["message"]["stop"], "end_turn");
    assert_eq!(step["results"], json!([]));
    assert_eq!(step["agentId"], "main");
    assert_eq!(step["sessionId"], json!(session));
    let numbers: Vec<u64> = prompted.events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
    let turns: Vec<&serde_json::Value> = prompted.events.iter().map(|event| &event["turnId"]).collect();
    assert!(turns.windows(2).all(|pair| pair[0] == pair[1] && pair[0].is_string()), "{turns:?}");
}

#[tokio::test]
async fn a_failed_attempt_is_void_and_the_next_one_counts() {
    let world = World::new([FakeModel::new([
        FakeAnswer::failure(ModelFailureKind::Overloaded, "Hel"),
        FakeAnswer::text("Hello there."),
    ])]);
    let (mut client, _served) = world.connect();
    client.initialize_with_events().await;
    client.new_session(CWD).await;
    let prompted = client.prompt("hello").await;

    assert_eq!(prompted.stop_reason(), "end_turn");
    let failed = prompted.events.iter().find(|event| event["type"] == "attempt_failed").expect("a failed attempt");
    assert_eq!(failed["failure"]["kind"], "overloaded");
    assert_eq!(failed["failure"]["retryable"], true);
    assert!(failed["retryInMs"].is_u64(), "{failed}");
    let ids: Vec<&serde_json::Value> = prompted
        .updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .map(|update| &update["messageId"])
        .collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1], "a new attempt is a new message to the client");
}

#[tokio::test]
async fn a_turn_that_fails_is_an_error_that_says_why() {
    let world = World::new([FakeModel::new([FakeAnswer::failure(ModelFailureKind::Auth, "")])]);
    let (mut client, _served) = world.connect();
    client.initialize_with_events().await;
    let session = client.new_session(CWD).await;
    let prompted = client.prompt("hello").await;

    let error = prompted.error();
    assert_eq!(error.code, -32603);
    assert_eq!(error.data["kind"], "model");
    assert_eq!(error.data["failureKind"], "auth");
    assert_eq!(error.data["peri"]["outcome"], "interrupted");
    assert!(error.message.contains("not authorised"), "{}", error.message);
    assert_eq!(prompted.event_types().last(), Some(&"turn_ended"));
    assert!(matches!(world.thread(&session).turns[0].end, StoredTurnEnd::Interrupted(_)));
}

#[tokio::test]
async fn a_cancel_ends_a_turn_that_hangs_and_the_session_goes_on() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: "Let me".to_owned() }, FakeAnswer::text("Again.")]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.new_session(CWD).await;
    let pending = client.start_prompt("hello").await;
    model.asked(1).await;
    client.cancel().await;

    let prompted = client.finish(pending).await;
    assert_eq!(prompted.stop_reason(), "cancelled");
    assert_eq!(prompted.answer.as_ref().expect("an answer")["_meta"]["peri"]["error"]["kind"], "cancelled");
    assert_eq!(client.prompt("again").await.text(), "Again.");
    model.check_invariants();
}

#[tokio::test]
async fn a_cancel_right_behind_its_prompt_finds_the_turn() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: String::new() }]);
    let world = World::new([model]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.new_session(CWD).await;
    let pending = client.start_prompt("hello").await;
    client.cancel().await;
    assert_eq!(client.finish(pending).await.stop_reason(), "cancelled");
}

#[tokio::test]
async fn withdrawing_a_prompt_cancels_its_turn() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: String::new() }]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.new_session(CWD).await;
    let pending = client.start_prompt("hello").await;
    model.asked(1).await;
    client.withdraw(pending).await;
    assert_eq!(client.finish(pending).await.stop_reason(), "cancelled");
}

#[tokio::test]
async fn withdrawing_a_prompt_that_waits_leaves_the_running_turn_alone() {
    let hangs = || FakeAnswer::Hangs { text: String::new() };
    let model = FakeModel::new([hangs(), hangs()]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.new_session(CWD).await;
    let first = client.start_prompt("first").await;
    model.asked(1).await;
    let second = client.start_prompt("second").await;
    client.withdraw(second).await;
    // Two round trips later, the withdrawal has long been dealt with.
    for _ in 0..2 {
        client.must("session/list", json!({})).await;
    }
    let ended = client.frames().iter().filter(|frame| frame.message["result"]["stopReason"].is_string()).count();
    assert_eq!(ended, 0, "no prompt has ended");

    client.cancel().await;
    assert_eq!(client.finish(first).await.stop_reason(), "cancelled");
    assert_eq!(client.finish(second).await.stop_reason(), "cancelled", "cancelled as soon as its turn came");
}

#[tokio::test]
async fn a_prompt_during_a_turn_waits_and_runs_after_it() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: "One".to_owned() }, FakeAnswer::text("Two.")]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    client.new_session(CWD).await;
    let first = client.start_prompt("first").await;
    model.asked(1).await;
    let second = client.start_prompt("second").await;
    client.cancel().await;
    assert_eq!(client.finish(first).await.stop_reason(), "cancelled");
    let second = client.finish(second).await;
    assert_eq!(second.stop_reason(), "end_turn");
    assert!(second.text().ends_with("Two."), "{}", second.text());
    model.check_invariants();
}

#[tokio::test]
async fn two_sessions_of_one_client_do_not_wait_for_each_other() {
    let slow = FakeModel::new([FakeAnswer::Hangs { text: "slow".to_owned() }]);
    let quick = FakeModel::new([FakeAnswer::text("quick")]);
    let world = World::new([slow.clone(), quick]);
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let first = client.new_session(CWD).await;
    let second = client.new_session("/other").await;
    client.use_session(&first);
    let pending = client.start_prompt("hello").await;
    slow.asked(1).await;

    client.use_session(&second);
    let prompted = client.prompt("hello").await;
    assert_eq!((prompted.text().as_str(), prompted.stop_reason()), ("quick", "end_turn"));

    client.use_session(&first);
    client.cancel().await;
    let prompted = client.finish(pending).await;
    assert_eq!((prompted.text().as_str(), prompted.stop_reason()), ("slow", "cancelled"));
}
