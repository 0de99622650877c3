//! Other processes for the tests: this binary again, told by its environment to be one of them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures::executor::block_on;
use peri_acp_types::ports::ThreadStore;
use peri_acp_types::{SessionEpoch, StoreError, StoredTurnEnd, Thread, ThreadChange};
use peri_resources::{SqliteConfig, SqliteStore};

use crate::sample;

/// What to be, and on which file: `<role> <number> <path>`.
const VARIABLE: &str = "PERI_STORE_FIXTURE";

/// What another process can be told to do.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Commits turns to session 1 until it is killed, and says so after each commit.
    CommitForEver,
    /// Adds the session of this number, with some turns, and ends.
    AddSession(u64),
    /// Takes the epoch of session 1, says whether it got it, and ends.
    TakeEpoch,
    /// Opens the store, says what came of it, and ends.
    Open,
}

/// Turns of a session that [`Role::AddSession`] adds.
pub const TURNS: u64 = 5;

impl Role {
    /// A command that runs the role; its lines come on standard output.
    pub fn command(self, binary: &Path, store: &Path) -> Command {
        let (word, number) = match self {
            Role::CommitForEver => ("commit-for-ever", 1),
            Role::AddSession(number) => ("add-session", number),
            Role::TakeEpoch => ("take-epoch", 1),
            Role::Open => ("open", 0),
        };
        let mut command = Command::new(binary);
        command
            .args(["--exact", "fixture::is_another_process_when_told_so", "--nocapture"])
            .env(VARIABLE, format!("{word} {number} {}", store.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }
}

/// This binary.
pub fn binary() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// The lines of an output that a fixture meant, without those of the test harness.
pub fn said(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("fixture: ")).collect()
}

#[test]
fn is_another_process_when_told_so() {
    let Ok(order) = std::env::var(VARIABLE) else { return };
    let [word, number, path] = order.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let number = number.parse().unwrap();
    let store = SqliteStore::open(SqliteConfig::at(path)).unwrap();
    match word {
        "commit-for-ever" => block_on(commit_for_ever(&store)).unwrap(),
        "add-session" => {
            block_on(sample::add_session(&store, number, TURNS)).unwrap();
            say("done");
        }
        "take-epoch" => {
            say(&format!("{:?}", block_on(store.take_epoch(sample::session(1), SessionEpoch::UNOPENED))));
        }
        "open" => say(&match block_on(store.report()) {
            Ok(report) => format!("{report:?}"),
            Err(error) => error.to_string(),
        }),
        other => panic!("no such role: {other}"),
    }
}

/// On a line of its own: the harness leaves one open.
fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    write!(out, "\nfixture: {words}\n").unwrap();
    out.flush().unwrap();
}

async fn commit_for_ever(store: &SqliteStore) -> Result<(), StoreError> {
    let id = sample::session(1);
    match store.create(&sample::meta(1)).await {
        Ok(()) | Err(StoreError::Exists(_)) => {}
        Err(error) => return Err(error),
    }
    let mut thread: Thread = store.load(id).await?;
    let epoch = store.take_epoch(id, thread.epoch).await?;
    if let Some(turn_id) = thread.open_turn {
        let changes = [ThreadChange::TurnEnded { turn_id, end: StoredTurnEnd::Interrupted("killed".to_owned()) }];
        store.commit(id, epoch, &changes, 1).await?;
        thread.apply_all(&changes)?;
    }
    loop {
        for changes in sample::commits_of_turn(u64::try_from(thread.turns.len()).unwrap_or(u64::MAX)) {
            store.commit(id, epoch, &changes, 1).await?;
            thread.apply_all(&changes)?;
            say(&format!("{} {}", thread.messages.len(), thread.turns.len()));
        }
    }
}
