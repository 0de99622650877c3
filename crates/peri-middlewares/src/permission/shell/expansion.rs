//! What begins with `$` or a backquote: substitutions are read as commands, operands are searched for them.

use super::Unreadable;
use super::grammar::Parser;
use super::word::WordBuilder;

/// The quotes around an expansion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    /// Double quotes or a here-document.
    Double,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_special_parameter(c: char) -> bool {
    matches!(c, '@' | '*' | '#' | '?' | '-' | '$' | '!')
}

impl<'text> Parser<'text, '_> {
    /// What begins with the `$` at this place.
    pub(super) fn dollar(&mut self, word: &mut WordBuilder, quoting: Quoting) -> Result<(), Unreadable> {
        self.cursor.next();
        match self.cursor.peek() {
            Some('(') => {
                word.vary();
                if self.cursor.take("((") {
                    self.nested(|parser| parser.arithmetic("))"))
                } else {
                    self.cursor.next();
                    self.substituted()
                }
            }
            Some('{') => {
                word.vary();
                self.cursor.next();
                self.nested(|parser| parser.parameter(quoting))
            }
            Some('[') => Err(Unreadable::new("it holds arithmetic of an old form, `$[`")),
            Some('\'') if quoting == Quoting::None => self.ansi_quoted(word),
            Some('"') if quoting == Quoting::None => {
                word.vary();
                self.double_quoted(word)
            }
            Some('\\') if self.cursor.peek_second() == Some('\n') => {
                Err(Unreadable::new("a line is broken right after `$`"))
            }
            Some(c) if c.is_ascii_digit() || is_special_parameter(c) => {
                word.vary();
                self.cursor.next();
                Ok(())
            }
            Some(c) if is_name(c) => {
                word.vary();
                self.cursor.take_while(is_name);
                Ok(())
            }
            _ => {
                word.push_quoted('$');
                Ok(())
            }
        }
    }

    /// A substitution in backquotes, from the first one on.
    pub(super) fn backquoted(&mut self) -> Result<(), Unreadable> {
        self.cursor.next();
        let begin = self.cursor;
        loop {
            match self.cursor.peek() {
                None => return Err(Unreadable::new("a backquote is not closed")),
                // Backslashes in backquotes mean different things at each level.
                Some('\\') => return Err(Unreadable::new("a backslash stands between backquotes")),
                Some('`') => break,
                Some('\n') => self.pass_line_break()?,
                Some(_) => {
                    self.cursor.next();
                }
            }
        }
        let inside = self.cursor.since(begin);
        self.cursor.next();
        let depth = self.depth.deeper()?;
        Parser::new(inside, self.notes, depth).program()
    }

    /// `${...}` after its brace.
    fn parameter(&mut self, quoting: Quoting) -> Result<(), Unreadable> {
        if self.cursor.peek() == Some('#') && self.cursor.peek_second() != Some('}') {
            self.cursor.next();
        }
        let name = self.parameter_name()?;
        if self.cursor.take("[") && !self.cursor.take("@]") && !self.cursor.take("*]") {
            self.arithmetic("]")?;
        }
        match self.cursor.next() {
            Some('}') => Ok(()),
            Some(':') if !matches!(self.cursor.peek(), Some('-' | '=' | '?' | '+')) => self.arithmetic("}"),
            Some(':') => {
                if self.cursor.next() == Some('=') {
                    self.sets(name);
                }
                self.operand(quoting)
            }
            Some('=') => {
                self.sets(name);
                self.operand(quoting)
            }
            Some('-' | '?' | '+' | '%' | '#' | '/' | '^' | ',') => self.operand(quoting),
            // Other transformations evaluate the value.
            Some('@') if self.cursor.take("Q") || self.cursor.take("U") || self.cursor.take("L") => self.expect("}"),
            _ => Err(Unreadable::new(format!("the expansion of `{name}` has a form that evaluates its value"))),
        }
    }

    fn parameter_name(&mut self) -> Result<&'text str, Unreadable> {
        let begin = self.cursor;
        match self.cursor.peek() {
            Some('!') => return Err(Unreadable::new("it holds an indirect expansion, `${!`")),
            Some(c) if is_special_parameter(c) => {
                self.cursor.next();
            }
            _ => {
                self.cursor.take_while(is_name);
            }
        }
        match self.cursor.since(begin) {
            "" => Err(Unreadable::new("it holds an expansion without a name")),
            name => Ok(name),
        }
    }

    /// The operand of an expansion, up to and with its brace.
    fn operand(&mut self, quoting: Quoting) -> Result<(), Unreadable> {
        let mut text = WordBuilder::default();
        while let Some(c) = self.cursor.peek() {
            match c {
                '}' => {
                    self.cursor.next();
                    return Ok(());
                }
                '\'' | '"' if quoting == Quoting::Double => {
                    return Err(Unreadable::new("quotes stand in an expansion that is quoted itself"));
                }
                '\'' => self.skip_single_quoted()?,
                '"' => self.double_quoted(&mut text)?,
                '\\' => {
                    self.cursor.next();
                    if self.cursor.next() == Some('\n') {
                        return Err(Unreadable::new("a line is broken within an expansion"));
                    }
                }
                '$' => self.dollar(&mut text, quoting)?,
                '`' => self.backquoted()?,
                '<' | '>' if self.cursor.peek_second() == Some('(') => {
                    self.cursor.next();
                    self.cursor.next();
                    self.substituted()?;
                }
                '\n' => self.pass_line_break()?,
                _ => {
                    self.cursor.next();
                }
            }
        }
        Err(Unreadable::new("an expansion is not closed"))
    }

    fn skip_single_quoted(&mut self) -> Result<(), Unreadable> {
        let mut text = WordBuilder::default();
        self.single_quoted(&mut text)
    }

    /// Arithmetic up to and with its end. Only what cannot hold a command is read: numbers, names, operators. Two operands
    /// side by side are none: a shell may take the parentheses around them for those of a command.
    pub(super) fn arithmetic(&mut self, end: &str) -> Result<(), Unreadable> {
        let (mut parentheses, mut brackets) = (0usize, 0usize);
        let mut after_operand = false;
        loop {
            if parentheses == 0 && brackets == 0 && self.cursor.take(end) {
                return Ok(());
            }
            let Some(c) = self.cursor.peek() else {
                return Err(Unreadable::new("arithmetic is not closed"));
            };
            if after_operand && (is_name(c) || c == '$' || c == '(') {
                return Err(Unreadable::new("arithmetic lacks an operator"));
            }
            match c {
                '\n' => {
                    self.pass_line_break()?;
                    continue;
                }
                ' ' | '\t' => {
                    self.cursor.next();
                    continue;
                }
                c if is_name(c) || c == '$' => {
                    self.arithmetic_operand()?;
                    after_operand = true;
                    continue;
                }
                '(' => parentheses += 1,
                ')' if parentheses > 0 => parentheses -= 1,
                '[' => brackets += 1,
                ']' if brackets > 0 => brackets -= 1,
                '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '&' | '|' | '^' | '~' | '?' | ':' | ',' | '#' => {
                }
                _ => return Err(Unreadable::new(format!("arithmetic holds `{c}`"))),
            }
            after_operand = matches!(c, ')' | ']');
            self.cursor.next();
        }
    }

    /// A number, a name or a parameter.
    fn arithmetic_operand(&mut self) -> Result<(), Unreadable> {
        if self.cursor.peek() == Some('$') {
            return self.arithmetic_parameter();
        }
        let text = self.cursor.take_while(is_name);
        self.notes.arithmetic_reads |= !text.starts_with(|c: char| c.is_ascii_digit());
        Ok(())
    }

    fn arithmetic_parameter(&mut self) -> Result<(), Unreadable> {
        self.cursor.next();
        let braced = self.cursor.take("{");
        match self.cursor.peek() {
            // Numbers by their nature.
            Some('#' | '?' | '$') if !braced => {
                self.cursor.next();
            }
            Some(c) if is_name(c) => {
                self.cursor.take_while(is_name);
                self.notes.arithmetic_reads = true;
            }
            _ => return Err(Unreadable::new("arithmetic holds an expansion")),
        }
        if braced { self.expect("}") } else { Ok(()) }
    }
}
