//! How alike two short texts are, to suggest what was probably meant.

use std::collections::HashMap;

/// Characters looked at; the rest of a long line says little more.
const LOOKED_AT: usize = 200;

/// From 0 (no pair of neighbouring characters in common) to 1 (the same pairs). Ignores case.
pub(crate) fn likeness(left: &str, right: &str) -> f32 {
    let (left, right) = (pairs(left), pairs(right));
    let total: usize = left.values().sum::<usize>() + right.values().sum::<usize>();
    if total == 0 {
        return 0.0;
    }
    let shared: usize = left.iter().map(|(pair, count)| *count.min(right.get(pair).unwrap_or(&0))).sum();
    2.0 * shared as f32 / total as f32
}

/// Neighbouring characters and how often they occur. The start counts as a character, so that short names work.
fn pairs(text: &str) -> HashMap<(char, char), usize> {
    let mut counts = HashMap::new();
    let mut previous = '^';
    for character in text.chars().take(LOOKED_AT).flat_map(char::to_lowercase) {
        *counts.entry((previous, character)).or_insert(0) += 1;
        previous = character;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_alike_and_strangers_are_not() {
        assert!(likeness("README.md", "readme.md") > 0.99);
        assert!(likeness("lib.rs", "libs.rs") > 0.7);
        assert!(likeness("main.rs", "Cargo.toml") < 0.2);
        assert!(likeness("", "").abs() < f32::EPSILON);
    }
}
