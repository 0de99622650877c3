//! A store that keeps threads for as long as it lives: for `--no-session-persistence`, for wasm and for tests.
//!
//! Invariant: it gives the answers that every other store gives; the conformance suite compares them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use peri_acp_types::ports::{ThreadPage, ThreadQuery, ThreadStore};
use peri_acp_types::{FrozenBlob, SessionEpoch, SessionId, StoreError, Thread, ThreadChange, ThreadMeta};

use crate::cursor::{Cursor, page_of, page_size};

/// Keeps threads in memory. Empty at the start.
#[derive(Default)]
pub struct MemoryStore {
    /// Held for one operation, never over an await.
    threads: Mutex<BTreeMap<SessionId, Thread>>,
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
        let mut threads = self.threads();
        if threads.contains_key(&meta.id) {
            return Err(StoreError::Exists(meta.id));
        }
        if let Some(parent) = meta.parent_thread_id.filter(|parent| !threads.contains_key(parent)) {
            return Err(StoreError::NotFound(parent));
        }
        threads.insert(meta.id, Thread::new(meta.clone()));
        Ok(())
    }

    async fn load(&self, id: SessionId) -> Result<Thread, StoreError> {
        self.threads().get(&id).cloned().ok_or(StoreError::NotFound(id))
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
