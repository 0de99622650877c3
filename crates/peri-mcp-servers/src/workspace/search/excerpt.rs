//! One line of a file, cut to what is worth showing.
//!
//! Invariant: no excerpt is longer than [`MAX_LINE_BYTES`] and a marker, be the line as long as it may.

use std::ops::Range;

/// Bytes of a line that are shown.
const MAX_LINE_BYTES: usize = 500;
/// Of these, so many stand before the match.
const BEFORE_MATCH: usize = 120;

/// The line, or where it is long the part of it around `matched`. What is not UTF-8 becomes U+FFFD.
pub(crate) fn excerpt(line: &[u8], matched: Option<Range<usize>>) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let latest_start = line.len() - MAX_LINE_BYTES;
    let start = matched.map_or(0, |matched| matched.start.saturating_sub(BEFORE_MATCH)).min(latest_start);
    let start = character_border(line, start);
    let end = character_border(line, start + MAX_LINE_BYTES);
    let shown = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    let (before, after) = (start, line.len() - end);
    let mark = |bytes: usize| if bytes == 0 { String::new() } else { format!("[…{bytes} bytes…]") };
    format!("{}{shown}{}", mark(before), mark(after))
}

/// The last place up to `at` where no character is cut apart.
fn character_border(bytes: &[u8], at: usize) -> usize {
    const LONGEST_CHARACTER: usize = 4;
    let at = at.min(bytes.len());
    let is_border = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (at.saturating_sub(LONGEST_CHARACTER - 1)..=at).rev().find(is_border).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let line = format!("{}needle{}\r\n", "🦀".repeat(1000), "x".repeat(10_000));
        let shown = excerpt(line.as_bytes(), Some(4000..4006));
        assert!(shown.starts_with("[…3880 bytes…]🦀"), "{shown}");
        assert!(shown.contains("🦀needlexxx"));
        assert!(shown.ends_with("x[…9626 bytes…]"), "{shown}");
        assert!(!shown.contains('\u{fffd}'));
    }

    #[test]
    fn short_lines_are_whole() {
        assert_eq!(excerpt(b"a\xffb\r\n", None), "a\u{fffd}b");
        assert_eq!(excerpt(b"", None), "");
    }
}
