//! Damage: whatever happened to the file, its bytes are kept, what reads is copied, and it is said.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use peri_acp_types::ports::{ThreadQuery, ThreadStore};
use peri_acp_types::{StoreError, Thread};
use peri_resources::{SqliteConfig, SqliteStore};

use crate::sample;

const PAGE: u64 = 4096;
const SESSIONS: u64 = 3;

/// A closed store with some sessions, and what they hold.
fn filled(path: &Path) -> Vec<Thread> {
    let store = open(path);
    block_on(async {
        let mut threads = Vec::new();
        for number in 1..=SESSIONS {
            sample::add_session(&store, number, 6).await.unwrap();
            threads.push(store.load(sample::session(number)).await.unwrap());
        }
        store.close().await;
        threads
    })
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteConfig::at(path)).unwrap()
}

fn bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The damaged files beside the store, without their companions.
fn set_aside(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let is_aside = |path: &PathBuf| {
        let stamp = path.file_name().unwrap().to_str().unwrap().strip_prefix(&format!("{name}.damaged-"));
        stamp.is_some_and(|stamp| stamp.bytes().all(|byte| byte.is_ascii_digit()))
    };
    fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).filter(is_aside).collect()
}

/// Opens a store that is damaged in a way that shows at once, and sees that it is moved, kept and told.
fn check_found_at_open(damage: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    filled(&path);
    damage(&path);
    let damaged = bytes(&path);
    let store = open(&path);
    let report = block_on(store.report()).unwrap();
    let aside = set_aside(&path);
    assert_eq!(aside.len(), 1, "{report:?}");
    assert!(bytes(&aside[0]) == damaged, "the damaged file was changed");
    let [notice] = &report.notices[..] else { panic!("{report:?}") };
    assert!(notice.contains("damaged") && notice.contains(aside[0].to_str().unwrap()), "{notice}");
    // And the new store works.
    block_on(store.delete(sample::session(1))).unwrap();
    block_on(sample::add_session(&store, 1, 1)).unwrap();
    // It is told once: the next process finds a sound store.
    assert!(block_on(open(&path).report()).unwrap().notices.is_empty());
}

#[test]
fn a_garbage_first_page_is_moved_aside() {
    check_found_at_open(|path| write(path, &garbage(1), 0));
}

#[test]
fn a_file_that_is_no_database_is_moved_aside() {
    check_found_at_open(|path| {
        fs::remove_file(path).unwrap();
        File::create(path).unwrap().write_all_at(b"These are my notes, not a database.\n", 0).unwrap();
    });
}

#[test]
fn a_truncated_file_is_moved_aside() {
    for length in [1, 100, PAGE - 1, PAGE, 3 * PAGE, 5 * PAGE + 7] {
        check_found_at_open(|path| OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap());
    }
}

#[test]
fn a_log_whose_database_lost_its_content_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let store = open(&path);
    block_on(sample::add_session(&store, 1, 1)).unwrap();
    // As after a crash: the log holds everything, and the database was cut to nothing.
    let copy = directory.path().join("crashed.db");
    fs::copy(directory.path().join("peri.db-wal"), directory.path().join("crashed.db-wal")).unwrap();
    File::create(&copy).unwrap();
    let log = bytes(&directory.path().join("crashed.db-wal"));
    let report = block_on(open(&copy).report()).unwrap();
    let aside = set_aside(&copy);
    assert_eq!(aside.len(), 1, "{report:?}");
    assert!(bytes(Path::new(&format!("{}-wal", aside[0].display()))) == log, "the log was changed");
    assert!(report.notices.len() == 1 && report.notices[0].contains(aside[0].to_str().unwrap()), "{report:?}");
}

/// Each page in turn becomes garbage. Whatever can still be read is there and right; the rest is an error, never a gap.
#[test]
fn a_garbage_page_anywhere_costs_no_more_than_it_held() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let threads = filled(&path);
    let sound = bytes(&path);
    let pages = u64::try_from(sound.len()).unwrap() / PAGE;
    assert!(pages > 20, "the store is too small to be interesting: {pages} pages");
    let mut untouched = 0;
    for page in 1..pages {
        let path = directory.path().join(format!("{page}/peri.db"));
        fs::create_dir(path.parent().unwrap()).unwrap();
        File::create(&path).unwrap().write_all_at(&sound, 0).unwrap();
        write(&path, &garbage(page), page * PAGE);
        untouched += check_garbage_page(&path, page, &threads);
    }
    assert!(untouched > pages, "hardly anything was left readable: {untouched} sessions over {pages} damaged stores");
}

/// How many sessions were read well.
fn check_garbage_page(path: &Path, page: u64, threads: &[Thread]) -> u64 {
    let damaged = bytes(path);
    let store = open(path);
    let mut read = 0;
    let mut failures = Vec::new();
    for thread in threads {
        // The first may meet the damage and fail; what it leaves is a sound store.
        let answers = [(); 2].map(|()| block_on(store.load(thread.meta.id)));
        match &answers[1] {
            Ok(found) => {
                assert_eq!(found, thread, "page {page}");
                read += 1;
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    let query = ThreadQuery { limit: 9, ..ThreadQuery::default() };
    let listed = block_on(store.list(&query)).or_else(|_| block_on(store.list(&query))).unwrap();
    let report = block_on(store.report()).unwrap();
    let aside = set_aside(path);
    assert!(aside.len() <= 1, "page {page}: {aside:?}");
    if let Some(aside) = aside.first() {
        assert!(bytes(aside) == damaged, "page {page}: the damaged file was changed");
        assert!(
            report.notices.iter().any(|notice| notice.contains(aside.to_str().unwrap())),
            "page {page}: {report:?}"
        );
    }
    // What is not there any more was told of; what is listed is there.
    let is_told =
        !failures.is_empty() && (aside.len() == 1 || failures.iter().all(|words| words.contains("unreadable")));
    assert!(failures.is_empty() || is_told, "page {page}: {failures:?}, {report:?}");
    for meta in &listed.threads {
        assert!(threads.iter().any(|thread| thread.meta == *meta), "page {page}: {meta:?}");
    }
    read
}

/// A process that has the file open goes on with the new one.
#[test]
fn two_stores_on_a_damaged_file_meet_again_on_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    filled(&path);
    let (first, second) = (open(&path), open(&path));
    for store in [&first, &second] {
        assert!(block_on(store.report()).unwrap().notices.is_empty());
    }
    let pages = u64::try_from(bytes(&path).len()).unwrap() / PAGE;
    for page in 1..pages {
        write(&path, &garbage(page), page * PAGE);
    }
    let query = ThreadQuery { limit: 9, ..ThreadQuery::default() };
    let error = block_on(first.list(&query)).unwrap_err();
    assert!(matches!(&error, StoreError::Failed(words) if words.contains("damaged")), "{error:?}");
    block_on(first.list(&query)).unwrap();
    block_on(second.create(&sample::meta(9))).unwrap();
    block_on(first.load(sample::session(9))).unwrap();
    assert_eq!(set_aside(&path).len(), 1);
}

fn write(path: &Path, bytes: &[u8], offset: u64) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

/// Bytes of no meaning, the same for the same number.
fn garbage(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..PAGE).map(|_| next()).collect()
}
