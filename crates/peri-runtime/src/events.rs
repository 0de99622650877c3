//! Stamping: an event gets its session, its epoch and its number at the moment when it is pulled.
//!
//! Pulled, not pushed: as long as nobody asks, events wait in the agent's lane, where adjacent deltas merge.
//! Invariant: the numbers of one opening are 1, 2, 3 and so on, without a gap, in the agent's order.

use peri_acp_types::{CancellationToken, Envelope, SessionEpoch, SessionId, SessionSeq};
use peri_agent::EventReceiver;

/// The events of one opening of a session. There is one reader; dropping it lets the session go on unheard.
pub struct StampedEvents {
    session_id: SessionId,
    session_epoch: SessionEpoch,
    last_seq: u64,
    lane: EventReceiver,
    /// Fires when nothing will be read any more: the lane ended, or the reader is gone.
    drained: CancellationToken,
}

impl StampedEvents {
    pub(crate) fn new(
        session_id: SessionId,
        session_epoch: SessionEpoch,
        lane: EventReceiver,
        drained: CancellationToken,
    ) -> StampedEvents {
        StampedEvents { session_id, session_epoch, last_seq: 0, lane, drained }
    }

    /// The next event; None once the session has ended and everything has been pulled. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Envelope> {
        let Some(event) = self.lane.recv().await else {
            self.drained.cancel();
            return None;
        };
        self.last_seq += 1;
        Some(Envelope {
            session_id: self.session_id,
            session_epoch: self.session_epoch,
            session_seq: SessionSeq(self.last_seq),
            event,
        })
    }
}

impl Drop for StampedEvents {
    fn drop(&mut self) {
        self.drained.cancel();
    }
}

#[cfg(test)]
mod tests {
    use peri_acp_types::{AgentEvent, AgentId, SessionEvent};
    use peri_agent::event_lane;
    use uuid::Uuid;

    use super::*;

    fn outside_turn(event: SessionEvent) -> AgentEvent {
        AgentEvent { agent_id: AgentId::main(), turn_id: None, attempt_id: None, event }
    }

    #[tokio::test]
    async fn numbers_have_no_gap_and_the_end_is_told() {
        let (sender, lane) = event_lane();
        let drained = CancellationToken::new();
        let id = SessionId(Uuid::from_u128(7));
        let mut events = StampedEvents::new(id, SessionEpoch(3), lane, drained.clone());
        for _ in 0..3 {
            sender.send(outside_turn(SessionEvent::TurnStarted)).await;
        }
        drop(sender);

        let mut stamps = Vec::new();
        while let Some(envelope) = events.next().await {
            assert!(!drained.is_cancelled());
            stamps.push((envelope.session_id, envelope.session_epoch, envelope.session_seq));
        }

        let expected: Vec<_> = (1..=3).map(|seq| (id, SessionEpoch(3), SessionSeq(seq))).collect();
        assert_eq!(stamps, expected);
        assert!(drained.is_cancelled());
    }

    #[tokio::test]
    async fn deltas_merge_for_as_long_as_nobody_pulls_and_numbers_stay_gapless() {
        let (sender, lane) = event_lane();
        let mut events = StampedEvents::new(SessionId(Uuid::nil()), SessionEpoch(1), lane, CancellationToken::new());
        for word in ["a", "b", "c"] {
            sender.send(outside_turn(SessionEvent::TextDelta(word.to_owned()))).await;
        }
        sender.send(outside_turn(SessionEvent::AttemptStarted)).await;

        let merged = events.next().await.expect("a delta");
        assert_eq!(merged.event.event, SessionEvent::TextDelta("abc".to_owned()));
        assert_eq!(merged.session_seq, SessionSeq(1));
        assert_eq!(events.next().await.expect("an event").session_seq, SessionSeq(2));
    }

    #[test]
    fn a_reader_that_goes_away_counts_as_drained() {
        let (_sender, lane) = event_lane();
        let drained = CancellationToken::new();
        drop(StampedEvents::new(SessionId(Uuid::nil()), SessionEpoch(1), lane, drained.clone()));
        assert!(drained.is_cancelled());
    }
}
