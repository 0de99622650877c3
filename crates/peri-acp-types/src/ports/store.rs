//! Threads at rest.

use crate::{FrozenBlob, SessionEpoch, SessionId, StoreError, Thread, ThreadChange, ThreadMeta};

/// Keeps threads. One suite (peri-testkit) holds every implementation to this contract.
///
/// Every method may block on I/O for as long as the adapter's busy limit and then fails. A future that is dropped may
/// or may not have taken effect; a method that returned `Ok` has.
#[async_trait::async_trait]
pub trait ThreadStore: Send + Sync {
    /// Adds a thread without messages.
    ///
    /// # Errors
    /// [`StoreError::Exists`] where the id is taken.
    async fn create(&self, meta: &ThreadMeta) -> Result<(), StoreError>;

    /// Reads a thread whole. Takes no epoch.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Unreadable`] for a record of a newer form.
    async fn load(&self, id: SessionId) -> Result<Thread, StoreError>;

    /// Takes the epoch after `expected`, by compare-and-swap: from then on writes of an older epoch are refused.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where the epoch is no longer `expected`.
    async fn take_epoch(&self, id: SessionId, expected: SessionEpoch) -> Result<SessionEpoch, StoreError>;

    /// Writes the frozen context, once.
    ///
    /// # Errors
    /// [`StoreError::Exists`] where there is one; [`StoreError::Fenced`].
    async fn freeze(&self, id: SessionId, epoch: SessionEpoch, blob: &FrozenBlob) -> Result<(), StoreError>;

    /// Applies the changes in one transaction, by the rules of [`Thread::apply`]: all or none.
    ///
    /// # Errors
    /// [`StoreError::Fenced`], [`StoreError::Rule`], or a failure after which nothing is written.
    async fn commit(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        changes: &[ThreadChange],
        now_ms: i64,
    ) -> Result<(), StoreError>;

    /// Records that this epoch is closing the session. Idempotent.
    ///
    /// # Errors
    /// [`StoreError::Fenced`].
    async fn put_close_intent(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError>;

    /// Clears a close intent of this or an older epoch. Idempotent.
    ///
    /// # Errors
    /// [`StoreError::Fenced`].
    async fn settle_close(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError>;

    /// Lists threads without a parent, newest change first.
    ///
    /// # Errors
    /// Any failure of the adapter.
    async fn list(&self, query: &ThreadQuery) -> Result<ThreadPage, StoreError>;

    /// Removes a thread and its children. Removing what is not there succeeds.
    ///
    /// # Errors
    /// Any failure of the adapter.
    async fn delete(&self, id: SessionId) -> Result<(), StoreError>;
}

/// Which threads, and from where on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadQuery {
    /// Only threads of exactly this working directory.
    pub cwd: Option<String>,
    /// What an earlier page gave as `next`.
    pub cursor: Option<String>,
    /// At most so many; the adapter may give fewer, never none while there are more.
    pub limit: usize,
}

/// A page of a list.
#[derive(Clone, PartialEq, Debug)]
pub struct ThreadPage {
    pub threads: Vec<ThreadMeta>,
    pub next: Option<String>,
}
