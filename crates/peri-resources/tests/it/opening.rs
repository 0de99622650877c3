//! Opening: what is made, with which rights, and what is refused and left alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use futures::executor::block_on;
use peri_acp_types::StoreError;
use peri_acp_types::ports::{ThreadQuery, ThreadStore};
use peri_resources::{JournalMode, SqliteConfig, SqliteStore};

use crate::fixture::{self, Role};
use crate::sample;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteConfig::at(path)).unwrap()
}

/// Opens what must not be opened, and gives the words of the refusal.
fn refusal(path: &Path) -> String {
    let store = open(path);
    let first = block_on(store.report()).unwrap_err();
    // It stays so: an operation is refused in the same words.
    let second = block_on(store.list(&ThreadQuery { limit: 1, ..ThreadQuery::default() })).unwrap_err();
    assert_eq!(first, second);
    let StoreError::Failed(words) = first else { panic!("{first:?}") };
    assert!(words.contains(path.file_name().unwrap().to_str().unwrap()), "the file is not named: {words}");
    words
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_missing_directory_is_made_and_everything_is_for_the_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data/peri/peri.db");
    let store = open(&path);
    let report = block_on(store.report()).unwrap();
    assert!(report.created && report.notices.is_empty() && report.journal == JournalMode::Wal, "{report:?}");
    assert_eq!(report.path, fs::canonicalize(&path).unwrap());
    block_on(sample::add_session(&store, 1, 1)).unwrap();
    for made in ["data", "data/peri"] {
        assert_eq!(mode(&directory.path().join(made)), 0o700, "{made}");
    }
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = entry.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let again = block_on(open(&path).report()).unwrap();
    assert!(!again.created && again.notices.is_empty(), "{again:?}");
}

#[test]
fn an_empty_file_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    fs::File::create(&path).unwrap();
    let report = block_on(open(&path).report()).unwrap();
    assert!(report.created && report.notices.is_empty(), "{report:?}");
}

#[test]
fn what_is_no_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(refusal(&folder).contains("directory"));
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(refusal(&pipe).contains("not a regular file"));
    let dangling = directory.path().join("dangling");
    symlink("nowhere", &dangling).unwrap();
    assert!(refusal(&dangling).contains("link"));
    let under_a_file = directory.path().join("plain/peri.db");
    fs::File::create(directory.path().join("plain")).unwrap();
    assert!(refusal(&under_a_file).contains("directory cannot be made"));
}

#[test]
fn a_link_to_a_store_is_that_store() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("peri.db"), directory.path().join("link.db"));
    symlink(&path, &link).unwrap();
    let store = open(&path);
    block_on(store.create(&sample::meta(1))).unwrap();
    let linked = open(&link);
    block_on(linked.load(sample::session(1))).unwrap();
    assert_eq!(block_on(linked.report()).unwrap().path, fs::canonicalize(&path).unwrap());
}

#[test]
fn a_store_of_a_newer_version_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    block_on(open(&path).close());
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let words = unchanged(&path, || refusal(&path));
    assert!(words.contains("newer version") && words.contains("99"), "{words}");
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    for (name, sql) in [
        ("tables.db", "CREATE TABLE threads (id TEXT)"),
        ("application.db", "PRAGMA application_id = 7"),
        ("version.db", "PRAGMA user_version = 1"),
    ] {
        let path = directory.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let words = unchanged(&path, || refusal(&path));
        assert!(words.contains("another program"), "{words}");
    }
}

/// Runs it and sees that the file's bytes stay.
fn unchanged<T>(path: &Path, run: impl FnOnce() -> T) -> T {
    let bytes =
        |path: &Path| std::io::Read::bytes(fs::File::open(path).unwrap()).collect::<Result<Vec<u8>, _>>().unwrap();
    let before = bytes(path);
    let outcome = run();
    assert!(bytes(path) == before, "the file was changed");
    outcome
}

/// SQLite opens no link in the place of the log's index: this is what a file system without shared memory looks like.
fn forbid_the_log(path: &Path) {
    symlink("nowhere", path.with_file_name("peri.db-shm")).unwrap();
}

#[test]
fn where_the_log_cannot_be_a_rollback_journal_serves() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    forbid_the_log(&path);
    for created in [true, false] {
        let store = open(&path);
        let report = block_on(store.report()).unwrap();
        assert_eq!((report.journal, report.created), (JournalMode::Rollback, created), "{report:?}");
        let number = if created { 1 } else { 2 };
        block_on(sample::add_session(&store, number, 2)).unwrap();
        block_on(store.load(sample::session(1))).unwrap();
        // Nobody is locked out.
        block_on(open(&path).load(sample::session(number))).unwrap();
        block_on(store.close());
    }
}

#[test]
fn a_store_with_a_log_can_move_to_where_none_can_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let store = open(&path);
    block_on(sample::add_session(&store, 1, 2)).unwrap();
    block_on(store.close());
    forbid_the_log(&path);
    let store = open(&path);
    let report = block_on(store.report()).unwrap();
    assert_eq!((report.journal, report.created), (JournalMode::Rollback, false), "{report:?}");
    assert_eq!(block_on(store.load(sample::session(1))).unwrap().messages.len(), 8);
    block_on(store.close());
    // And back.
    fs::remove_file(directory.path().join("peri.db-shm")).unwrap();
    assert_eq!(block_on(open(&path).report()).unwrap().journal, JournalMode::Wal);
}

#[test]
fn a_directory_that_cannot_be_written_gives_a_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let filled = directory.path().join("filled");
    fs::create_dir(&filled).unwrap();
    block_on(async {
        let store = open(&filled.join("peri.db"));
        sample::add_session(&store, 1, 1).await.unwrap();
        store.close().await;
    });
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    // Readable, so that nothing but the missing right to write stands in the way.
    fs::set_permissions(filled.join("peri.db"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = directory.path().join("fixture");
    // By another process: a child that another test starts meanwhile would inherit the open copy, which could not run then.
    assert!(Command::new("cp").arg(fixture::binary()).arg(&binary).status().unwrap().success());
    for folder in [empty, filled] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
        let mut command = Role::Open.command(&binary, &folder.join("peri.db"));
        command.current_dir("/");
        // Rights do not bind root.
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let said = fixture::said(&output);
        assert!(said.len() == 1 && said[0].contains("peri.db") && said[0].contains("must be writable"), "{output}");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_store_that_is_taken_away_under_us_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let store = open(&path);
    let epoch = block_on(sample::add_session(&store, 1, 1)).unwrap();
    for ending in ["", "-wal", "-shm"] {
        let file = |name: &str| directory.path().join(format!("{name}{ending}"));
        fs::rename(file("peri.db"), file("moved.db")).unwrap();
    }
    // Not written to a file that nobody will look at again.
    let [changes, ..] = sample::commits_of_turn(1);
    let error = block_on(store.commit(sample::session(1), epoch, &changes, 2)).unwrap_err();
    assert_eq!(error, StoreError::NotFound(sample::session(1)));
    let report = block_on(store.report()).unwrap();
    assert!(report.created && report.notices.iter().any(|notice| notice.contains("moved or removed")), "{report:?}");
    let thread = block_on(open(&directory.path().join("moved.db")).load(sample::session(1))).unwrap();
    assert_eq!(thread.messages.len(), 4);
}

#[test]
fn nothing_is_deleted_by_age() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let ancient = peri_acp_types::ThreadMeta { created_at_ms: 1, updated_at_ms: 1, ..sample::meta(1) };
    block_on(open(&path).create(&ancient)).unwrap();
    for number in 2..12 {
        // Each opening and each new session would be an occasion to tidy up.
        let store = open(&path);
        block_on(sample::add_session(&store, number, 1)).unwrap();
        block_on(store.close());
    }
    let store = open(&path);
    assert_eq!(block_on(store.load(ancient.id)).unwrap().meta, ancient);
    let listed = block_on(store.list(&ThreadQuery { limit: 100, ..ThreadQuery::default() })).unwrap();
    assert_eq!(listed.threads.len(), 11);
}
