//! The event lane: ordered, bounded, lossless.

use std::time::Duration;

use peri_acp_types::*;
use peri_agent::event_lane;

fn event(event: SessionEvent) -> AgentEvent {
    AgentEvent { agent_id: AgentId::main(), turn_id: None, attempt_id: None, event }
}

fn text(text: &str) -> AgentEvent {
    event(SessionEvent::TextDelta(text.into()))
}

#[tokio::test]
async fn adjacent_deltas_of_one_kind_are_merged_and_order_is_kept() {
    let (tx, mut rx) = event_lane();
    tx.send(text("a")).await;
    tx.send(text("b")).await;
    tx.send(event(SessionEvent::ThoughtDelta("t".into()))).await;
    tx.send(event(SessionEvent::TurnStarted)).await;
    tx.send(text("c")).await;
    drop(tx);
    let mut seen = Vec::new();
    while let Some(event) = rx.recv().await {
        seen.push(event.event);
    }
    let expected = [
        SessionEvent::TextDelta("ab".into()),
        SessionEvent::ThoughtDelta("t".into()),
        SessionEvent::TurnStarted,
        SessionEvent::TextDelta("c".into()),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn deltas_of_different_attempts_are_never_merged() {
    let (tx, mut rx) = event_lane();
    for attempt in [1, 2] {
        let attempt_id = Some(AttemptId(uuid::Uuid::from_u128(attempt)));
        tx.send(AgentEvent { attempt_id, ..text("x") }).await;
    }
    for _ in 0..2 {
        assert_eq!(rx.recv().await.map(|event| event.event), Some(SessionEvent::TextDelta("x".into())));
    }
}

#[tokio::test]
async fn a_slow_reader_makes_the_sender_wait_and_loses_nothing() {
    let (tx, mut rx) = event_lane();
    let chunk = "x".repeat(1024);
    let total = 2 * 1024;
    let sending = async {
        for _ in 0..total {
            tx.send(text(&chunk)).await;
        }
        drop(tx);
    };
    let reading = async {
        let (mut bytes, mut largest) = (0, 0);
        while let Some(event) = rx.recv().await {
            if let SessionEvent::TextDelta(text) = event.event {
                bytes += text.len();
                largest = largest.max(text.len());
            }
            tokio::task::yield_now().await;
        }
        (bytes, largest)
    };
    let ((), (bytes, largest)) = tokio::join!(sending, reading);
    assert_eq!(bytes, total * 1024);
    assert!(largest <= 257 * 1024, "bounded, but {largest} bytes were merged");
}

#[tokio::test]
async fn events_that_cannot_be_merged_are_bounded_too() {
    let (tx, mut rx) = event_lane();
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(50), tx.send(event(SessionEvent::TurnStarted))).await.is_ok() {
        sent += 1;
        assert!(sent < 10_000, "the lane is not bounded");
    }
    assert!(rx.recv().await.is_some());
    tx.send(event(SessionEvent::TurnStarted)).await;
}

#[tokio::test]
async fn a_reader_that_leaves_frees_every_waiting_sender() {
    let (tx, rx) = event_lane();
    // More than fits: both wait until the reader leaves.
    let fill = || async {
        for _ in 0..1000 {
            tx.send(event(SessionEvent::TurnStarted)).await;
        }
    };
    let waiting = async { futures::join!(fill(), fill(), fill()) };
    let leave = async {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        drop(rx);
    };
    tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(waiting, leave) })
        .await
        .expect("no sender hangs");
}
