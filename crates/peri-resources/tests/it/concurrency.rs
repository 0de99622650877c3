//! Many processes and connections on one file at once: all of them finish.

use std::process::Child;
use std::time::Duration;

use futures::executor::block_on;
use peri_acp_types::SessionEpoch;
use peri_acp_types::StoreError;
use peri_acp_types::ports::{ThreadQuery, ThreadStore};
use peri_resources::{SqliteConfig, SqliteStore};

use crate::fixture::{self, Role, TURNS};
use crate::sample::{self, MESSAGES_PER_TURN};

const PROCESSES: u64 = 8;

#[test]
fn eight_processes_that_make_and_fill_one_store_all_finish() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/peri.db");
    let start = |number| Role::AddSession(number).command(&fixture::binary(), &path).spawn().unwrap();
    let children: Vec<Child> = (1..=PROCESSES).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && fixture::said(&said) == ["done"], "{said}");
    }
    let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
    let query = ThreadQuery { limit: 100, ..ThreadQuery::default() };
    assert_eq!(block_on(store.list(&query)).unwrap().threads.len(), usize::try_from(PROCESSES).unwrap());
    for number in 1..=PROCESSES {
        let thread = block_on(store.load(sample::session(number))).unwrap();
        let expected: Vec<_> = (0..TURNS * MESSAGES_PER_TURN).map(sample::message).collect();
        assert_eq!(thread.messages, expected);
        assert_eq!(thread.turns.len(), usize::try_from(TURNS).unwrap());
    }
    assert!(block_on(store.report()).unwrap().notices.is_empty());
}

#[test]
fn of_eight_processes_one_gets_the_epoch() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
    block_on(store.create(&sample::meta(1))).unwrap();
    let children: Vec<Child> =
        (0..PROCESSES).map(|_| Role::TakeEpoch.command(&fixture::binary(), &path).spawn().unwrap()).collect();
    let outputs: Vec<String> = children
        .into_iter()
        .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    let said: Vec<&str> = outputs.iter().flat_map(|output| fixture::said(output)).collect();
    let won = said.iter().filter(|line| line.starts_with("Ok")).count();
    let fenced = said.iter().filter(|line| line.contains("Fenced")).count();
    assert_eq!((won, fenced), (1, 7), "{said:?}");
}

#[test]
fn a_writer_that_never_ends_gives_a_clear_error_and_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let store =
        SqliteStore::open(SqliteConfig { busy_limit: Duration::from_millis(50), ..SqliteConfig::at(&path) }).unwrap();
    block_on(store.create(&sample::meta(1))).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let [changes, ..] = sample::commits_of_turn(0);
    // Readers are not held up.
    block_on(store.load(sample::session(1))).unwrap();
    let error = block_on(store.take_epoch(sample::session(1), SessionEpoch::UNOPENED)).unwrap_err();
    let StoreError::Failed(words) = &error else { panic!("{error:?}") };
    assert!(words.contains("peri.db") && words.contains("Another process"), "{words}");
    other.execute_batch("ROLLBACK").unwrap();
    let epoch = block_on(store.take_epoch(sample::session(1), SessionEpoch::UNOPENED)).unwrap();
    block_on(store.commit(sample::session(1), epoch, &changes, 1)).unwrap();
}

#[test]
fn closing_moves_the_log_into_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
    block_on(sample::add_session(&store, 1, 1)).unwrap();
    assert!(directory.path().join("peri.db-wal").exists());
    block_on(store.close());
    assert!(!directory.path().join("peri.db-wal").exists());
    let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
    assert_eq!(block_on(store.load(sample::session(1))).unwrap().messages.len(), 4);
}
