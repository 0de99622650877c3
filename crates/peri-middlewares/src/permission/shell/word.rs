//! Words and their quotes.

use super::Unreadable;
use super::expansion::Quoting;
use super::grammar::{Parser, is_meta};

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    /// As it is written.
    pub(crate) source: String,
    pub(crate) value: WordValue,
}

/// What a word becomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WordValue {
    /// This text.
    Literal(String),
    /// This path below the user's home; it begins with `~`.
    Home(String),
    /// No telling: it holds an expansion or a pattern. It may become none or several words.
    Varying,
}

impl Word {
    /// The text, if the word is written out.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.value {
            WordValue::Literal(text) => Some(text),
            WordValue::Home(_) | WordValue::Varying => None,
        }
    }

    /// A word that stands for what is not known.
    pub(super) fn varying(source: impl Into<String>) -> Word {
        Word { source: source.into(), value: WordValue::Varying }
    }
}

/// Puts a word together.
#[derive(Default)]
pub(super) struct WordBuilder {
    text: String,
    varies: bool,
    home: bool,
    /// An unquoted `[` stands before.
    bracket: bool,
    brace: Brace,
}

/// How far an unquoted brace expansion has come.
#[derive(Default, PartialEq, PartialOrd)]
enum Brace {
    #[default]
    None,
    Open,
    /// With a comma or two dots, so that its end makes it one.
    List,
}

impl WordBuilder {
    pub(super) fn vary(&mut self) {
        self.varies = true;
    }

    /// A character that means itself.
    pub(super) fn push_quoted(&mut self, c: char) {
        self.text.push(c);
    }

    fn push_plain(&mut self, c: char) {
        match c {
            '*' | '?' => self.varies = true,
            '[' => self.bracket = true,
            ']' if self.bracket => self.varies = true,
            '{' if self.brace == Brace::None => self.brace = Brace::Open,
            ',' if self.brace == Brace::Open => self.brace = Brace::List,
            '.' if self.brace == Brace::Open && self.text.ends_with('.') => self.brace = Brace::List,
            '}' if self.brace == Brace::List => self.varies = true,
            _ => {}
        }
        self.text.push(c);
    }

    pub(super) fn finish(self, source: &str) -> Word {
        let value = match self {
            WordBuilder { varies: true, .. } => WordValue::Varying,
            WordBuilder { home: true, text, .. } => WordValue::Home(text),
            WordBuilder { text, .. } => WordValue::Literal(text),
        };
        Word { source: source.to_owned(), value }
    }
}

impl Parser<'_, '_> {
    /// The word at this place.
    pub(super) fn word(&mut self) -> Result<Word, Unreadable> {
        let begin = self.cursor;
        let mut word = WordBuilder::default();
        if self.cursor.peek() == Some('~') {
            self.tilde(&mut word);
        }
        while let Some(c) = self.cursor.peek() {
            match c {
                '<' | '>' if self.cursor.peek_second() == Some('(') => {
                    self.cursor.next();
                    self.cursor.next();
                    self.substituted()?;
                    word.vary();
                }
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => self.escaped(&mut word)?,
                '$' => self.dollar(&mut word, Quoting::None)?,
                '`' => {
                    self.backquoted()?;
                    word.vary();
                }
                c if is_meta(c) => break,
                c => {
                    self.cursor.next();
                    word.push_plain(c);
                }
            }
        }
        let source = self.cursor.since(begin);
        if source.is_empty() { Err(self.unexpected()) } else { Ok(word.finish(source)) }
    }

    fn tilde(&mut self, word: &mut WordBuilder) {
        self.cursor.next();
        word.push_plain('~');
        match self.cursor.peek() {
            None | Some('/') => word.home = true,
            Some(c) if is_meta(c) => word.home = true,
            // Another user's home, the directory stack.
            Some(_) => word.vary(),
        }
    }

    fn escaped(&mut self, word: &mut WordBuilder) -> Result<(), Unreadable> {
        self.cursor.next();
        match self.cursor.next() {
            None => Err(self.unexpected()),
            Some('\n') => Err(Unreadable::new("a line is broken within a word")),
            Some(c) => {
                word.push_quoted(c);
                Ok(())
            }
        }
    }

    pub(super) fn single_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Unreadable> {
        self.cursor.next();
        while let Some(c) = self.cursor.peek() {
            if c == '\n' {
                self.pass_line_break()?;
            } else {
                self.cursor.next();
            }
            if c == '\'' {
                return Ok(());
            }
            word.push_quoted(c);
        }
        Err(Unreadable::new("a quote is not closed"))
    }

    /// `$'...'` from its quote on.
    pub(super) fn ansi_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Unreadable> {
        self.cursor.next();
        while let Some(c) = self.cursor.peek() {
            match c {
                '\n' => self.pass_line_break()?,
                '\\' => {
                    // Escapes can spell anything.
                    word.vary();
                    self.cursor.next();
                    self.cursor.next();
                    continue;
                }
                _ => {
                    self.cursor.next();
                }
            }
            if c == '\'' {
                return Ok(());
            }
            word.push_quoted(c);
        }
        Err(Unreadable::new("a quote is not closed"))
    }

    /// `"..."` from its first quote on.
    pub(super) fn double_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Unreadable> {
        self.cursor.next();
        while let Some(c) = self.cursor.peek() {
            match c {
                '"' => {
                    self.cursor.next();
                    return Ok(());
                }
                '\n' => {
                    self.pass_line_break()?;
                    word.push_quoted(c);
                }
                '\\' => self.escaped_in_double(word)?,
                '$' => self.dollar(word, Quoting::Double)?,
                '`' => {
                    self.backquoted()?;
                    word.vary();
                }
                _ => {
                    self.cursor.next();
                    word.push_quoted(c);
                }
            }
        }
        Err(Unreadable::new("a quote is not closed"))
    }

    fn escaped_in_double(&mut self, word: &mut WordBuilder) -> Result<(), Unreadable> {
        self.cursor.next();
        match self.cursor.peek() {
            None => {}
            Some('\n') => self.pass_line_break()?,
            Some(c) => {
                if !matches!(c, '$' | '`' | '"' | '\\') {
                    word.push_quoted('\\');
                }
                self.cursor.next();
                word.push_quoted(c);
            }
        }
        Ok(())
    }
}
