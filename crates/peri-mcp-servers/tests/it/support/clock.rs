//! Clocks: the real one, and one that moves when it is told to.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use peri_acp_types::ports::Clock;

pub struct RealClock;

impl Clock for RealClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64
    }

    fn monotonic(&self) -> Duration {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

/// Stands still until [`ManualClock::advance`].
#[derive(Clone, Default)]
pub struct ManualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    now: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        let mut state = self.state.lock().unwrap();
        state.now += by;
        let now = state.now;
        let (due, later) = std::mem::take(&mut state.sleepers).into_iter().partition(|(at, _)| *at <= now);
        state.sleepers = later;
        let due: Vec<(Duration, oneshot::Sender<()>)> = due;
        for (_, wake) in due {
            let _ = wake.send(());
        }
    }

    /// True while somebody sleeps for at least that long from now on.
    pub fn has_sleeper(&self, for_at_least: Duration) -> bool {
        let state = self.state.lock().unwrap();
        state.sleepers.iter().any(|(at, wake)| *at >= state.now + for_at_least && !wake.is_canceled())
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().unwrap().now
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        let mut state = self.state.lock().unwrap();
        let at = state.now + duration;
        state.sleepers.push((at, wake));
        woken.map(|_| ()).boxed()
    }
}
