//! Tasks on the process's runtime.

use futures::future::BoxFuture;
use peri_acp_types::ports::Spawner;
use tokio::runtime::Handle;

/// [`Spawner`] by a tokio runtime.
#[derive(Clone, Debug)]
pub struct TokioSpawner(Handle);

impl TokioSpawner {
    /// The runtime that this is called on.
    pub fn current() -> TokioSpawner {
        TokioSpawner(Handle::current())
    }
}

impl Spawner for TokioSpawner {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        // The caller owns the task's end; the join handle is not needed for it.
        drop(self.0.spawn(future));
    }
}
