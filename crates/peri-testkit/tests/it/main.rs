//! The kit itself: what other tests lean on must hold.

mod endpoint;
mod fakes;
mod model_lists;
mod process;
mod snapshots;
mod stream_cases;
