//! The event lane of a session: ordered, bounded, lossless.
//!
//! When the reader is slow, adjacent deltas of one kind are merged; when that does not help, the sender waits. Nothing is
//! dropped. Invariant: what the reader sees, joined, is what was sent, joined.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peri_acp_types::{AgentEvent, SessionEvent};
use tokio::sync::Notify;

/// Text that may wait in the lane, in bytes, before the sender waits.
const MAX_WAITING_TEXT: usize = 256 * 1024;
/// Events that may wait in the lane before the sender waits.
const MAX_WAITING_EVENTS: usize = 256;

/// Creates a lane.
pub fn event_lane() -> (EventSender, EventReceiver) {
    let lane =
        Arc::new(Lane { state: Mutex::new(LaneState::default()), filled: Notify::new(), drained: Notify::new() });
    (EventSender { lane: lane.clone() }, EventReceiver { lane })
}

/// The agent's end.
pub struct EventSender {
    lane: Arc<Lane>,
}

/// The runtime's end. Dropping it frees the sender: later events go nowhere, and the session goes on.
pub struct EventReceiver {
    lane: Arc<Lane>,
}

struct Lane {
    /// Held for a push or a pop only, never over an await.
    state: Mutex<LaneState>,
    filled: Notify,
    drained: Notify,
}

#[derive(Default)]
struct LaneState {
    waiting: VecDeque<AgentEvent>,
    /// Bytes of delta text in `waiting`.
    text: usize,
    sender_gone: bool,
    receiver_gone: bool,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, LaneState> {
        // A poisoned lane is still in order: no code between lock and unlock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneState {
    fn is_full(&self) -> bool {
        self.text >= MAX_WAITING_TEXT || self.waiting.len() >= MAX_WAITING_EVENTS
    }

    fn push(&mut self, event: AgentEvent) {
        self.text += delta_bytes(&event.event);
        match self.waiting.back_mut() {
            Some(last) if merges(last, &event) => append(last, event),
            _ => self.waiting.push_back(event),
        }
    }
}

impl EventSender {
    /// Sends an event, waiting while the lane is full. Dropping the future drops the event.
    pub async fn send(&self, event: AgentEvent) {
        loop {
            let drained = self.lane.drained.notified();
            {
                let mut state = self.lane.lock();
                if state.receiver_gone {
                    return;
                }
                if !state.is_full() {
                    state.push(event);
                    break;
                }
            }
            drained.await;
        }
        self.lane.filled.notify_one();
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.lane.lock().sender_gone = true;
        self.lane.filled.notify_one();
    }
}

impl EventReceiver {
    /// The next event; None once the session is gone and the lane is empty. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        loop {
            let filled = self.lane.filled.notified();
            {
                let mut state = self.lane.lock();
                if let Some(event) = state.waiting.pop_front() {
                    state.text -= delta_bytes(&event.event);
                    self.lane.drained.notify_one();
                    return Some(event);
                }
                if state.sender_gone {
                    return None;
                }
            }
            filled.await;
        }
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut state = self.lane.lock();
        state.receiver_gone = true;
        state.waiting.clear();
        state.text = 0;
        drop(state);
        // Both: a sender that is about to wait, and all that wait.
        self.lane.drained.notify_one();
        self.lane.drained.notify_waiters();
    }
}

fn delta_bytes(event: &SessionEvent) -> usize {
    match event {
        SessionEvent::TextDelta(text) | SessionEvent::ThoughtDelta(text) => text.len(),
        _ => 0,
    }
}

fn merges(last: &AgentEvent, next: &AgentEvent) -> bool {
    let same_kind = matches!(
        (&last.event, &next.event),
        (SessionEvent::TextDelta(_), SessionEvent::TextDelta(_))
            | (SessionEvent::ThoughtDelta(_), SessionEvent::ThoughtDelta(_))
    );
    same_kind && last.agent_id == next.agent_id && last.turn_id == next.turn_id && last.attempt_id == next.attempt_id
}

fn append(last: &mut AgentEvent, next: AgentEvent) {
    if let (
        SessionEvent::TextDelta(text) | SessionEvent::ThoughtDelta(text),
        SessionEvent::TextDelta(more) | SessionEvent::ThoughtDelta(more),
    ) = (&mut last.event, next.event)
    {
        text.push_str(&more);
    }
}
