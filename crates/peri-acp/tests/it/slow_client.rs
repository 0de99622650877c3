//! A client that does not read, and one that sends rubbish.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, SessionNotification, SessionUpdate, StopReason,
};
use agent_client_protocol::{Agent, Client, Error, on_receive_notification};
use futures::channel::mpsc;
use futures::io::AsyncWriteExt;
use futures::{SinkExt, StreamExt};
use peri_acp::in_process;
use peri_acp_types::{AssistantPart, ModelStop};
use peri_testkit::acp_driver::AcpDriver;
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use serde_json::{Value, json};

use crate::bytes::{RawClient, over_bytes};
use crate::world::{CWD, Served, World};

fn driver_over_bytes(world: &World) -> (AcpDriver, Served) {
    let (RawClient { writer, messages }, served) = over_bytes(world);
    let outgoing = futures::sink::unfold(writer, |mut writer, message: Value| async move {
        writer.write_all(format!("{message}\n").as_bytes()).await?;
        writer.flush().await?;
        Ok::<_, std::io::Error>(writer)
    });
    (AcpDriver::new(outgoing.sink_map_err(|error| error.to_string()), messages), served)
}

#[tokio::test]
async fn a_turn_over_bytes_and_the_end_of_input_ends_the_connection() {
    let world = World::new([FakeModel::new([FakeAnswer::text("Hello. 🦀")])]);
    let (mut client, served) = driver_over_bytes(&world);
    client.initialize().await;
    client.new_session(CWD).await;
    assert_eq!(client.prompt("hello").await.text(), "Hello. 🦀");
    drop(client);
    served.end().await.expect("the connection ends in order");
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_nothing() {
    let words: Vec<String> = (0..20_000).map(|number| format!("{number:0200} ")).collect();
    let parts: Vec<AssistantPart> = words.iter().cloned().map(AssistantPart::Text).collect();
    let model = FakeModel::new([FakeAnswer::Says { parts, stop: ModelStop::EndTurn }]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = driver_over_bytes(&world);
    client.initialize().await;
    client.new_session(CWD).await;
    let pending = client.start_prompt("count").await;
    model.asked(1).await;
    // The agent has all the time that it needs to run ahead, were it let.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let prompted = client.finish(pending).await;
    assert_eq!(prompted.stop_reason(), "end_turn");
    assert!(prompted.text() == words.concat(), "text was lost or moved");
    assert!(
        prompted.updates.len() < words.len() / 10,
        "deltas merge while the client is slow: {}",
        prompted.updates.len()
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_can_still_cancel() {
    let parts: Vec<AssistantPart> = (0..20_000).map(|_| AssistantPart::Text("word ".repeat(100))).collect();
    let model = FakeModel::new([FakeAnswer::Says { parts, stop: ModelStop::EndTurn }]);
    let world = World::new([model.clone()]);
    let (mut client, _served) = driver_over_bytes(&world);
    client.initialize().await;
    client.new_session(CWD).await;
    let pending = client.start_prompt("count").await;
    model.asked(1).await;
    client.cancel().await;
    assert_eq!(client.finish(pending).await.stop_reason(), "cancelled");
}

#[tokio::test]
async fn a_client_on_the_protocol_crate_holds_the_agent_by_its_handler() {
    let words: Vec<String> = (0..20_000).map(|number| format!("{number:0200} ")).collect();
    let parts: Vec<AssistantPart> = words.iter().cloned().map(AssistantPart::Text).collect();
    let model = FakeModel::new([FakeAnswer::Says { parts, stop: ModelStop::EndTurn }]);
    let world = World::new([model]);
    let (agent, client) = in_process();
    let served = world.serve(agent);
    let (channel, consumption) = client.into_connection();
    let (screen, mut shown) = mpsc::channel::<SessionUpdate>(0);

    let client = Client.v1().with_handler(consumption).on_receive_notification(
        async move |told: SessionNotification, _agent| {
            // The screen takes one at a time; the handler waits for it.
            screen.clone().send(told.update).await.map_err(Error::into_internal_error)
        },
        on_receive_notification!(),
    );
    let working = client.connect_with(channel, async |agent: ConnectionTo<Agent>| {
        agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
        let session = agent.send_request(NewSessionRequest::new(CWD)).block_task().await?.session_id;
        let answer = agent.send_request(PromptRequest::new(session, vec!["count".into()])).block_task().await?;
        Ok(answer.stop_reason)
    });
    let watching = async {
        let (mut text, mut updates) = (String::new(), 0);
        while let Some(update) = shown.next().await {
            updates += 1;
            if let SessionUpdate::AgentMessageChunk(chunk) = update
                && let ContentBlock::Text(block) = chunk.content
            {
                text.push_str(&block.text);
            }
        }
        (text, updates)
    };
    let (stop, (text, updates)) = futures::join!(working, watching);
    assert_eq!(stop.expect("an answer"), StopReason::EndTurn);
    assert!(text == words.concat(), "text was lost or moved");
    assert!(updates < words.len() / 10, "deltas merge while the handler waits: {updates}");
    served.end().await.expect("the connection ends in order");
}

#[tokio::test]
async fn rubbish_is_answered_and_the_connection_lives() {
    let world = World::new([FakeModel::new([FakeAnswer::text("fine")])]);
    let (RawClient { writer: mut write, mut messages }, _served) = over_bytes(&world);
    for (line, code) in [
        (&b"hello?"[..], -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1,", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b"[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\"}]", -32600),
        (b"{\"id\": 1, \"method\": \"initialize\"}", -32600),
        (b"7", -32600),
    ] {
        write.write_all(line).await.expect("written");
        write.write_all(b"\n").await.expect("written");
        let answer: Value = messages.next().await.expect("an answer");
        assert_eq!(answer["error"]["code"], code, "{}: {answer}", String::from_utf8_lossy(line));
        assert_eq!(answer["id"], Value::Null);
    }
    // Blank lines, answers to nothing and notifications that nobody knows are passed over.
    let passed_over =
        "\n\r\n{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n{\"result\": 1}\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n";
    write.write_all(passed_over.as_bytes()).await.expect("written");
    write
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n")
        .await
        .expect("written");
    let answer = messages.next().await.expect("an answer");
    assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
}

#[tokio::test]
async fn a_flood_of_rubbish_is_held_back_while_its_answers_are_not_read() {
    let world = World::new([]);
    let (RawClient { writer: mut write, messages }, _served) = over_bytes(&world);
    let flood = "rubbish\n".repeat(10_000);
    let mut flooding = std::pin::pin!(write.write_all(flood.as_bytes()));
    for _ in 0..1000 {
        assert!(futures::poll!(&mut flooding).is_pending(), "everything was taken although no answer was read");
        tokio::task::yield_now().await;
    }
    drop(messages);
}

#[tokio::test]
async fn too_many_requests_at_once_are_refused_one_by_one() {
    let model = FakeModel::new([FakeAnswer::Hangs { text: String::new() }]);
    let world = World::new([model]);
    world.store.stall();
    let (mut client, _served) = world.connect();
    client.initialize().await;
    let mut pending = Vec::new();
    for _ in 0..300 {
        let id = "01234567-89ab-7def-8123-456789abcdef";
        pending.push(client.start("session/close", json!({"sessionId": id})).await);
    }
    let error = client.answer(*pending.last().expect("a request")).await.expect_err("too many");
    assert_eq!((error.code, error.data["kind"].as_str()), (-32603, Some("too-many-requests")));
    world.store.resume();
    let error = client.answer(pending[0]).await.expect_err("no such session");
    assert_eq!(error.code, -32002);
}
