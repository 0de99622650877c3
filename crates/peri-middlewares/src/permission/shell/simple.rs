//! Simple commands: assignments, words, redirections.

use super::grammar::{Notes, Parser, is_meta};
use super::launch::{Launch, launch};
use super::variables::is_harmless;
use super::word::{Word, WordValue};
use super::{Access, Command, Doubt, FileUse, Runs, Standing, Unreadable};

/// Folders whose programs are the system's.
const SYSTEM_FOLDERS: [&str; 6] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// A program that is named by a path outside the system's folders.
fn is_own_program(name: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(folder, _)| !SYSTEM_FOLDERS.contains(&folder))
}

/// Redirections that take a word, the longest first.
const REDIRECTIONS: [&str; 11] = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<"];

impl Parser<'_, '_> {
    /// A simple command, or the definition of a function.
    pub(super) fn simple(&mut self) -> Result<(), Unreadable> {
        let mut words: Vec<Word> = Vec::new();
        let mut assigned: Vec<Assigned> = Vec::new();
        let mut redirected = false;
        loop {
            self.skip_blanks();
            if self.redirection()? {
                redirected = true;
                continue;
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assigned.push(assignment);
                continue;
            }
            match self.cursor.peek() {
                Some('(') if words.len() == 1 && assigned.is_empty() && !redirected => {
                    self.cursor.next();
                    self.skip_blanks();
                    self.expect(")")?;
                    return words.pop().map_or(Ok(()), |name| self.function(name));
                }
                // A process substitution is a word, any other of these ends the command.
                Some('<' | '>') => {}
                None => break,
                Some(c) if is_meta(c) => break,
                Some(_) => {}
            }
            let word = self.word()?;
            if word.source.starts_with('{') && matches!(self.cursor.peek(), Some('<' | '>')) {
                return Err(Unreadable::new("a redirection names a variable for its descriptor"));
            }
            words.push(word);
        }
        if words.is_empty() && assigned.is_empty() && !redirected {
            return Err(self.unexpected());
        }
        self.record(words, assigned);
        Ok(())
    }

    /// Notes a command; or, if there are no words, what its assignments set for those that follow.
    fn record(&mut self, words: Vec<Word>, assigned: Vec<Assigned>) {
        if let Some(name) = words.first() {
            // How `read` splits its input.
            let splits = |it: &Assigned| it.name == "IFS" && name.literal() == Some("read");
            let telling: Vec<Assigned> = assigned.into_iter().filter(|it| !it.harmless && !splits(it)).collect();
            telling.iter().for_each(|it| self.hint(&it.value));
            let settings = telling.into_iter().map(|it| it.source).collect();
            let command = self.command_of(words, settings);
            self.notes.reading.commands.push(command);
            return;
        }
        for assignment in assigned.into_iter().filter(|it| !it.harmless) {
            self.sets(&assignment.name);
            self.hint(&assignment.value);
        }
    }

    /// A command with what it runs, as deep as launchers go.
    fn command_of(&mut self, words: Vec<Word>, settings: Vec<String>) -> Command {
        let mut runs = self.nested(|parser| parser.runs(&words)).unwrap_or_else(|Unreadable(why)| Runs::Unseen(why));
        if let Runs::Others { standing: standing @ Standing::Transparent, .. } = &mut runs
            && words.first().and_then(Word::literal).is_some_and(is_own_program)
        {
            // `./nohup` is called like a launcher; what it is, its owner knows.
            *standing = Standing::AlsoItself;
        }
        Command { words, settings, runs }
    }

    fn runs(&mut self, words: &[Word]) -> Result<Runs, Unreadable> {
        match launch(words) {
            Launch::Itself => Ok(Runs::Itself),
            Launch::Unseen(why) => Ok(Runs::Unseen(why)),
            Launch::Sets { names } => {
                self.hint_assigned(words);
                for name in names {
                    self.sets(&name);
                }
                Ok(Runs::Itself)
            }
            Launch::Words { commands, settings, reach, standing } => {
                if !settings.is_empty() {
                    self.hint_assigned(words);
                }
                let mut inner = Vec::new();
                for words in commands {
                    inner.push(self.command_of(words, settings.clone()));
                }
                Ok(Runs::Others { commands: inner, reach, standing })
            }
            Launch::Script { text, reach } => {
                let outside = std::mem::take(&mut self.notes.reading.commands);
                let read = Parser::new(&text, self.notes, self.depth).program();
                let commands = std::mem::replace(&mut self.notes.reading.commands, outside);
                read?;
                Ok(Runs::Others { commands, reach, standing: Standing::Transparent })
            }
        }
    }

    /// As [`Parser::hint`], for words that are assignments.
    fn hint_assigned(&mut self, words: &[Word]) {
        let values = words.iter().filter_map(|word| word.literal()?.split_once('='));
        for (_, value) in values.filter(|(name, _)| !is_harmless(name)) {
            self.hint(value);
        }
    }

    /// Looks for commands in a value. What cannot be read in it is no concern: few values are commands.
    fn hint(&mut self, value: &str) {
        let Ok(depth) = self.depth.deeper() else { return };
        let mut notes = Notes::default();
        let _ = Parser::new(value, &mut notes, depth).program();
        self.notes.reading.hinted.extend(notes.reading.commands);
    }

    /// Notes that a variable is set for what follows.
    pub(super) fn sets(&mut self, name: &str) {
        if !is_harmless(name) {
            let doubt = Doubt::Unsettled(format!("it sets `{name}`, which may change what other commands do"));
            self.notes.reading.doubts.push(doubt);
        }
    }

    /// An assignment, if one begins here.
    fn assignment(&mut self) -> Result<Option<Assigned>, Unreadable> {
        let begin = self.cursor;
        let name = self.cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            self.cursor = begin;
            return Ok(None);
        }
        if self.is_element_assignment() {
            self.cursor.next();
            self.arithmetic("]")?;
        }
        if !self.cursor.take("=") && !self.cursor.take("+=") {
            self.cursor = begin;
            return Ok(None);
        }
        let value = match self.cursor.peek() {
            Some('(') => {
                self.array()?;
                None
            }
            Some('<' | '>') if self.cursor.peek_second() == Some('(') => Some(self.word()?),
            None => None,
            Some(c) if is_meta(c) => None,
            Some(_) => Some(self.word()?),
        };
        let (name, source) = (name.to_owned(), self.cursor.since(begin).to_owned());
        let value = value.as_ref().and_then(Word::literal).unwrap_or_default().to_owned();
        Ok(Some(Assigned { harmless: is_harmless(&name), name, source, value }))
    }

    /// True before `[index]=` or `[index]+=`.
    fn is_element_assignment(&self) -> bool {
        let rest = self.cursor.rest();
        rest.starts_with('[')
            && rest.split_once(']').is_some_and(|(index, after)| {
                !index.contains([' ', '\t', '\n']) && (after.starts_with('=') || after.starts_with("+="))
            })
    }

    fn array(&mut self) -> Result<(), Unreadable> {
        self.cursor.next();
        loop {
            self.skip_lines()?;
            match self.cursor.peek() {
                Some(')') => {
                    self.cursor.next();
                    return match self.cursor.peek() {
                        // What follows belongs to the value.
                        Some(c) if !is_meta(c) => Err(self.unexpected()),
                        _ => Ok(()),
                    };
                }
                Some('[') => return Err(Unreadable::new("an array is given with its indices")),
                _ => self.word()?,
            };
        }
    }

    /// A redirection, if one begins here.
    pub(super) fn redirection(&mut self) -> Result<bool, Unreadable> {
        let begin = self.cursor;
        let descriptor = self.cursor.take_while(|c| c.is_ascii_digit());
        let rest = self.cursor.rest();
        let operator = REDIRECTIONS.into_iter().chain([">"]).find(|operator| rest.starts_with(operator));
        let is_substitution = rest.starts_with("<(") || rest.starts_with(">(");
        let operator = operator.filter(|it| !is_substitution && (descriptor.is_empty() || !it.starts_with('&')));
        let Some(operator) = operator else {
            self.cursor = begin;
            return Ok(false);
        };
        self.cursor.take(operator);
        if operator == "<<" || operator == "<<-" {
            self.here_document(operator)?;
            return Ok(true);
        }
        self.skip_blanks();
        let target = self.word()?;
        match operator {
            "<<<" => {}
            "<&" | ">&" if is_descriptor(&target) => {}
            "<" | "<&" => self.opens(&target, Access::Read),
            _ => self.opens(&target, Access::Write),
        }
        Ok(true)
    }

    fn opens(&mut self, target: &Word, access: Access) {
        let path = match &target.value {
            WordValue::Literal(path) if is_stream(path) => return,
            WordValue::Literal(path) if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
                self.notes.reading.doubts.push(Doubt::Unsettled(format!("it opens a connection, `{path}`")));
                return;
            }
            WordValue::Literal(path) | WordValue::Home(path) => Some(path.clone()),
            WordValue::Varying => None,
        };
        let file = FileUse { path, access };
        if !self.notes.reading.files.contains(&file) {
            self.notes.reading.files.push(file);
        }
    }
}

struct Assigned {
    name: String,
    source: String,
    /// Empty where it is not written out.
    value: String,
    harmless: bool,
}

/// What `>&` may be followed by so that no file is opened: `1`, `-`, `2-`.
fn is_descriptor(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        !text.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    })
}

/// Files that stand for nothing or for a stream that is open already.
fn is_stream(path: &str) -> bool {
    let stream = path.strip_prefix("/dev/");
    stream.is_some_and(|name| {
        matches!(name, "null" | "stdin" | "stdout" | "stderr")
            || name.strip_prefix("fd/").is_some_and(|fd| !fd.is_empty() && fd.chars().all(|c| c.is_ascii_digit()))
    })
}
