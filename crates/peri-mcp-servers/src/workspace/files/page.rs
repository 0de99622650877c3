//! A page of numbered lines: what Read shows of a file, and how to go on.
//!
//! Must not read files. Invariant: a page is bounded in lines, in the length of a line and as a whole, and says where it
//! left something out.

use std::fmt::Write as _;

/// Lines that a page holds unless the call says otherwise.
pub(crate) const DEFAULT_LINES: u64 = 2000;
/// Characters of a line that are shown.
pub(crate) const MAX_LINE_CHARS: usize = 2000;
/// Bytes of a page. More would crowd everything else out of a model's window.
const MAX_PAGE_BYTES: usize = 100_000;

/// A page under construction: lines are offered in order, from the first of the file.
pub(crate) struct LinePage {
    first: u64,
    limit: u64,
    /// Lines offered so far.
    offered: u64,
    shown: u64,
    full: bool,
    text: String,
}

/// How many lines a file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineCount {
    Exactly(u64),
    /// Counting stopped.
    MoreThan(u64),
}

/// The first line that was asked for is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("offset {first} is past the end: the file has {lines} lines")]
pub(crate) struct PastTheEnd {
    first: u64,
    lines: u64,
}

impl LinePage {
    /// `first` counts from 1.
    pub(crate) fn new(first: u64, limit: u64) -> LinePage {
        LinePage { first, limit, offered: 0, shown: 0, full: false, text: String::new() }
    }

    /// True where the next line offered would be shown, if there is room for it.
    pub(crate) fn wants_next(&self) -> bool {
        !self.is_done() && self.offered + 1 >= self.first
    }

    /// True where no further line will be shown; offering more only counts.
    pub(crate) fn is_done(&self) -> bool {
        self.full || self.shown >= self.limit
    }

    /// Offers the next line: its beginning, at least [`MAX_LINE_CHARS`] of it where it is that long, and how many bytes
    /// follow that.
    pub(crate) fn offer(&mut self, beginning: &str, more_bytes: u64) {
        let wanted = self.wants_next();
        self.offered += 1;
        if !wanted {
            return;
        }
        let cut = beginning.char_indices().nth(MAX_LINE_CHARS).map_or(beginning.len(), |(at, _)| at);
        let (line, rest) = beginning.split_at(cut);
        let left_out = rest.len() as u64 + more_bytes;
        let before = self.text.len();
        let _infallible = write!(self.text, "{:>6}\t{line}", self.offered);
        if left_out > 0 {
            let _infallible = write!(self.text, "… [{left_out} more bytes in this line]");
        }
        self.text.push('\n');
        if self.text.len() > MAX_PAGE_BYTES && self.shown > 0 {
            self.text.truncate(before);
            self.full = true;
        } else {
            self.shown += 1;
        }
    }

    /// Lines offered so far.
    pub(crate) fn offered(&self) -> u64 {
        self.offered
    }

    /// The page with a closing line that says what it is a part of, where it is only a part.
    pub(crate) fn finish(mut self, lines: LineCount) -> Result<String, PastTheEnd> {
        let (total, words) = match lines {
            LineCount::Exactly(total) => (total, total.to_string()),
            LineCount::MoreThan(total) => (u64::MAX, format!("more than {total}")),
        };
        if total == 0 {
            return Ok("[The file is empty.]".to_owned());
        }
        if self.shown == 0 {
            return Err(PastTheEnd { first: self.first, lines: total });
        }
        let last = self.first + self.shown - 1;
        if last < total {
            let next = last + 1;
            let _infallible =
                write!(self.text, "\n[Lines {} to {last} of {words}. Go on with offset {next}.]", self.first);
        } else if self.first > 1 {
            let _infallible = write!(self.text, "\n[Lines {} to {last}, the end of the file.]", self.first);
        }
        Ok(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_it_is_a_part_of() {
        let mut page = LinePage::new(2, 2);
        for line in ["a", "b", "c", "d"] {
            page.offer(line, 0);
        }
        let text = page.finish(LineCount::Exactly(4)).unwrap();
        assert_eq!(text, "     2\tb\n     3\tc\n\n[Lines 2 to 3 of 4. Go on with offset 4.]");
    }

    #[test]
    fn long_lines_and_long_pages_are_cut() {
        let long = "ü".repeat(MAX_LINE_CHARS + 3);
        let mut page = LinePage::new(1, u64::MAX);
        for _ in 0..100 {
            page.offer(&long, 10);
        }
        let text = page.finish(LineCount::Exactly(100)).unwrap();
        assert!(text.len() < MAX_PAGE_BYTES + 5000);
        assert!(text.contains("… [16 more bytes in this line]"));
        assert!(text.ends_with("Go on with offset 25.]"), "{}", &text[text.len() - 80..]);
    }

    #[test]
    fn past_the_end_and_empty() {
        assert_eq!(LinePage::new(1, 5).finish(LineCount::Exactly(0)).unwrap(), "[The file is empty.]");
        assert_eq!(LinePage::new(9, 5).finish(LineCount::Exactly(3)), Err(PastTheEnd { first: 9, lines: 3 }));
    }
}
