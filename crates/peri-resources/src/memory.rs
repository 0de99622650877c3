//! A store that keeps threads for as long as it lives: for `--no-session-persistence`, for wasm and for tests.
//!
//! Invariant: it gives the answers that every other store gives; the conformance suite compares them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peri_acp_types::ports::{MessagePage, SessionHold, ThreadHead, ThreadPage, ThreadQuery, ThreadStore};
use peri_acp_types::{FrozenBlob, SessionEpoch, SessionId, StoreError, Thread, ThreadChange, ThreadMeta};

use crate::cursor::{Cursor, page_of, page_size};

/// Keeps threads in memory. Empty at the start.
#[derive(Default)]
pub struct MemoryStore {
    /// Held for one operation, never over an await.
    threads: Mutex<BTreeMap<SessionId, Thread>>,
    /// Sessions that somebody holds. Shared with the holds, which may outlive the store.
    held: Arc<Mutex<BTreeSet<SessionId>>>,
}

/// Gives the session up when it is dropped.
struct Claim {
    id: SessionId,
    held: Arc<Mutex<BTreeSet<SessionId>>>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<SessionId, Thread>> {
        // Each operation changes a thread in one step that cannot panic half way, so a poisoned lock guards sound data.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view<T>(&self, id: SessionId, view: impl FnOnce(&Thread) -> T) -> Result<T, StoreError> {
        self.threads().get(&id).map(view).ok_or(StoreError::NotFound(id))
    }

    /// Lets the owner of that epoch change the thread.
    fn change<T>(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        change: impl FnOnce(&mut Thread) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut threads = self.threads();
        let thread = threads.get_mut(&id).ok_or(StoreError::NotFound(id))?;
        if thread.epoch != epoch {
            return Err(StoreError::Fenced { ours: epoch, current: thread.epoch });
        }
        change(thread)
    }
}

#[async_trait::async_trait]
impl ThreadStore for MemoryStore {
    async fn create(&self, meta: &ThreadMeta) -> Result<(), StoreError> {
        add(&mut self.threads(), Thread::new(meta.clone()))
    }

    async fn load(&self, id: SessionId) -> Result<Thread, StoreError> {
        self.view(id, Thread::seen_part)
    }

    async fn head(&self, id: SessionId) -> Result<ThreadHead, StoreError> {
        self.view(id, Thread::head)
    }

    async fn page(&self, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, StoreError> {
        self.view(id, |thread| thread.page(from, limit))
    }

    async fn fork(&self, source: SessionId, meta: &ThreadMeta) -> Result<(), StoreError> {
        let copy = self.view(source, |thread| thread.forked(meta))?;
        add(&mut self.threads(), copy)
    }

    async fn hold(&self, id: SessionId) -> Result<SessionHold, StoreError> {
        match self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
            true => Ok(SessionHold::new(Claim { id, held: self.held.clone() })),
            false => Err(StoreError::Held { id, holder: "this process".to_owned() }),
        }
    }

    async fn take_epoch(&self, id: SessionId, expected: SessionEpoch) -> Result<SessionEpoch, StoreError> {
        self.change(id, expected, |thread| {
            thread.epoch = expected.next();
            Ok(thread.epoch)
        })
    }

    async fn freeze(&self, id: SessionId, epoch: SessionEpoch, blob: &FrozenBlob) -> Result<(), StoreError> {
        self.change(id, epoch, |thread| match thread.frozen {
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
        self.change(id, epoch, |thread| {
            thread.apply_all(changes)?;
            thread.meta.updated_at_ms = now_ms;
            Ok(())
        })
    }

    async fn put_close_intent(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.change(id, epoch, |thread| {
            thread.close_intent = Some(epoch);
            Ok(())
        })
    }

    async fn settle_close(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.change(id, epoch, |thread| {
            thread.close_intent = None;
            Ok(())
        })
    }

    async fn list(&self, query: &ThreadQuery) -> Result<ThreadPage, StoreError> {
        let after = Cursor::of_query(query)?;
        let key = |meta: &ThreadMeta| (Reverse(meta.updated_at_ms), Reverse(meta.id));
        let mut metas: Vec<ThreadMeta> = self
            .threads()
            .values()
            .map(|thread| &thread.meta)
            .filter(|meta| meta.parent_thread_id.is_none())
            .filter(|meta| query.cwd.as_ref().is_none_or(|cwd| *cwd == meta.cwd))
            .filter(|meta| after.is_none_or(|after| key(meta) > (Reverse(after.updated_at_ms), Reverse(after.id))))
            .cloned()
            .collect();
        metas.sort_by_key(key);
        Ok(page_of(metas, page_size(query)))
    }

    async fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        let mut threads = self.threads();
        let mut doomed = vec![id];
        while let Some(id) = doomed.pop() {
            threads.remove(&id);
            let children = threads.values().filter(|thread| thread.meta.parent_thread_id == Some(id));
            doomed.extend(children.map(|thread| thread.meta.id));
        }
        Ok(())
    }
}

fn add(threads: &mut BTreeMap<SessionId, Thread>, thread: Thread) -> Result<(), StoreError> {
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
