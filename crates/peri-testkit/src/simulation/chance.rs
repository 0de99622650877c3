//! Chance that can be replayed. Clones draw from one sequence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone)]
pub struct Chance(Arc<AtomicU64>);

impl Chance {
    pub fn of_seed(seed: u64) -> Chance {
        Chance(Arc::new(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5045_5249)))
    }

    /// SplitMix64.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is at least 1.
    pub fn below(&self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).expect("below a usize")
    }

    /// True in so many of a hundred cases.
    pub fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn one_of<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { all.get(self.below(all.len())) }
    }

    /// The place of one of these weights, each as likely as it is heavy.
    pub fn weighted(&self, weights: &[usize]) -> usize {
        let mut drawn = self.below(weights.iter().sum());
        for (place, weight) in weights.iter().enumerate() {
            if drawn < *weight {
                return place;
            }
            drawn -= weight;
        }
        0
    }
}
