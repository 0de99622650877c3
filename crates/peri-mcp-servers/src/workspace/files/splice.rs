//! Finds one text in another and puts a third in its place: the pure heart of Edit.
//!
//! Must not touch files or encodings. Invariant: outside the spliced regions the result is the original, byte for byte,
//! line endings included; inside, lines that old and new text share keep the ending that they had.

use std::collections::HashMap;
use std::ops::Range;

use super::likeness::likeness;

/// What to replace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement<'a> {
    /// Line breaks in it match `\n` and `\r\n` alike.
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) occurrences: Occurrences,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occurrences {
    /// There must be one, no more.
    One,
    Every,
}

/// The text after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spliced {
    pub(crate) text: String,
    /// Where the new pieces stand in `text`, in order. Shared beginnings and ends of old and new are not part of them.
    pub(crate) regions: Vec<Range<usize>>,
    pub(crate) matched: Matched,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matched {
    Exactly,
    /// Whole lines, equal but for white space; the new lines were indented like the ones they replace.
    UpToWhiteSpace,
}

/// Why nothing was replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotSpliced {
    /// `closest` is the 1-based line where something like it begins.
    NotFound { closest: Option<usize> },
    /// `lines` are the 1-based lines where the first few of them begin.
    Ambiguous { count: usize, lines: Vec<usize>, matched: Matched },
}

/// File lines compared in search of something like the text that was not found.
const MAX_COMPARED_LINES: usize = 20_000;
const MIN_LIKENESS: f32 = 0.6;
/// Occurrences that are named by line.
const MAX_NAMED: usize = 10;

/// Replaces in `text`.
pub(crate) fn splice(text: &str, replacement: Replacement<'_>) -> Result<Spliced, NotSpliced> {
    let view = LfView::of(text);
    if replacement.old.contains('\r') && text.contains(replacement.old) {
        // The caller means these very line endings.
        let pieces = occurrences(text, replacement.old)
            .map(|range| Piece { range, new: replacement.new.to_owned() })
            .collect::<Vec<_>>();
        return apply(&view, pieces, replacement.occurrences, Matched::Exactly);
    }
    let old = to_lf(replacement.old);
    let found: Vec<Range<usize>> = occurrences(&view.text, &old).collect();
    if !found.is_empty() {
        let pieces = found.into_iter().map(|range| view.piece(range, &old, replacement.new)).collect();
        return apply(&view, pieces, replacement.occurrences, Matched::Exactly);
    }
    let windows = loose_windows(&view.text, &old);
    if windows.is_empty() {
        return Err(NotSpliced::NotFound { closest: closest_line(&view.text, &old) });
    }
    let pieces = windows.into_iter().map(|window| view.loose_piece(window, &old, replacement.new)).collect();
    // A loose match is a guess: it is never made more than once.
    apply(&view, pieces, Occurrences::One, Matched::UpToWhiteSpace)
}

/// A region of the original, in bytes, and what comes in its place.
struct Piece {
    range: Range<usize>,
    new: String,
}

fn apply(
    view: &LfView<'_>,
    pieces: Vec<Piece>,
    occurrences: Occurrences,
    matched: Matched,
) -> Result<Spliced, NotSpliced> {
    if occurrences == Occurrences::One && pieces.len() > 1 {
        let named = pieces.iter().take(MAX_NAMED).map(|piece| line_of(view.original, piece.range.start));
        return Err(NotSpliced::Ambiguous { count: pieces.len(), lines: named.collect(), matched });
    }
    let mut text = String::with_capacity(view.original.len());
    let mut regions = Vec::with_capacity(pieces.len());
    let mut copied = 0;
    for piece in pieces {
        text.push_str(view.original.get(copied..piece.range.start).unwrap_or_default());
        let start = text.len();
        text.push_str(&piece.new);
        regions.push(start..text.len());
        copied = piece.range.end;
    }
    text.push_str(view.original.get(copied..).unwrap_or_default());
    Ok(Spliced { text, regions, matched })
}

/// A text whose line breaks are all `\n`, with the way back to the original.
struct LfView<'a> {
    original: &'a str,
    text: String,
    /// Positions in `text` of the line breaks that were `\r\n`, ascending.
    crlf: Vec<usize>,
}

impl<'a> LfView<'a> {
    fn of(original: &'a str) -> LfView<'a> {
        let mut text = String::with_capacity(original.len());
        let mut crlf = Vec::new();
        let mut pieces = original.split("\r\n");
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            crlf.push(text.len());
            text.push('\n');
            text.push_str(piece);
        }
        LfView { original, text, crlf }
    }

    /// The place in the original. A line break's place is where its `\r` stands.
    fn original_at(&self, at: usize) -> usize {
        at + self.crlf.partition_point(|break_at| *break_at < at)
    }

    /// How lines end around a place: as at the next line break, or else at the last one before.
    fn ends_in_crlf(&self, at: usize) -> bool {
        let next = self.text.get(at..).and_then(|rest| rest.find('\n')).map(|offset| at + offset);
        let deciding = next.or_else(|| self.text.get(..at).and_then(|before| before.rfind('\n')));
        deciding.is_some_and(|break_at| self.crlf.binary_search(&break_at).is_ok())
    }

    /// The replacement of an exact occurrence, without what old and new have in common at both ends.
    fn piece(&self, range: Range<usize>, old: &str, new: &str) -> Piece {
        let crlf = self.ends_in_crlf(range.start);
        let new = if crlf { to_lf(new) } else { new.to_owned() };
        let (prefix, suffix) = common_ends(old, &new);
        let start = self.original_at(range.start + prefix);
        let end = self.original_at(range.end - suffix);
        let changed = new.get(prefix..new.len() - suffix).unwrap_or_default();
        let new = if crlf { changed.replace('\n', "\r\n") } else { changed.to_owned() };
        Piece { range: start..end, new }
    }

    /// The replacement of whole lines that match loosely.
    fn loose_piece(&self, window: Range<usize>, old: &str, new: &str) -> Piece {
        let new = to_lf(new);
        let there = self.text.get(window.clone()).unwrap_or_default();
        let Some(old) = old.strip_suffix('\n') else {
            return self.piece(window, there, &indent_like(there, old, &new));
        };
        if new.is_empty() {
            // Lines that go, go with their line break, which stands just behind the window.
            let whole = window.start..(window.end + 1).min(self.text.len());
            return self.piece(whole.clone(), self.text.get(whole).unwrap_or_default(), "");
        }
        let new = new.strip_suffix('\n').unwrap_or(&new);
        self.piece(window, there, &indent_like(there, old, new))
    }
}

fn to_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn occurrences<'a>(text: &'a str, wanted: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    text.match_indices(wanted).map(|(at, found)| at..at + found.len())
}

/// Bytes that two texts share at the beginning and at the end, not overlapping, cut at characters.
fn common_ends(left: &str, right: &str) -> (usize, usize) {
    let prefix: usize = left
        .chars()
        .zip(right.chars())
        .take_while(|(left, right)| left == right)
        .map(|(same, _)| same.len_utf8())
        .sum();
    let (left, right) = (left.get(prefix..).unwrap_or_default(), right.get(prefix..).unwrap_or_default());
    let suffix = left
        .chars()
        .rev()
        .zip(right.chars().rev())
        .take_while(|(left, right)| left == right)
        .map(|(same, _)| same.len_utf8())
        .sum();
    (prefix, suffix)
}

/// 1-based.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// Runs of lines that equal the wanted lines up to white space, each from its start to before its last line break.
fn loose_windows(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let wanted: Vec<String> = wanted.strip_suffix('\n').unwrap_or(wanted).split('\n').map(without_spacing).collect();
    if wanted.iter().all(String::is_empty) {
        return Vec::new();
    }
    let mut starts = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        starts.push(at..at + line.len());
        lines.push(without_spacing(line));
        at += line.len() + 1;
    }
    lines
        .windows(wanted.len())
        .zip(starts.windows(wanted.len()))
        .filter(|(window, _)| *window == wanted.as_slice())
        .filter_map(|(_, ranges)| Some(ranges.first()?.start..ranges.last()?.end))
        .collect()
}

fn without_spacing(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The new lines, indented as the lines that stand there rather than as the caller believed them to be.
fn indent_like(there: &str, believed: &str, new: &str) -> String {
    let mut whole_lines: HashMap<&str, &str> = HashMap::new();
    let mut indents: HashMap<&str, &str> = HashMap::new();
    for (believed, there) in believed.split('\n').zip(there.split('\n')) {
        whole_lines.entry(believed).or_insert(there);
        if !believed.trim().is_empty() {
            indents.entry(indent_of(believed)).or_insert(indent_of(there));
        }
    }
    let adapted: Vec<String> = new.split('\n').map(|line| adapt(line, &whole_lines, &indents)).collect();
    adapted.join("\n")
}

fn adapt(line: &str, whole_lines: &HashMap<&str, &str>, indents: &HashMap<&str, &str>) -> String {
    if let Some(there) = whole_lines.get(line) {
        return (*there).to_owned();
    }
    let known = indents.iter().filter(|(believed, _)| indent_of(line).starts_with(**believed));
    match known.max_by_key(|(believed, _)| believed.len()) {
        Some((believed, there)) => format!("{there}{}", line.get(believed.len()..).unwrap_or_default()),
        None => line.to_owned(),
    }
}

fn indent_of(line: &str) -> &str {
    line.split_once(|character: char| !character.is_whitespace()).map_or(line, |(indent, _)| indent)
}

/// Where lines like the wanted ones begin, judged by the longest of them.
fn closest_line(text: &str, wanted: &str) -> Option<usize> {
    let (offset, longest) =
        wanted.split('\n').map(str::trim).enumerate().max_by_key(|(index, line)| (line.len(), usize::MAX - index))?;
    let likeliest = text
        .split('\n')
        .take(MAX_COMPARED_LINES)
        .enumerate()
        .map(|(index, line)| (likeness(line.trim(), longest), index))
        .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
        .max_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(&left.1)))?;
    Some(likeliest.1.saturating_sub(offset) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, old: &str, new: &str, expected: &str) {
        let replacement = Replacement { old, new, occurrences: Occurrences::One };
        assert_eq!(splice(text, replacement).map(|spliced| spliced.text).as_deref(), Ok(expected));
    }

    #[test]
    fn line_endings_are_those_of_the_place() {
        check("a\r\nb\r\n", "b", "c", "a\r\nc\r\n");
        check("a\r\nb\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\n");
        check("a\r\nb\r\n", "b\n", "b\r\nc\r\n", "a\r\nb\r\nc\r\n");
        check("a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n");
        check("a\nb\r\nc\nd", "b\nc", "b\nC", "a\nb\r\nC\nd");
        check("a\nb", "b", "b\n", "a\nb\n");
        check("a\r\nb", "b", "b\n", "a\r\nb\r\n");
        check("a\r\nb\r\n", "a\n", "", "b\r\n");
        check("a\n", "a\n", "a\r\n", "a\r\n");
        check("a\r\nb\n", "a\r\n", "a\n", "a\nb\n");
    }

    #[test]
    fn several_occurrences_want_a_decision() {
        let one = Replacement { old: "x", new: "y", occurrences: Occurrences::One };
        assert_eq!(
            splice("x\na\nx x", one),
            Err(NotSpliced::Ambiguous { count: 3, lines: vec![1, 3, 3], matched: Matched::Exactly })
        );
        let every = Replacement { occurrences: Occurrences::Every, ..one };
        assert_eq!(splice("x\r\na\nx x", every).unwrap().text, "y\r\na\ny y");
    }

    #[test]
    fn white_space_may_differ_if_the_place_is_certain() {
        check("fn a() {\n\tlet x  = 1;\n}\n", "    let x = 1;", "    let x = 2;", "fn a() {\n\tlet x = 2;\n}\n");
        check("if x:\r\n\ty()\r\n", "if x:\n    y()\n", "if x:\n    y()\n    z()\n", "if x:\r\n\ty()\r\n\tz()\r\n");
        check("\ta\n\tb\n\tc\n", "  a\n  b\n", "  a", "\ta\n\tc\n");
        check("\ta\r\n\tb\r\n\tc\r\n", "  a\n  b\n", "", "\tc\r\n");
        let twice = Replacement { old: " a  b", new: "c", occurrences: Occurrences::Every };
        assert_eq!(
            splice("a b\na b\n", twice),
            Err(NotSpliced::Ambiguous { count: 2, lines: vec![1, 2], matched: Matched::UpToWhiteSpace })
        );
    }

    #[test]
    fn what_is_not_there_has_a_closest_place() {
        let text = "fn one() {}\nfn two() {}\nfn three(argument: u32) {}\n";
        let wanted = Replacement { old: "fn three(argumant: u64) {}", new: "", occurrences: Occurrences::One };
        assert_eq!(splice(text, wanted), Err(NotSpliced::NotFound { closest: Some(3) }));
        let stranger = Replacement { old: "struct Zebra;", ..wanted };
        assert_eq!(splice(text, stranger), Err(NotSpliced::NotFound { closest: None }));
    }
}
