//! Lists, pipelines and compound commands.
//!
//! One pass without a way back: a construct is known by its first characters, and what does not fit is [`Unreadable`].
//! Each level of nesting costs one [`Depth`]; lists and pipelines of any length cost none.

use super::cursor::Cursor;
use super::here_document::PendingDocument;
use super::word::Word;
use super::{Depth, Reading, Unreadable};

/// What is gathered over a text and all texts nested in it.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) reading: Reading,
    /// Some arithmetic takes the value of a variable or parameter. A value may come from output, input, the name of a
    /// file or the environment, and arithmetic runs the substitutions in it.
    pub(super) arithmetic_reads: bool,
    /// The functions that are defined.
    pub(super) functions: Vec<Word>,
}

/// Reads one text.
pub(super) struct Parser<'text, 'notes> {
    pub(super) cursor: Cursor<'text>,
    pub(super) notes: &'notes mut Notes,
    pub(super) depth: Depth,
    /// Here-documents whose bodies begin after the next line break.
    pub(super) pending: Vec<PendingDocument>,
    /// A here-document outside the substitution that is being read waits for a line break. Shells differ in what a
    /// line break means here.
    pub(super) outer_waits: bool,
}

/// Words that have a meaning where a command may begin.
const OPENERS: [&str; 11] = ["{", "[[", "if", "while", "until", "for", "case", "select", "function", "coproc", "!"];
/// Words that end a list of commands.
const CLOSERS: [&str; 8] = ["}", "then", "do", "done", "fi", "elif", "else", "esac"];

/// True for characters that end a word unless they are quoted.
pub(super) fn is_meta(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

impl<'text, 'notes> Parser<'text, 'notes> {
    pub(super) fn new(text: &'text str, notes: &'notes mut Notes, depth: Depth) -> Parser<'text, 'notes> {
        Parser { cursor: Cursor::new(text), notes, depth, pending: Vec::new(), outer_waits: false }
    }

    /// Reads the text to its end.
    pub(super) fn program(mut self) -> Result<(), Unreadable> {
        self.list()?;
        match self.cursor.peek() {
            Some(_) => Err(self.unexpected()),
            None => self.no_document_waits(),
        }
    }

    /// Runs a step one level deeper.
    pub(super) fn nested<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        let here = self.depth;
        self.depth = here.deeper()?;
        let result = step(self);
        self.depth = here;
        result
    }

    /// The commands of a substitution up to and with its parenthesis.
    pub(super) fn substituted(&mut self) -> Result<(), Unreadable> {
        let pending = std::mem::take(&mut self.pending);
        let outer_waits = self.outer_waits;
        self.outer_waits |= !pending.is_empty();
        self.nested(|parser| {
            parser.list()?;
            parser.expect(")")?;
            parser.no_document_waits()
        })?;
        self.pending = pending;
        self.outer_waits = outer_waits;
        Ok(())
    }

    /// Commands up to what ends a list, which is left there.
    pub(super) fn list(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_lines()?;
            if self.at_list_end() {
                return Ok(());
            }
            self.and_or()?;
            self.skip_blanks();
            if self.at_list_end() {
                return Ok(());
            }
            match self.cursor.peek() {
                Some('\n') => {}
                Some(';' | '&') => {
                    self.cursor.next();
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn at_list_end(&self) -> bool {
        let rest = self.cursor.rest();
        rest.is_empty()
            || rest.starts_with(')')
            || rest.starts_with(";;")
            || rest.starts_with(";&")
            || self.keyword().is_some_and(|keyword| CLOSERS.contains(&keyword))
    }

    fn and_or(&mut self) -> Result<(), Unreadable> {
        loop {
            self.pipeline()?;
            self.skip_blanks();
            if !self.cursor.take("&&") && !self.cursor.take("||") {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), Unreadable> {
        while let Some(word @ ("!" | "time")) = self.keyword() {
            self.cursor.take(word);
            self.skip_blanks();
            if word == "time" && self.raw_word() == "-p" {
                self.cursor.take("-p");
                self.skip_blanks();
            }
        }
        loop {
            self.command()?;
            self.skip_blanks();
            if self.cursor.rest().starts_with("||") || !(self.cursor.take("|&") || self.cursor.take("|")) {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    fn command(&mut self) -> Result<(), Unreadable> {
        let opener = match self.cursor.peek() {
            Some('(') => Some("("),
            _ => self.keyword().filter(|keyword| OPENERS.contains(keyword)),
        };
        let Some(opener) = opener else {
            return self.simple();
        };
        self.nested(|parser| parser.compound(opener))?;
        loop {
            self.skip_blanks();
            if !self.redirection()? {
                return Ok(());
            }
        }
    }

    fn compound(&mut self, opener: &str) -> Result<(), Unreadable> {
        self.cursor.take(opener);
        match opener {
            "(" if self.cursor.take("(") => self.arithmetic("))"),
            "(" => {
                self.list()?;
                self.expect(")")
            }
            "{" => {
                self.list()?;
                self.expect_keyword("}")
            }
            "[[" => self.condition(),
            "if" => self.if_clause(),
            "while" | "until" => {
                self.list()?;
                self.do_group()
            }
            "for" | "select" => self.for_clause(),
            "case" => self.case_clause(),
            "function" => {
                self.skip_blanks();
                let name = self.word()?;
                self.skip_blanks();
                if self.cursor.take("(") {
                    self.skip_blanks();
                    self.expect(")")?;
                }
                self.function(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// What a function does counts where it is defined, whether or not it is called.
    pub(super) fn function(&mut self, name: Word) -> Result<(), Unreadable> {
        self.notes.functions.push(name);
        self.skip_lines()?;
        self.nested(Self::command)
    }

    fn if_clause(&mut self) -> Result<(), Unreadable> {
        loop {
            self.list()?;
            self.expect_keyword("then")?;
            self.list()?;
            match self.keyword() {
                Some("elif") => {
                    self.cursor.take("elif");
                }
                Some("else") => {
                    self.cursor.take("else");
                    self.list()?;
                    return self.expect_keyword("fi");
                }
                _ => return self.expect_keyword("fi"),
            }
        }
    }

    fn do_group(&mut self) -> Result<(), Unreadable> {
        self.expect_keyword("do")?;
        self.list()?;
        self.expect_keyword("done")
    }

    fn for_clause(&mut self) -> Result<(), Unreadable> {
        self.skip_blanks();
        if self.cursor.take("((") {
            for end in [";", ";", "))"] {
                self.arithmetic(end)?;
            }
        } else {
            self.for_words()?;
        }
        self.skip_blanks();
        self.cursor.take(";");
        self.skip_lines()?;
        self.do_group()
    }

    fn for_words(&mut self) -> Result<(), Unreadable> {
        let name = self.cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.unexpected());
        }
        self.sets(name);
        self.skip_lines()?;
        if self.keyword() != Some("in") {
            return Ok(());
        }
        self.cursor.take("in");
        loop {
            self.skip_blanks();
            match self.cursor.peek() {
                Some(';' | '\n') => return Ok(()),
                _ => self.word()?,
            };
        }
    }

    fn case_clause(&mut self) -> Result<(), Unreadable> {
        self.skip_blanks();
        self.word()?;
        self.skip_lines()?;
        self.expect_keyword("in")?;
        loop {
            self.skip_lines()?;
            if self.keyword() == Some("esac") {
                return self.expect_keyword("esac");
            }
            self.cursor.take("(");
            self.patterns()?;
            self.list()?;
            if !(self.cursor.take(";;&") || self.cursor.take(";;") || self.cursor.take(";&")) {
                return self.expect_keyword("esac");
            }
        }
    }

    fn patterns(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_blanks();
            self.word()?;
            self.skip_blanks();
            if !self.cursor.take("|") {
                return self.expect(")");
            }
        }
    }

    /// The inside of `[[ ... ]]`.
    fn condition(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_lines()?;
            if self.keyword() == Some("]]") {
                self.cursor.take("]]");
                return Ok(());
            }
            if self.cursor.take("&&") || self.cursor.take("||") || self.cursor.take("(") || self.cursor.take(")") {
                continue;
            }
            let is_substitution = self.cursor.peek_second() == Some('(');
            if !is_substitution && (self.cursor.take("<") || self.cursor.take(">")) {
                continue;
            }
            let word = self.word()?;
            let operator = word.literal().unwrap_or_default();
            if matches!(operator, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R") {
                self.notes.arithmetic_reads = true;
            }
        }
    }

    /// The word at this place if it has a meaning of its own here.
    pub(super) fn keyword(&self) -> Option<&'text str> {
        let word = self.raw_word();
        let known = OPENERS.contains(&word) || CLOSERS.contains(&word) || matches!(word, "in" | "]]" | "time");
        known.then_some(word)
    }

    /// What stands up to the next character that ends a word; with its quotes, if there are any.
    fn raw_word(&self) -> &'text str {
        let rest = self.cursor.rest();
        rest.get(..rest.find(is_meta).unwrap_or(rest.len())).unwrap_or_default()
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<(), Unreadable> {
        self.skip_lines()?;
        if self.keyword() == Some(keyword) && self.cursor.take(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<(), Unreadable> {
        if self.cursor.take(text) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Blanks, line breaks that are escaped, and a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.cursor.take_while(|c| c == ' ' || c == '\t');
            if !self.cursor.take("\\\n") {
                break;
            }
        }
        if self.cursor.peek() == Some('#') {
            self.cursor.take_while(|c| c != '\n');
        }
    }

    /// As [`Parser::skip_blanks`], and line breaks with the here-documents that follow them.
    pub(super) fn skip_lines(&mut self) -> Result<(), Unreadable> {
        loop {
            self.skip_blanks();
            if !self.cursor.take("\n") {
                return Ok(());
            }
            if self.outer_waits {
                return Err(Unreadable::new("a here-document waits while a substitution goes on over a line break"));
            }
            self.here_documents()?;
        }
    }

    pub(super) fn unexpected(&self) -> Unreadable {
        match self.cursor.peek() {
            None => Unreadable::new("it ends in the middle of something"),
            Some('\n') => Unreadable::new("a line ends in the middle of something"),
            Some(_) => {
                let word = self.raw_word();
                let shown: String = if word.is_empty() { self.cursor.rest() } else { word }.chars().take(20).collect();
                let shown = shown.lines().next().unwrap_or_default();
                Unreadable::new(format!("it cannot be read from `{shown}` on"))
            }
        }
    }
}
