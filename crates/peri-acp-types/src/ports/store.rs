//! Threads at rest.

use crate::{
    FrozenBlob, Message, SessionEpoch, SessionId, StoreError, StoredTurn, Thread, ThreadChange, ThreadMeta, TurnId,
};

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

    /// Reads a thread as far as a session needs it to go on: from the first message that the model still sees
    /// ([`Thread::earlier`] counts those before it), without what was rewound, and of the ended turns those that such
    /// messages belong to. Takes no epoch.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Unreadable`] for a record of a newer form.
    async fn load(&self, id: SessionId) -> Result<Thread, StoreError>;

    /// Reads what a thread is without what is said in it. Takes no epoch.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    async fn head(&self, id: SessionId) -> Result<ThreadHead, StoreError>;

    /// Reads a part of the conversation, oldest first, without what was rewound. `from` is 0 for the beginning, else what
    /// an earlier page gave as `next`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Unreadable`] for a record of a newer form.
    async fn page(&self, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, StoreError>;

    /// Copies a thread under another id: its conversation and its frozen bytes as they stand, with an epoch of its own
    /// ([`SessionEpoch::UNOPENED`]), without what was rewound and without a close intent. An open turn is open in the copy.
    /// `meta` names the copy; its title is the source's where it has none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Exists`] where the id is taken.
    async fn fork(&self, source: SessionId, meta: &ThreadMeta) -> Result<(), StoreError>;

    /// Claims a thread for this process, so that another one that asks is told. A courtesy between processes: what keeps
    /// the thread whole is the epoch. Ends when the hold is dropped, or with the process, however it ends.
    ///
    /// # Errors
    /// [`StoreError::Held`]. A store that cannot tell gives a hold to anybody.
    async fn hold(&self, id: SessionId) -> Result<SessionHold, StoreError> {
        let _ = id;
        Ok(SessionHold::default())
    }

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

/// A thread without its messages.
#[derive(Clone, PartialEq, Debug)]
pub struct ThreadHead {
    pub meta: ThreadMeta,
    pub epoch: SessionEpoch,
    pub close_intent: Option<SessionEpoch>,
    pub open_turn: Option<TurnId>,
    /// Messages of the conversation, less what was rewound.
    pub messages: u64,
}

/// A part of a conversation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// The ended turns that these messages belong to.
    pub turns: Vec<StoredTurn>,
    /// Where the next page begins; None where there is none.
    pub next: Option<u64>,
}

/// A claim on a thread. Dropping it gives the thread up.
#[derive(Default)]
pub struct SessionHold {
    _claim: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl SessionHold {
    /// A hold that lasts as long as that value.
    pub fn new(claim: impl std::any::Any + Send + Sync) -> SessionHold {
        SessionHold { _claim: Some(Box::new(claim)) }
    }
}

impl std::fmt::Debug for SessionHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionHold")
    }
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
