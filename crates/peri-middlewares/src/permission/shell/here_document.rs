//! Here-documents: where their bodies end, and what the shell expands in them.

use super::Unreadable;
use super::expansion::Quoting;
use super::grammar::Parser;
use super::word::WordBuilder;

/// A here-document whose body has not begun yet.
pub(super) struct PendingDocument {
    delimiter: String,
    strip_tabs: bool,
    /// False where the delimiter is quoted: the body is taken as it is.
    expands: bool,
}

impl Parser<'_, '_> {
    /// What follows `<<` or `<<-`.
    pub(super) fn here_document(&mut self, operator: &str) -> Result<(), Unreadable> {
        self.skip_blanks();
        let word = self.word()?;
        let Some(delimiter) = word.literal() else {
            return Err(Unreadable::new("the end of a here-document is not written out"));
        };
        self.pending.push(PendingDocument {
            delimiter: delimiter.to_owned(),
            strip_tabs: operator == "<<-",
            expands: !word.source.contains(['\'', '"', '\\']),
        });
        Ok(())
    }

    /// Reads the bodies that begin here, right after a line break.
    pub(super) fn here_documents(&mut self) -> Result<(), Unreadable> {
        for document in std::mem::take(&mut self.pending) {
            let begin = self.cursor;
            let body = loop {
                let body = self.cursor.since(begin);
                let line = self.cursor.take_while(|c| c != '\n');
                let bare = if document.strip_tabs { line.trim_start_matches('\t') } else { line };
                let last_line = !self.cursor.take("\n");
                if bare == document.delimiter {
                    break body;
                }
                if last_line {
                    return Err(Unreadable::new(format!("the here-document `{}` has no end", document.delimiter)));
                }
            };
            if document.expands {
                let depth = self.depth.deeper()?;
                Parser::new(body, self.notes, depth).here_document_body()?;
            }
        }
        Ok(())
    }

    fn here_document_body(mut self) -> Result<(), Unreadable> {
        let mut text = WordBuilder::default();
        while let Some(c) = self.cursor.peek() {
            match c {
                '\\' => {
                    self.cursor.next();
                    if self.cursor.next() == Some('\n') {
                        // It joins lines before the end is looked for, so that the body may end elsewhere.
                        return Err(Unreadable::new("a line of a here-document ends in a backslash"));
                    }
                }
                '$' => self.dollar(&mut text, Quoting::Double)?,
                '`' => self.backquoted()?,
                _ => {
                    self.cursor.next();
                }
            }
        }
        Ok(())
    }

    /// A line break outside the grammar's own, in quotes say: it must not lie between a here-document and its body.
    pub(super) fn pass_line_break(&mut self) -> Result<(), Unreadable> {
        self.cursor.next();
        if self.outer_waits || !self.pending.is_empty() {
            return Err(Unreadable::new("a here-document waits while a word goes on over a line break"));
        }
        Ok(())
    }

    pub(super) fn no_document_waits(&self) -> Result<(), Unreadable> {
        match self.pending.first() {
            None => Ok(()),
            Some(document) => Err(Unreadable::new(format!("the here-document `{}` has no end", document.delimiter))),
        }
    }
}
