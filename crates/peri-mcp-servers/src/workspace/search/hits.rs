//! What Grep has found, kept in order and in bounds while several threads add to it.
//!
//! Invariant: whatever the order of adding, what is kept are the first hits by path, at most one file beyond the budget.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The hits of one file.
#[derive(Default)]
pub(crate) struct FileHits {
    /// Matching lines.
    pub(crate) matches: u64,
    /// For display, where lines are shown; then bounded by the collector.
    pub(crate) lines: Vec<HitLine>,
}

/// A line for display.
pub(crate) struct HitLine {
    pub(crate) number: Option<u64>,
    pub(crate) role: LineRole,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineRole {
    Match,
    Context,
    /// Stands for lines between that are not shown.
    Gap,
}

/// Hits by path.
pub(crate) struct Hits {
    files: BTreeMap<PathBuf, FileHits>,
    /// Lines, or files where no lines are shown.
    size: usize,
    budget: usize,
}

impl Hits {
    /// Keeps enough to fill `budget` lines or files and to know that there was more.
    pub(crate) fn new(budget: usize) -> Hits {
        Hits { files: BTreeMap::new(), size: 0, budget }
    }

    /// False where hits of this file would not be kept anyway.
    pub(crate) fn wants(&self, path: &Path) -> bool {
        self.size <= self.budget || self.files.last_key_value().is_none_or(|(last, _)| path < last.as_path())
    }

    pub(crate) fn add(&mut self, path: PathBuf, hits: FileHits) {
        self.size += weight(&hits);
        self.files.insert(path, hits);
        while let Some(last) = self.files.last_entry() {
            let without_it = self.size - weight(last.get());
            if without_it <= self.budget {
                break;
            }
            self.size = without_it;
            last.remove();
        }
    }

    /// True where there was more than the budget holds.
    pub(crate) fn overflows(&self) -> bool {
        self.size > self.budget
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &FileHits)> {
        self.files.iter().map(|(path, hits)| (path.as_path(), hits))
    }
}

fn weight(hits: &FileHits) -> usize {
    hits.lines.len().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(order: &[&str], budget: usize) -> (Vec<String>, bool) {
        let mut hits = Hits::new(budget);
        for path in order {
            if hits.wants(Path::new(path)) {
                hits.add(PathBuf::from(path), FileHits { matches: 1, lines: Vec::new() });
            }
        }
        (hits.iter().map(|(path, _)| path.display().to_string()).collect(), hits.overflows())
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let expected = (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], true);
        for order in [["a", "b", "c", "d"], ["d", "c", "b", "a"], ["c", "a", "d", "b"]] {
            assert_eq!(keep(&order, 2), expected);
        }
        assert!(!keep(&["b", "a"], 2).1);
    }
}
