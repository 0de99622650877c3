//! `kill -9` at any moment of a writing process: what it was told is stored is there, and nothing is half there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use futures::executor::block_on;
use peri_acp_types::ports::ThreadStore;
use peri_acp_types::{MessageBody, Thread};
use peri_resources::{SqliteConfig, SqliteStore};

use crate::fixture::{self, Role};
use crate::sample::{self, MESSAGES_PER_TURN};

const ROUNDS: u32 = 20;
/// Another seed gives other moments.
const SEED: u64 = 0x5eed;

#[test]
fn acknowledged_commits_survive_and_none_is_half_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let mut random = SplitMix(SEED);
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(&path, &mut random);
        // Opened by a process that found the log of the dead one.
        let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
        let report = block_on(store.report()).unwrap();
        assert!(report.notices.is_empty(), "round {round} (seed {SEED:#x}): {report:?}");
        match block_on(store.load(sample::session(1))) {
            Ok(thread) => check(round, &thread, acknowledged),
            Err(error) => assert_eq!(acknowledged, (0, 0), "round {round} (seed {SEED:#x}): {error}"),
        }
        // Half of the rounds leave the log for the next process to find.
        if random.below(2) == 0 {
            block_on(store.close());
        }
    }
}

/// Messages and turns of the last acknowledgement.
fn run_and_kill(path: &Path, random: &mut SplitMix) -> (usize, usize) {
    let mut child = Role::CommitForEver.command(&fixture::binary(), path).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut output = String::new();
    let enough = random.below(12);
    while u64::try_from(fixture::said(&output).len()).unwrap() < enough {
        let line = lines.next().expect("the process ended by itself").unwrap();
        output.push_str(&line);
        output.push('\n');
    }
    // Somewhere in the commits that follow.
    std::thread::sleep(Duration::from_micros(random.below(4000)));
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines {
        output.push_str(&line.unwrap());
        output.push('\n');
    }
    // The last line may be cut in two by the kill; it was an acknowledgement that nobody could read.
    let numbers = fixture::said(&output).into_iter().filter_map(|line| {
        let (messages, turns) = line.split_once(' ')?;
        Some((messages.parse().ok()?, turns.parse().ok()?))
    });
    numbers.max().unwrap_or((0, 0))
}

fn check(round: u32, thread: &Thread, (messages, turns): (usize, usize)) {
    let found = (thread.messages.len(), thread.turns.len());
    assert!(
        found >= (messages, turns),
        "round {round} (seed {SEED:#x}): acknowledged {messages}, {turns}; found {found:?}"
    );
    for (place, message) in thread.messages.iter().enumerate() {
        let number = u64::try_from(message.id.0.as_u128()).unwrap();
        assert_eq!(message, &sample::message(number), "round {round}");
        if matches!(message.body, MessageBody::Assistant(_)) {
            let results = thread.messages.get(place + 1).map(|message| message.id.0.as_u128());
            assert_eq!(results, Some(u128::from(number + 1)), "round {round}: a step without its results");
        }
    }
    // A turn is open from its input to its end, and each turn has had its input.
    let inputs = thread.messages.iter().filter(|message| matches!(message.body, MessageBody::User(_))).count();
    assert_eq!(inputs, thread.turns.len() + usize::from(thread.open_turn.is_some()), "round {round}");
    let last_is_end = thread.messages.last().is_some_and(|message| matches!(message.body, MessageBody::Notice(_)));
    assert!(!(last_is_end && thread.open_turn.is_some()), "round {round}: a turn's last commit is half there");
    assert!(thread.messages.len() <= inputs * usize::try_from(MESSAGES_PER_TURN).unwrap(), "round {round}");
}

/// A small generator, so that a failing run can be repeated.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
