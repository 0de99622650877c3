//! The port's contract, on every store that this crate has.

use std::sync::Arc;

use futures::executor::block_on;
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
