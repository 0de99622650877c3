//! A slow client holds the agent; memory stays bounded; nothing is lost.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::{Agent, Client, UntypedMessage};
use futures::channel::mpsc;
use futures::future::join3;
use futures::io::{AsyncBufReadExt, BufReader};
use futures::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio_util::compat::TokioAsyncReadCompatExt;

use super::backlog::MAX_QUEUED;
use super::*;

const EVENTS: usize = 400;
const TEXT: usize = 4_000;
/// One event as it is sent here, generously.
const EVENT: usize = TEXT + 200;

fn event(number: usize) -> Map<String, Value> {
    Map::from_iter([("number".to_owned(), json!(number)), ("text".to_owned(), json!("x".repeat(TEXT)))])
}

/// An agent that sends all events as fast as it is let, as a forwarder does.
async fn agent(channel: Channel, backlog: Arc<Backlog>, sent: Arc<AtomicUsize>) {
    Agent
        .v1()
        .connect_with(channel, async move |connection| {
            let outlet = Outlet::new(connection, backlog);
            for number in 0..EVENTS {
                outlet.room().await.expect("the client is there");
                outlet.send("session/update", event(number)).expect("the client is there");
                sent.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        })
        .await
        .expect("the connection ends in order");
}

/// Lets everything else run until the agent gets no further.
async fn until_held(sent: &AtomicUsize) -> usize {
    let mut before = usize::MAX;
    loop {
        let now = sent.load(Ordering::SeqCst);
        if now == before {
            return now;
        }
        before = now;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn over_bytes_a_reader_that_does_not_read_holds_the_agent() {
    let (agent_end, client_end) = tokio::io::duplex(1024);
    let (agent_read, agent_write) = tokio::io::split(agent_end);
    let side =
        byte_stream(agent_read.compat(), tokio_util::compat::TokioAsyncWriteCompatExt::compat_write(agent_write));
    let (backlog, sent) = (side.backlog.clone(), Arc::new(AtomicUsize::new(0)));
    let pump = side.pump.expect("bytes need a pump");

    let client = async {
        let held_at = until_held(&sent).await;
        assert!(held_at < EVENTS, "the agent ran ahead of a client that reads nothing");
        assert!(held_at * TEXT >= MAX_QUEUED - EVENT, "held too early, at {held_at}");
        let mut lines = BufReader::new(client_end.compat()).lines();
        for number in 0..EVENTS {
            let line = lines.next().await.expect("an event").expect("a line");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(message["params"]["number"], json!(number));
            assert_eq!(message["params"]["text"].as_str().map(str::len), Some(TEXT));
        }
        assert!(lines.next().await.is_none(), "the agent closes its end when it is done");
    };
    let (_, pumped, ()) = join3(agent(side.channel, backlog.clone(), sent.clone()), pump, client).await;

    pumped.expect("no error on the way");
    assert!(backlog.highest() <= MAX_QUEUED + EVENT, "{} bytes were queued", backlog.highest());
}

#[tokio::test]
async fn in_process_a_client_that_takes_no_frames_holds_the_agent() {
    let (side, client) = in_process();
    let (backlog, sent) = (side.backlog.clone(), Arc::new(AtomicUsize::new(0)));
    let (outgoing, mut frames) = client.into_frames();

    let client = async {
        let held_at = until_held(&sent).await;
        assert!(held_at < EVENTS, "the agent ran ahead of a client that takes nothing");
        for number in 0..EVENTS {
            let message = frames.next().await.expect("an event");
            assert_eq!(message["params"]["number"], json!(number));
        }
        drop(outgoing);
    };
    futures::join!(agent(side.channel, backlog.clone(), sent.clone()), client);

    assert!(backlog.highest() <= MAX_QUEUED + EVENT, "{} bytes were queued", backlog.highest());
}

#[tokio::test]
async fn in_process_a_handler_that_waits_holds_the_agent() {
    let (side, client) = in_process();
    let (backlog, sent) = (side.backlog.clone(), Arc::new(AtomicUsize::new(0)));
    let (channel, consumption) = client.into_connection();
    let (seen, mut screen) = mpsc::channel::<Value>(0);

    let client = Client.v1().with_handler(consumption).on_receive_notification(
        async move |message: UntypedMessage, _connection| {
            seen.clone().send(message.params).await.map_err(agent_client_protocol::Error::into_internal_error)
        },
        agent_client_protocol::on_receive_notification!(),
    );
    let screen = async {
        let held_at = until_held(&sent).await;
        assert!(held_at < EVENTS, "the agent ran ahead of a handler that waits");
        for number in 0..EVENTS {
            assert_eq!(screen.next().await.expect("an event")["number"], json!(number));
        }
    };
    let (_, connected, ()) =
        join3(agent(side.channel, backlog.clone(), sent.clone()), client.connect_to(channel), screen).await;

    connected.expect("the client ends in order");
    // One event is in the hands of the waiting handler.
    assert!(backlog.highest() <= MAX_QUEUED + EVENT, "{} bytes were queued", backlog.highest());
}

#[tokio::test]
async fn a_client_that_goes_away_frees_the_agent() {
    let (side, client) = in_process();
    let outcome = Rc::new(Cell::new(None));
    let noted = outcome.clone();
    let backlog = side.backlog.clone();
    let (outgoing, frames) = client.into_frames();

    let agent = Agent.v1().connect_with(side.channel, async move |connection| {
        let outlet = Outlet::new(connection, backlog);
        let end = loop {
            let sent = match outlet.room().await {
                Ok(()) => outlet.send("session/update", event(0)),
                Err(gone) => Err(gone),
            };
            if let Err(gone) = sent {
                break gone;
            }
        };
        noted.set(Some(end));
        Ok(())
    });
    let client = async {
        tokio::task::yield_now().await;
        drop((outgoing, frames));
    };
    let _ = futures::join!(agent, client);

    assert_eq!(outcome.get(), Some(ClientGone));
}
