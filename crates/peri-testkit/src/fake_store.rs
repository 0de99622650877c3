//! A store for tests of sessions: threads in memory by the domain's reducer, and faults where a test wants them.
//!
//! Invariant: without faults it gives the answers of every other store; the conformance suite runs on it too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peri_acp_types::ports::{MessagePage, SessionHold, ThreadHead, ThreadPage, ThreadQuery, ThreadStore};
use peri_acp_types::{FrozenBlob, SessionEpoch, SessionId, StoreError, Thread, ThreadChange, ThreadMeta};
use tokio::sync::Semaphore;

/// Keeps threads in memory.
pub struct FakeStore {
    threads: Mutex<BTreeMap<SessionId, Thread>>,
    held: Arc<Mutex<BTreeSet<SessionId>>>,
    faults: Mutex<BTreeMap<StoreOperation, StoreError>>,
    /// Holds every operation while it has no permit.
    gate: Semaphore,
}

/// What a fault is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StoreOperation {
    Create,
    Load,
    Head,
    Page,
    Fork,
    Hold,
    TakeEpoch,
    Freeze,
    Commit,
    PutCloseIntent,
    SettleClose,
    List,
    Delete,
}

/// Ends a hold when it is dropped.
struct Claim {
    id: SessionId,
    held: Arc<Mutex<BTreeSet<SessionId>>>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.id);
    }
}

impl Default for FakeStore {
    fn default() -> FakeStore {
        FakeStore { threads: Mutex::default(), held: Arc::default(), faults: Mutex::default(), gate: Semaphore::new(1) }
    }
}

impl FakeStore {
    pub fn new() -> FakeStore {
        FakeStore::default()
    }

    /// From now on that operation fails with this error, until [`FakeStore::heal`].
    pub fn fail(&self, operation: StoreOperation, error: StoreError) {
        lock(&self.faults).insert(operation, error);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        lock(&self.faults).clear();
    }

    /// Operations wait from now on, until [`FakeStore::resume`].
    pub fn stall(&self) {
        self.gate.forget_permits(1);
    }

    pub fn resume(&self) {
        self.gate.add_permits(1);
    }

    /// The thread as it is stored: whole, with what was rewound.
    pub fn thread(&self, id: SessionId) -> Option<Thread> {
        lock(&self.threads).get(&id).cloned()
    }

    /// Puts a thread there as it is, whatever was there.
    pub fn put(&self, thread: Thread) {
        lock(&self.threads).insert(thread.meta.id, thread);
    }

    /// Another process takes the session over: its next epoch is in force.
    pub fn take_over(&self, id: SessionId) {
        if let Some(thread) = lock(&self.threads).get_mut(&id) {
            thread.epoch = thread.epoch.next();
        }
    }

    async fn enter(&self, operation: StoreOperation) -> Result<(), StoreError> {
        let permit = self.gate.acquire().await.map_err(|error| StoreError::Failed(error.to_string()))?;
        drop(permit);
        match lock(&self.faults).get(&operation) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn view<T>(&self, id: SessionId, view: impl FnOnce(&Thread) -> T) -> Result<T, StoreError> {
        lock(&self.threads).get(&id).map(view).ok_or(StoreError::NotFound(id))
    }

    fn add(&self, thread: Thread) -> Result<(), StoreError> {
        let mut threads = lock(&self.threads);
        let id = thread.meta.id;
        if threads.contains_key(&id) {
            return Err(StoreError::Exists(id));
        }
        if let Some(parent) = thread.meta.parent_thread_id.filter(|parent| !threads.contains_key(parent)) {
            return Err(StoreError::NotFound(parent));
        }
        threads.insert(id, thread);
        Ok(())
    }

    fn owned<T>(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        change: impl FnOnce(&mut Thread) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut threads = lock(&self.threads);
        let thread = threads.get_mut(&id).ok_or(StoreError::NotFound(id))?;
        if thread.epoch != epoch {
            return Err(StoreError::Fenced { ours: epoch, current: thread.epoch });
        }
        change(thread)
    }
}

#[async_trait::async_trait]
impl ThreadStore for FakeStore {
    async fn create(&self, meta: &ThreadMeta) -> Result<(), StoreError> {
        self.enter(StoreOperation::Create).await?;
        self.add(Thread::new(meta.clone()))
    }

    async fn load(&self, id: SessionId) -> Result<Thread, StoreError> {
        self.enter(StoreOperation::Load).await?;
        self.view(id, Thread::seen_part)
    }

    async fn head(&self, id: SessionId) -> Result<ThreadHead, StoreError> {
        self.enter(StoreOperation::Head).await?;
        self.view(id, Thread::head)
    }

    async fn page(&self, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, StoreError> {
        self.enter(StoreOperation::Page).await?;
        self.view(id, |thread| thread.page(from, limit))
    }

    async fn fork(&self, source: SessionId, meta: &ThreadMeta) -> Result<(), StoreError> {
        self.enter(StoreOperation::Fork).await?;
        let copy = self.view(source, |thread| thread.forked(meta))?;
        self.add(copy)
    }

    async fn hold(&self, id: SessionId) -> Result<SessionHold, StoreError> {
        self.enter(StoreOperation::Hold).await?;
        match lock(&self.held).insert(id) {
            true => Ok(SessionHold::new(Claim { id, held: self.held.clone() })),
            false => Err(StoreError::Held { id, holder: "this process".to_owned() }),
        }
    }

    async fn take_epoch(&self, id: SessionId, expected: SessionEpoch) -> Result<SessionEpoch, StoreError> {
        self.enter(StoreOperation::TakeEpoch).await?;
        self.owned(id, expected, |thread| {
            thread.epoch = expected.next();
            Ok(thread.epoch)
        })
    }

    async fn freeze(&self, id: SessionId, epoch: SessionEpoch, blob: &FrozenBlob) -> Result<(), StoreError> {
        self.enter(StoreOperation::Freeze).await?;
        self.owned(id, epoch, |thread| match thread.frozen {
            Some(_) => Err(StoreError::Exists(id)),
            None => {
                thread.frozen = Some(blob.clone());
                Ok(())
            }
        })
    }

    async fn commit(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        changes: &[ThreadChange],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.enter(StoreOperation::Commit).await?;
        self.owned(id, epoch, |thread| {
            thread.apply_all(changes)?;
            thread.meta.updated_at_ms = now_ms;
            Ok(())
        })
    }

    async fn put_close_intent(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.enter(StoreOperation::PutCloseIntent).await?;
        self.owned(id, epoch, |thread| {
            thread.close_intent = Some(epoch);
            Ok(())
        })
    }

    async fn settle_close(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.enter(StoreOperation::SettleClose).await?;
        self.owned(id, epoch, |thread| {
            thread.close_intent = None;
            Ok(())
        })
    }

    async fn list(&self, query: &ThreadQuery) -> Result<ThreadPage, StoreError> {
        self.enter(StoreOperation::List).await?;
        let threads = lock(&self.threads);
        let matches = |meta: &ThreadMeta| {
            meta.parent_thread_id.is_none() && query.cwd.as_ref().is_none_or(|cwd| *cwd == meta.cwd)
        };
        let mut metas: Vec<ThreadMeta> = threads.values().map(|thread| thread.meta.clone()).filter(matches).collect();
        metas.sort_by_key(|meta| std::cmp::Reverse((meta.updated_at_ms, meta.id)));
        let start = match &query.cursor {
            None => 0,
            Some(cursor) => match metas.iter().position(|meta| meta.id.to_string() == *cursor) {
                Some(position) => position + 1,
                None => return Err(StoreError::Failed(format!("`{cursor}` is no place in a list of sessions"))),
            },
        };
        let mut rest = metas.split_off(start);
        let more = rest.len() > query.limit.max(1);
        rest.truncate(query.limit.max(1));
        let next = rest.last().filter(|_| more).map(|meta| meta.id.to_string());
        Ok(ThreadPage { threads: rest, next })
    }

    async fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        self.enter(StoreOperation::Delete).await?;
        let mut threads = lock(&self.threads);
        let mut doomed = vec![id];
        while let Some(id) = doomed.pop() {
            threads.remove(&id);
            let children = threads.values().filter(|thread| thread.meta.parent_thread_id == Some(id));
            doomed.extend(children.map(|thread| thread.meta.id));
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
