//! Time, identity and tasks.

use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

/// Time. Two clocks: one for people and records, one for measuring.
pub trait Clock: Send + Sync {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> i64;
    /// Time since an arbitrary fixed point; never goes back.
    fn monotonic(&self) -> Duration;
    /// Resolves after `duration`. Dropping it frees the timer.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Ids and randomness, from a clock and a seed, so that a run can be replayed.
pub trait IdSource: Send + Sync {
    /// A UUIDv7.
    fn uuid(&self) -> Uuid;
    /// Uniform in `[0, 1)`, for jitter. Not for secrets.
    fn random(&self) -> f64;
}

/// Starts tasks.
pub trait Spawner: Send + Sync {
    /// Runs the future to its end, independently of the caller. The caller owns it: it must make the future end, by a
    /// cancellation token or a closed channel, and know when it did.
    fn spawn(&self, future: BoxFuture<'static, ()>);
}
