//! The beginning and the end of a text that may be endless.
//!
//! Must not do I/O. Invariant: memory is bounded by the two ends, and a cut never falls into a character.

/// Bytes kept of the beginning and of the end; together what a result may hold of a command's output.
pub(crate) const HEAD_BYTES: usize = 15_000;
pub(crate) const TAIL_BYTES: usize = 15_000;

/// Collects text as it comes.
#[derive(Default)]
pub(crate) struct Excerpt {
    head: String,
    head_is_full: bool,
    /// At least the last [`TAIL_BYTES`] of what did not go into the head, at most twice that.
    tail: String,
    bytes: u64,
    line_breaks: u64,
}

/// What was collected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    pub(crate) head: String,
    /// None where nothing is missing and `head` is all.
    pub(crate) omitted: Option<Omitted>,
    pub(crate) tail: String,
}

/// What lies between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Omitted {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

impl Excerpt {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.line_breaks += line_breaks(text);
        let mut rest = text;
        if !self.head_is_full {
            let room = HEAD_BYTES - self.head.len();
            let (fits, more) = text.split_at(text.floor_char_boundary(room));
            self.head.push_str(fits);
            self.head_is_full = !more.is_empty();
            rest = more;
        }
        let worth_keeping = rest.ceil_char_boundary(rest.len().saturating_sub(2 * TAIL_BYTES));
        self.tail.push_str(rest.get(worth_keeping..).unwrap_or_default());
        if self.tail.len() > 2 * TAIL_BYTES {
            let start = self.tail.ceil_char_boundary(self.tail.len() - TAIL_BYTES);
            self.tail.drain(..start);
        }
    }

    /// Everything collected since the last time, and a fresh start.
    pub(crate) fn take(&mut self) -> Ends {
        let taken = std::mem::take(self);
        let after_head = taken.bytes - taken.head.len() as u64;
        if after_head <= TAIL_BYTES as u64 {
            return Ends { head: taken.head + &taken.tail, omitted: None, tail: String::new() };
        }
        let start = taken.tail.ceil_char_boundary(taken.tail.len().saturating_sub(TAIL_BYTES));
        let tail = taken.tail.get(start..).unwrap_or_default().to_owned();
        let omitted = Omitted {
            bytes: after_head - tail.len() as u64,
            lines: taken.line_breaks - line_breaks(&taken.head) - line_breaks(&tail),
        };
        Ends { head: taken.head, omitted: Some(omitted), tail }
    }
}

fn line_breaks(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_whole() {
        let mut excerpt = Excerpt::default();
        let text = "x".repeat(HEAD_BYTES + TAIL_BYTES);
        excerpt.push(&text);
        assert_eq!(excerpt.take(), Ends { head: text, omitted: None, tail: String::new() });
        excerpt.push("more");
        assert_eq!(excerpt.take().head, "more");
    }

    #[test]
    fn what_does_not_fit_is_cut_between_characters_and_counted() {
        for piece in [1, 7, 4096, usize::MAX] {
            let text = format!("a{}\n{}b", "🦀\n".repeat(10_000), "ü".repeat(20_000));
            let mut excerpt = Excerpt::default();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.ceil_char_boundary(piece.min(rest.len())));
                excerpt.push(now);
                rest = later;
            }
            let ends = excerpt.take();
            let omitted = ends.omitted.unwrap();
            assert!(text.starts_with(&ends.head) && text.ends_with(&ends.tail));
            assert_eq!(ends.head.len() as u64 + omitted.bytes + ends.tail.len() as u64, text.len() as u64);
            let middle = &text[ends.head.len()..text.len() - ends.tail.len()];
            assert_eq!(omitted.lines, middle.matches('\n').count() as u64);
            assert!(ends.head.len() > HEAD_BYTES - 4 && ends.tail.len() > TAIL_BYTES - 4);
        }
    }
}
