//! Terminal output as text: what a reader of the screen would have seen in the end.
//!
//! Takes bytes as they come and gives lines: escape sequences and control characters go, text that `\r` or backspaces
//! overwrote is gone, bytes that are not UTF-8 become U+FFFD. Must not know where output goes. Invariant: memory is
//! bounded by one line of [`MAX_LINE_CHARS`], and the output by [`MAX_COLUMN`] characters for each byte of input.

/// A longer line is passed on in pieces; only the last piece can still be overwritten.
const MAX_LINE_CHARS: usize = 8192;
/// As far to the right as a cursor movement leads.
const MAX_COLUMN: usize = 400;
/// Characters of an unfinished escape sequence after which it is taken to be none.
const MAX_SEQUENCE_CHARS: usize = 4096;

/// The state between two pieces of output.
#[derive(Default)]
pub(crate) struct Cleaner {
    /// The beginning of a character whose other bytes are still to come.
    partial: Vec<u8>,
    sequence: Sequence,
    /// The current line and the place in it where the next character goes.
    line: Vec<char>,
    column: usize,
    /// A part of the current line has been handed out and cannot be overwritten any more.
    handed_out: bool,
    /// `\r` came after such a part: what follows stands on a line of its own.
    restarts: bool,
}

/// Where in an escape sequence we are.
#[derive(Default)]
enum Sequence {
    #[default]
    None,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character: one more belongs to it.
    Intermediate,
    /// After ESC `[`: parameters, then a final character.
    Control(String),
    /// A string for the terminal (title, link), up to BEL or ESC `\`.
    Text { chars: usize },
    /// ESC inside such a string.
    TextEscape,
}

impl Cleaner {
    /// Takes more bytes; lines that are complete are added to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = bytes;
        if !self.partial.is_empty() {
            let mut whole = std::mem::take(&mut self.partial);
            whole.extend_from_slice(bytes);
            joined = whole;
            rest = &joined;
        }
        while !rest.is_empty() {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text, out),
                Err(error) => error,
            };
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            self.text(std::str::from_utf8(valid).unwrap_or_default(), out);
            let Some(length) = error.error_len() else {
                self.partial = invalid.to_vec();
                return;
            };
            self.character(char::REPLACEMENT_CHARACTER, out);
            rest = invalid.get(length..).unwrap_or_default();
        }
    }

    /// Hands out the line that is not complete yet, for a reader who does not wait for the rest.
    pub(crate) fn flush(&mut self, out: &mut String) {
        if !self.line.is_empty() {
            self.hand_out_line(out);
            self.handed_out = true;
        }
    }

    /// There are no more bytes.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, out);
        }
        self.sequence = Sequence::None;
        self.hand_out_line(out);
    }

    fn text(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            // Plain text, by far the most of it, goes in runs.
            let run = match self.sequence {
                Sequence::None => rest.find(char::is_control).unwrap_or(rest.len()),
                _ => 0,
            };
            let (plain, special) = rest.split_at(run);
            if special.starts_with('\n') && self.line.is_empty() && self.column == 0 && !self.restarts {
                out.push_str(plain);
            } else {
                self.put_run(plain, out);
            }
            let mut characters = special.chars();
            if let Some(character) = characters.next() {
                self.character(character, out);
            }
            rest = characters.as_str();
        }
    }

    /// Writes characters at the cursor, of which none is a control character.
    fn put_run(&mut self, run: &str, out: &mut String) {
        let mut characters = run.chars();
        while let Some(character) = characters.next() {
            self.put(character, out);
            if self.column == self.line.len() {
                // At the end of the line there is nothing to overwrite.
                let room = MAX_LINE_CHARS.saturating_sub(self.column);
                self.line.extend(characters.by_ref().take(room));
                self.column = self.line.len();
            }
        }
    }

    fn character(&mut self, character: char, out: &mut String) {
        match std::mem::take(&mut self.sequence) {
            Sequence::None => self.plain(character, out),
            Sequence::Escape => self.after_escape(character, out),
            Sequence::Intermediate => match character {
                ' '..='/' => self.sequence = Sequence::Intermediate,
                character if character.is_control() => self.plain(character, out),
                _ => {}
            },
            Sequence::Control(mut parameters) => match character {
                '@'..='~' => self.control(&parameters, character),
                // A line break in the middle: it was no sequence after all.
                character if character.is_control() => self.plain(character, out),
                _ if parameters.len() >= MAX_SEQUENCE_CHARS => {}
                character => {
                    parameters.push(character);
                    self.sequence = Sequence::Control(parameters);
                }
            },
            Sequence::Text { chars } => match character {
                '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}' => {}
                '\u{1b}' => self.sequence = Sequence::TextEscape,
                '\n' => self.plain(character, out),
                _ if chars >= MAX_SEQUENCE_CHARS => {}
                _ => self.sequence = Sequence::Text { chars: chars + 1 },
            },
            Sequence::TextEscape => match character {
                '\\' => {}
                character => self.after_escape(character, out),
            },
        }
    }

    fn after_escape(&mut self, character: char, out: &mut String) {
        match character {
            '[' => self.sequence = Sequence::Control(String::new()),
            ']' | 'P' | 'X' | '^' | '_' => self.sequence = Sequence::Text { chars: 0 },
            ' '..='/' => self.sequence = Sequence::Intermediate,
            character if character.is_control() => self.plain(character, out),
            _ => {}
        }
    }

    fn plain(&mut self, character: char, out: &mut String) {
        match character {
            '\n' => {
                self.hand_out_line(out);
                self.end_line(out);
            }
            '\r' => {
                self.column = 0;
                self.restarts = self.handed_out;
            }
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\u{1b}' => self.sequence = Sequence::Escape,
            '\u{9b}' => self.sequence = Sequence::Control(String::new()),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.sequence = Sequence::Text { chars: 0 },
            '\t' => self.put(character, out),
            character if character.is_control() => {}
            character => self.put(character, out),
        }
    }

    /// Writes a character at the cursor.
    fn put(&mut self, character: char, out: &mut String) {
        if std::mem::take(&mut self.restarts) {
            self.line.clear();
            self.end_line(out);
        }
        if self.column >= MAX_LINE_CHARS {
            self.hand_out_line(out);
            self.handed_out = true;
        }
        if self.column > self.line.len() {
            self.line.resize(self.column, ' ');
        }
        match self.line.get_mut(self.column) {
            Some(there) => *there = character,
            None => self.line.push(character),
        }
        self.column += 1;
    }

    /// The control sequences that move within a line or erase in it; all others only change colours and the like.
    fn control(&mut self, parameters: &str, last: char) {
        let number = parameters.parse::<usize>().unwrap_or(0);
        let steps = number.clamp(1, MAX_COLUMN);
        match last {
            'C' => self.column = (self.column + steps).min(MAX_COLUMN).max(self.column),
            'D' => self.column = self.column.saturating_sub(steps),
            'G' => self.column = steps - 1,
            'K' => match number {
                0 => self.line.truncate(self.column),
                1 => self.line.iter_mut().take(self.column + 1).for_each(|there| *there = ' '),
                _ => self.line.clear(),
            },
            _ => {}
        }
    }

    fn hand_out_line(&mut self, out: &mut String) {
        out.extend(self.line.drain(..));
        self.column = 0;
    }

    fn end_line(&mut self, out: &mut String) {
        out.push('\n');
        self.handed_out = false;
        self.restarts = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(pieces: &[&[u8]]) -> String {
        let (mut cleaner, mut out) = (Cleaner::default(), String::new());
        for piece in pieces {
            cleaner.push(piece, &mut out);
        }
        cleaner.finish(&mut out);
        out
    }

    fn check(input: &str, expected: &str) {
        assert_eq!(clean(&[input.as_bytes()]), expected, "{input:?}");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(clean(&bytes), expected, "{input:?}, byte by byte");
    }

    #[test]
    fn colours_titles_and_links_go() {
        check("\u{1b}[1;31merror\u{1b}[0m: no\n", "error: no\n");
        check("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb");
        check("\u{1b}(Ba\u{1b}=b\u{9b}1mc\u{1b}Pq;data\u{1b}\\d", "abcd");
        check("bell\u{7} nul\0 del\u{7f} tab\t.", "bell nul del tab\t.");
    }

    #[test]
    fn what_was_overwritten_is_gone() {
        check("10%\r50%\r100%\ndone\n", "100%\ndone\n");
        check("working...\r\u{1b}[Kok\r\n", "ok\n");
        check("abc\u{8}\u{8}X\n", "aXc\n");
        check("abc\rX", "Xbc");
        check("a\u{1b}[3Cb\u{1b}[2Dc\u{1b}[1Gd\n", "d  cb\n");
        check("gone\u{1b}[2Khere\n", "    here\n");
        check("dos\r\nlines\r\n", "dos\nlines\n");
    }

    #[test]
    fn what_is_broken_does_no_harm() {
        assert_eq!(clean(&[b"a\xffb\xf0\x9f"]), "a\u{fffd}b\u{fffd}");
        assert_eq!(clean(&["🦀".as_bytes().split_at(2).0, "🦀".as_bytes().split_at(2).1]), "🦀");
        check("\u{1b}]never ends\nnext\n", "\nnext\n");
        check("\u{1b}[12\nnext\n", "\nnext\n");
        check("\u{1b}[99999999999999999999Cx", " x");
        let long = format!("\u{1b}[{}m.", "1;".repeat(MAX_SEQUENCE_CHARS));
        assert!(clean(&[long.as_bytes()]).ends_with('.'));
    }

    #[test]
    fn a_reader_who_does_not_wait_gets_each_state_on_its_own_line() {
        let (mut cleaner, mut out) = (Cleaner::default(), String::new());
        cleaner.push(b"start\n50%", &mut out);
        cleaner.flush(&mut out);
        cleaner.push(b"\r60%\r70%\nprompt> ", &mut out);
        cleaner.flush(&mut out);
        cleaner.push(b"answer\n", &mut out);
        assert_eq!(out, "start\n50%\n70%\nprompt> answer\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_in_any_pieces_give_the_same_bounded_text(bytes: Vec<u8>, cut in 0_usize..200) {
            let whole = clean(&[&bytes]);
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(&whole, &clean(&[left, right]));
            prop_assert!(whole.chars().count() <= bytes.len() * MAX_COLUMN);
            prop_assert!(!whole.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        }

        #[test]
        fn screens_of_any_kind_are_survived(pieces in proptest::collection::vec(
            prop_oneof![
                Just("\u{1b}["), Just("\u{1b}]"), Just("\u{1b}P"), Just("\r"), Just("\n"), Just("\u{8}"), Just("K"), Just("1K"),
                Just("2K"), Just("350C"), Just("9D"), Just("5G"), Just(";"), Just("🦀"), Just("text"), Just("\u{9b}"), Just("\u{1b}\\"),
            ],
            0..200,
        )) {
            let input = pieces.concat();
            let out = clean(&[input.as_bytes()]);
            prop_assert!(out.chars().count() <= input.len() * MAX_COLUMN);
        }
    }
}
