//! A place in a text, one character at a time.
//!
//! Must not know the grammar. Invariant: the place is always at a character's border, so that no slice can fail.

/// Reads forward only; a copy is a way back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, position: 0 }
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The character after the next.
    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    /// Takes the text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        if comes {
            self.position += text.len();
        }
        comes
    }

    /// Takes characters for as long as the test holds.
    pub(super) fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.position += end;
        rest.get(..end).unwrap_or_default()
    }

    /// The text from an earlier place up to this one.
    pub(super) fn since(&self, earlier: Cursor<'a>) -> &'a str {
        self.text.get(earlier.position..self.position).unwrap_or_default()
    }
}
