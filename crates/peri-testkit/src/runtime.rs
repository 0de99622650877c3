//! Time, identity and tasks under a test's control.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;
use peri_acp_types::ports::{Clock, IdSource, Spawner};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::watched::Watched;

/// Unix time at which a [`FakeClock`] starts, in milliseconds.
pub const START_MS: i64 = 1_700_000_000_000;

/// A clock that a test moves. Clones share the time.
#[derive(Clone)]
pub struct FakeClock {
    now: Arc<watch::Sender<Duration>>,
    /// Every sleep that was asked for, in order.
    sleeps: Arc<Watched<Vec<Duration>>>,
    waiting: Waiting,
}

/// What a sleep does on a [`FakeClock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    /// It waits for [`FakeClock::advance`].
    ForTheTest,
    /// It moves the clock by itself, at once.
    Never,
}

impl FakeClock {
    /// Time stands still until the test moves it.
    pub fn manual() -> FakeClock {
        FakeClock::with(Waiting::ForTheTest)
    }

    /// Each sleep up to a minute moves the time by its length and is over at once; a longer one is a limit and waits.
    pub fn automatic() -> FakeClock {
        FakeClock::with(Waiting::Never)
    }

    fn with(waiting: Waiting) -> FakeClock {
        FakeClock { now: Arc::new(watch::Sender::new(Duration::ZERO)), sleeps: Arc::default(), waiting }
    }

    /// Moves the time; sleeps that are over wake up.
    pub fn advance(&self, by: Duration) {
        self.now.send_modify(|now| *now += by);
    }

    /// Every sleep that was asked for so far.
    pub fn sleeps(&self) -> Vec<Duration> {
        self.sleeps.read(Vec::clone)
    }

    /// Resolves once that many sleeps have been asked for.
    pub async fn slept(&self, count: usize) {
        self.sleeps.until(|sleeps| (sleeps.len() >= count).then_some(())).await;
    }
}

impl Clock for FakeClock {
    fn now_ms(&self) -> i64 {
        START_MS + i64::try_from(self.monotonic().as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic(&self) -> Duration {
        *self.now.borrow()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleeps.update(|sleeps| sleeps.push(duration));
        let until = self.monotonic() + duration;
        let this = self.clone();
        async move {
            if this.waiting == Waiting::Never && duration <= Duration::from_secs(60) {
                this.advance(duration);
            }
            let mut now = this.now.subscribe();
            // The sender lives in this clock, so the wait ends only when the time has come.
            let _ = now.wait_for(|now| *now >= until).await;
        }
        .boxed()
    }
}

/// The time of the machine, for tests that meet real sockets and processes.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: Instant,
}

impl Default for TokioClock {
    fn default() -> TokioClock {
        TokioClock { start: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now_ms(&self) -> i64 {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

/// Ids that are the same in every run.
#[derive(Default)]
pub struct FakeIds {
    given: AtomicU64,
}

impl FakeIds {
    /// Ids that differ from those of another source, as those of another process do.
    pub fn starting_at(given: u64) -> FakeIds {
        FakeIds { given: AtomicU64::new(given) }
    }
}

impl IdSource for FakeIds {
    fn uuid(&self) -> Uuid {
        let number = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        // Version 7 and the variant bits, so that it reads like the real ones.
        Uuid::from_u128((u128::from(START_MS.unsigned_abs()) << 80) | (7 << 76) | (0b10 << 62) | u128::from(number))
    }

    fn random(&self) -> f64 {
        0.5
    }
}

/// Spawns on the tokio runtime of the test.
pub struct TokioSpawner;

impl Spawner for TokioSpawner {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        tokio::spawn(future);
    }
}

/// Spawns on the tokio runtime of the test and knows when its tasks have ended.
#[derive(Debug, Default)]
pub struct TestSpawner {
    tasks: Mutex<JoinSet<()>>,
}

impl TestSpawner {
    /// Resolves once every task has ended, those too that were spawned meanwhile.
    ///
    /// # Panics
    /// Where a task panicked.
    pub async fn ended(&self) {
        loop {
            let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
            if tasks.is_empty() {
                return;
            }
            while let Some(task) = tasks.join_next().await {
                task.expect("no task panics");
            }
        }
    }
}

impl Spawner for TestSpawner {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(future);
    }
}
