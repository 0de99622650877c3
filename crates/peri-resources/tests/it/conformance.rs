//! The port's contract, on every store that this crate has.

use std::sync::Arc;

use futures::executor::block_on;
use peri_acp_types::ports::{MessagePage, ThreadHead, ThreadPage, ThreadQuery, ThreadStore};
use peri_acp_types::{FrozenBlob, SessionEpoch, SessionId, StoreError, Thread, ThreadChange, ThreadMeta};
use peri_resources::{MemoryStore, SqliteConfig, SqliteStore};
use peri_testkit::store_conformance::{self, StoreHandles};

#[test]
fn memory_store_keeps_the_contract() {
    block_on(store_conformance::run(async || {
        let store = Arc::new(MemoryStore::new());
        StoreHandles { first: store.clone(), second: store }
    }));
}

#[test]
fn sqlite_store_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let next = std::cell::Cell::new(0);
    block_on(store_conformance::run(async || {
        let path = directory.path().join(format!("{}.db", next.replace(next.get() + 1)));
        // Two connections, as two processes have them.
        let open = || Arc::new(SqliteStore::open(SqliteConfig::at(&path)).unwrap());
        StoreHandles { first: open(), second: open() }
    }));
}

/// A suite that finds nothing is worth nothing: each fault must be found.
#[test]
fn faulty_stores_are_found_out() {
    for fault in [Fault::NoFencing, Fault::HalfCommits, Fault::ForgetsParents, Fault::RefreezesContext] {
        let suite = std::panic::AssertUnwindSafe(|| {
            block_on(store_conformance::run(async || {
                let store = Arc::new(Faulty { store: MemoryStore::new(), fault });
                StoreHandles { first: store.clone(), second: store }
            }));
        });
        assert!(std::panic::catch_unwind(suite).is_err(), "{fault:?} was not found");
    }
}

/// A store with one fault.
struct Faulty {
    store: MemoryStore,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    NoFencing,
    HalfCommits,
    ForgetsParents,
    RefreezesContext,
}

#[async_trait::async_trait]
impl ThreadStore for Faulty {
    async fn create(&self, meta: &ThreadMeta) -> Result<(), StoreError> {
        let mut meta = meta.clone();
        if self.fault == Fault::ForgetsParents {
            meta.parent_thread_id = None;
        }
        self.store.create(&meta).await
    }

    async fn load(&self, id: SessionId) -> Result<Thread, StoreError> {
        self.store.load(id).await
    }

    async fn head(&self, id: SessionId) -> Result<ThreadHead, StoreError> {
        self.store.head(id).await
    }

    async fn page(&self, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, StoreError> {
        self.store.page(id, from, limit).await
    }

    async fn fork(&self, source: SessionId, meta: &ThreadMeta) -> Result<(), StoreError> {
        self.store.fork(source, meta).await
    }

    async fn take_epoch(&self, id: SessionId, expected: SessionEpoch) -> Result<SessionEpoch, StoreError> {
        self.store.take_epoch(id, expected).await
    }

    async fn freeze(&self, id: SessionId, epoch: SessionEpoch, blob: &FrozenBlob) -> Result<(), StoreError> {
        match self.store.freeze(id, epoch, blob).await {
            Err(StoreError::Exists(_)) if self.fault == Fault::RefreezesContext => Ok(()),
            answer => answer,
        }
    }

    async fn commit(
        &self,
        id: SessionId,
        epoch: SessionEpoch,
        changes: &[ThreadChange],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let epoch = match self.fault {
            Fault::NoFencing => self.store.load(id).await?.epoch,
            _ => epoch,
        };
        if self.fault == Fault::HalfCommits {
            for change in changes {
                self.store.commit(id, epoch, std::slice::from_ref(change), now_ms).await?;
            }
            return Ok(());
        }
        self.store.commit(id, epoch, changes, now_ms).await
    }

    async fn put_close_intent(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.store.put_close_intent(id, epoch).await
    }

    async fn settle_close(&self, id: SessionId, epoch: SessionEpoch) -> Result<(), StoreError> {
        self.store.settle_close(id, epoch).await
    }

    async fn list(&self, query: &ThreadQuery) -> Result<ThreadPage, StoreError> {
        self.store.list(query).await
    }

    async fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        self.store.delete(id).await
    }
}
