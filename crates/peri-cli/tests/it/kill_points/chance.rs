//! Chance that can be had again: the seed and the number of kill points, and what is drawn from them.
//!
//! Invariant: the same seed draws the same values. When a process really dies within them is still for the machine to say.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const ROUNDS_VARIABLE: &str = "PERI_KILL_ROUNDS";
const SEED_VARIABLE: &str = "PERI_KILL_SEED";
/// What each change of the code is tried with; `PERI_KILL_ROUNDS=200` before a release.
const USUAL_ROUNDS: usize = 30;

/// How many kill points, and from which seed.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    pub rounds: usize,
    pub seed: u64,
}

impl Campaign {
    /// As the variables say; otherwise the usual number, and a seed of its own for each run of the test.
    pub fn from_environment() -> Campaign {
        let rounds = variable(ROUNDS_VARIABLE).map_or(USUAL_ROUNDS, |rounds| usize::try_from(rounds).expect("rounds"));
        let seed = variable(SEED_VARIABLE).unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Campaign { rounds, seed }
    }
}

/// The way to run it again.
impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ROUNDS_VARIABLE}={} {SEED_VARIABLE}={} cargo xtask test kill_points", self.rounds, self.seed)
    }
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: a whole number is wanted")))
}

/// Draws values: splitmix64.
pub struct Dice(u64);

impl Dice {
    pub fn seeded(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A time below the limit, in microseconds, each as likely as any other.
    pub fn time_below(&mut self, limit: Duration) -> Duration {
        let micros = u64::try_from(limit.as_micros()).expect("a test is shorter than that");
        Duration::from_micros(self.next() % micros.max(1))
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("it is below a usize")
    }

    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
