//! Shell commands, read for what they would run.
//!
//! Owns: the grammar of bash as far as it can be judged, and the knowledge of which commands run other commands.
//! Must not: know rules, or touch the system. What it cannot read it says so; it never guesses.
//! Invariant: whatever the text, reading takes time linear in its length for each level of nesting, a bounded stack, and
//! never panics; and every command that bash could run for the text is in [`Reading::commands`] or covered by a doubt.
//!
//! It is a reader of our own because a general parser is the wrong tool for hostile text: those that were tried backtrack
//! (two dozen open parentheses hold them up for seconds) and recurse without bound, and they keep nested commands as text.

mod cursor;
mod expansion;
mod grammar;
mod here_document;
mod interpreter;
mod launch;
#[cfg(test)]
mod second_opinion;
mod simple;
#[cfg(test)]
mod tests;
mod variables;
mod word;

pub(crate) use word::{Word, WordValue};

use grammar::{Notes, Parser};

/// The longest command that is read, in bytes.
const MAX_BYTES: usize = 16 * 1024;
/// The deepest nesting that is read: commands in commands, substitutions in words, launchers of launchers.
const MAX_DEPTH: usize = 64;

/// What a text would run, as far as it can be told.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Reading {
    /// The commands, each after those in its words, and before those in its here-documents.
    pub(crate) commands: Vec<Command>,
    /// Files that the shell itself opens, for redirections.
    pub(crate) files: Vec<FileUse>,
    /// Commands in the values of variables that programs obey. Whether they run is up to the programs: enough to refuse
    /// them, no ground to allow anything.
    pub(crate) hinted: Vec<Command>,
    /// What stands in the way of being sure.
    pub(crate) doubts: Vec<Doubt>,
}

/// A simple command.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Command {
    /// The name first. Never empty.
    pub(crate) words: Vec<Word>,
    /// Assignments in front of it that may change what it does, as they are written.
    pub(crate) settings: Vec<String>,
    pub(crate) runs: Runs,
}

/// What a command runs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Runs {
    Itself,
    /// Commands that it was given. The first `reach` words spell out which.
    Others {
        commands: Vec<Command>,
        reach: usize,
        standing: Standing,
    },
    /// Something that the text does not show.
    Unseen(String),
}

/// What a launcher does beside running what it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Nothing that matters: `timeout`, `xargs`.
    Transparent,
    /// Something of its own: `find`; or something unknown: `./timeout`.
    AlsoItself,
    /// It runs it with other rights or elsewhere: `sudo`.
    Elevated,
}

/// A file that the shell opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileUse {
    /// None where the text does not say.
    pub(crate) path: Option<String>,
    pub(crate) access: Access,
}

/// What is done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Why a reading is not the whole truth. The texts read on from "because".
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// Something may run that is not among the commands.
    Unseen(String),
    /// What is seen may act otherwise than it looks.
    Unsettled(String),
}

impl Doubt {
    pub(crate) fn text(&self) -> &str {
        match self {
            Doubt::Unseen(text) | Doubt::Unsettled(text) => text,
        }
    }
}

impl Command {
    /// True where it, or a command that it was given, goes by that name.
    fn calls(&self, name: &str) -> bool {
        let inner = match &self.runs {
            Runs::Others { commands, .. } => commands.as_slice(),
            Runs::Itself | Runs::Unseen(_) => &[],
        };
        self.name() == Some(name) || inner.iter().any(|command| command.calls(name))
    }

    /// The command as people read it.
    pub(crate) fn shown(&self) -> String {
        let words = self.words.iter().map(|word| word.source.as_str());
        self.settings.iter().map(String::as_str).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// The name, where it is written out.
    pub(crate) fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::literal)
    }
}

/// Text that is outside the grammar. It reads on from "because".
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unreadable(String);

impl Unreadable {
    fn new(text: impl Into<String>) -> Unreadable {
        Unreadable(text.into())
    }
}

/// Reads a command line.
pub(crate) fn read(text: &str) -> Reading {
    let mut notes = Notes::default();
    let read = guard(text).and_then(|()| Parser::new(text, &mut notes, Depth::default()).program());
    if let Err(Unreadable(why)) = read {
        notes.reading.doubts.push(Doubt::Unseen(why));
    }
    if notes.arithmetic_reads {
        // Arithmetic evaluates what a variable holds, substitutions in it included; and a variable may hold a file's text
        // or a file's name, whoever chose that.
        notes
            .reading
            .doubts
            .push(Doubt::Unseen("it computes with variables, whose values may hold commands".to_owned()));
    }
    for function in &notes.functions {
        let name = function.literal();
        if name.is_none_or(|name| notes.reading.commands.iter().any(|command| command.calls(name))) {
            let why = format!("it defines `{}` itself, so that the name means something else", function.source);
            notes.reading.doubts.push(Doubt::Unsettled(why));
        }
    }
    notes.reading
}

/// What is refused before anything is read.
fn guard(text: &str) -> Result<(), Unreadable> {
    if text.len() > MAX_BYTES {
        return Err(Unreadable::new(format!("it is longer than {} KiB", MAX_BYTES / 1024)));
    }
    if let Some(c) = text.chars().find(|&c| c.is_control() && c != '\n' && c != '\t') {
        return Err(Unreadable::new(format!("it holds the control character U+{:04X}", u32::from(c))));
    }
    // What people see would not be what runs.
    if let Some(c) = text.chars().find(|&c| !c.is_ascii() && (c.is_whitespace() || is_deceptive(c))) {
        return Err(Unreadable::new(format!("it holds the deceptive character U+{:04X}", u32::from(c))));
    }
    Ok(())
}

/// Characters of no width, and those that turn the direction of writing.
fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// How deep a parser is nested, over all the texts that it came from.
#[derive(Clone, Copy, Default, Debug)]
struct Depth(usize);

impl Depth {
    fn deeper(self) -> Result<Depth, Unreadable> {
        if self.0 >= MAX_DEPTH {
            return Err(Unreadable::new(format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Depth(self.0 + 1))
    }
}
