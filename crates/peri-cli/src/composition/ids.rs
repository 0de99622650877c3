//! Ids and jitter, from the clock and a seed of the operating system.
//!
//! Owns: the random state. Must not: make secrets; the generator is fast, not unpredictable.
//! Invariant: ids of one process grow in the order in which they are made, also within a millisecond.

use std::sync::{Arc, Mutex, PoisonError};

use peri_acp_types::ports::{Clock, IdSource};
use uuid::{Builder, Uuid};

/// [`IdSource`] for a process.
pub struct SeededIds {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    generator: SplitMix64,
    /// Of the last id; the clock may stand still or go back, ids must not.
    last_ms: u64,
    /// Of the last id within that millisecond: the twelve bits after the time.
    counter: u16,
}

/// The counter's room, and where it may begin, so that ids of two processes differ even in their counters.
const COUNTER_LIMIT: u16 = 1 << 12;
const COUNTER_START_MASK: u64 = 0x7FF;

impl SeededIds {
    /// Ids from a seed of the operating system.
    ///
    /// # Errors
    /// Where the system has no randomness to give.
    pub fn from_system(clock: Arc<dyn Clock>) -> Result<SeededIds, getrandom::Error> {
        Ok(SeededIds::from_seed(clock, getrandom::u64()?))
    }

    /// The same ids for the same clock and seed.
    pub fn from_seed(clock: Arc<dyn Clock>, seed: u64) -> SeededIds {
        SeededIds { clock, state: Mutex::new(State { generator: SplitMix64(seed), last_ms: 0, counter: 0 }) }
    }
}

impl IdSource for SeededIds {
    fn uuid(&self) -> Uuid {
        let now_ms = u64::try_from(self.clock.now_ms()).unwrap_or_default();
        // Held for a few instructions; a panic cannot leave the state half changed.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (unix_ms, counter) = state.advance(now_ms);
        let [b0, b1, b2, b3, b4, b5, b6, b7] = state.generator.next().to_be_bytes();
        let [high, low] = counter.to_be_bytes();
        Builder::from_unix_timestamp_millis(unix_ms, &[high, low, b0, b1, b2, b3, b4, b5, b6, b7]).into_uuid()
    }

    fn random(&self) -> f64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // 53 bits are what a double holds exactly.
        (state.generator.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl State {
    fn advance(&mut self, now_ms: u64) -> (u64, u16) {
        if now_ms > self.last_ms {
            self.last_ms = now_ms;
            self.counter = (self.generator.next() & COUNTER_START_MASK) as u16;
        } else if self.counter + 1 < COUNTER_LIMIT {
            self.counter += 1;
        } else {
            self.last_ms += 1;
            self.counter = 0;
        }
        (self.last_ms, self.counter)
    }
}

/// Steele, Lea and Flood's SplitMix64.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn now_ms(&self) -> i64 {
            1_800_000_000_000
        }
        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            futures::future::ready(()).boxed()
        }
    }

    #[test]
    fn ids_grow_while_the_clock_stands_still_and_replay_from_a_seed() {
        let ids = SeededIds::from_seed(Arc::new(StoppedClock), 7);
        let made: Vec<Uuid> = (0..10_000).map(|_| ids.uuid()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
        let again = SeededIds::from_seed(Arc::new(StoppedClock), 7);
        assert_eq!(made[0], again.uuid());
    }

    #[test]
    fn jitter_stays_in_its_range() {
        let ids = SeededIds::from_seed(Arc::new(StoppedClock), 1);
        assert!((0..1000).map(|_| ids.random()).all(|value| (0.0..1.0).contains(&value)));
    }
}
