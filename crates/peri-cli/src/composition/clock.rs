//! The system's clock.
//!
//! Owns: the one place where this process reads time for the libraries. Invariant: the two clocks never mix.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;
use peri_acp_types::ports::Clock;

/// [`Clock`] by the operating system and tokio's timer.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic zero is now.
    pub fn start() -> SystemClock {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        // A clock before 1970 is wrong anyway; records then carry 0.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        async move { tokio::time::sleep(duration).await }.boxed()
    }
}
