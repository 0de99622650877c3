//! The two output streams, and how they look.
//!
//! Owns: standard output and standard error of a run: nothing else in this crate writes to them while one is under way.
//! Must not: block the runtime's thread, or a stuck reader would keep a signal from being handled.
//! Invariants: standard output gets what the format defines and nothing else; control characters of a model or a tool never
//! reach a terminal; a notice is shown once.

use std::collections::HashSet;
use std::io::{self, IsTerminal};

use tokio::io::{AsyncWrite, AsyncWriteExt, Stderr, Stdout};

use crate::exit::Failure;

/// Where a run writes to.
pub struct Console {
    stdout: Stdout,
    stderr: Stderr,
    look: Look,
    shown_notices: HashSet<String>,
}

/// How a run looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    pub progress: ProgressTo,
    pub stdout_is_terminal: bool,
    pub colour: Colour,
}

/// Where progress lines go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgressTo {
    Nowhere,
    Stderr,
    /// The demo: progress is what it is about.
    Stdout,
}

/// Whether standard error gets colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    Plain,
    Ansi,
}

/// How much a run tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verbosity {
    /// Progress on a terminal.
    Usual,
    /// Progress anyway.
    Verbose,
}

impl Look {
    /// The look that fits the streams of this process and these variables.
    pub fn detect(verbosity: Verbosity, env: impl Fn(&str) -> Option<String>) -> Look {
        let stderr_is_terminal = io::stderr().is_terminal();
        let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty() && value != "0");
        // NO_COLOR counts whenever it is not empty, whatever it says.
        let colour = if env("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            Colour::Plain
        } else if is_set("CLICOLOR_FORCE") || (stderr_is_terminal && env("TERM").as_deref() != Some("dumb")) {
            Colour::Ansi
        } else {
            Colour::Plain
        };
        let progress = match stderr_is_terminal || verbosity == Verbosity::Verbose {
            true => ProgressTo::Stderr,
            false => ProgressTo::Nowhere,
        };
        Look { progress, stdout_is_terminal: io::stdout().is_terminal(), colour }
    }
}

/// The colours in use, by meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Quiet,
    Good,
    Warning,
    Bad,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Quiet => "\x1b[2m",
            Tone::Good => "\x1b[32m",
            Tone::Warning => "\x1b[33m",
            Tone::Bad => "\x1b[31m",
        }
    }
}

impl Console {
    pub fn new(look: Look) -> Console {
        Console { stdout: tokio::io::stdout(), stderr: tokio::io::stderr(), look, shown_notices: HashSet::new() }
    }

    /// The same streams, with progress where the answer is: in the demo it is what there is to see.
    #[must_use]
    pub fn with_progress_on_stdout(self) -> Console {
        // Colour was chosen for standard error, which may be a terminal where this one is a file.
        let colour = if self.look.stdout_is_terminal { self.look.colour } else { Colour::Plain };
        Console { look: Look { progress: ProgressTo::Stdout, colour, ..self.look }, ..self }
    }

    /// Writes lines of a machine format. A newline is added.
    ///
    /// # Errors
    /// Where standard output is gone or full.
    pub async fn line(&mut self, text: &str) -> io::Result<()> {
        write(&mut self.stdout, &format!("{text}\n")).await
    }

    /// Writes text for people. It ends with a newline in any case.
    ///
    /// # Errors
    /// Where standard output is gone or full.
    pub async fn text(&mut self, text: &str) -> io::Result<()> {
        let shown = if self.look.stdout_is_terminal { printable(text) } else { text.to_owned() };
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        write(&mut self.stdout, &format!("{shown}{end}")).await
    }

    /// Shows that something goes on, in one line. A stream that is gone is nobody's loss here.
    pub async fn progress(&mut self, tone: Tone, text: &str) {
        let line = format!("{}\n", self.paint(tone, &one_line(text)));
        match self.look.progress {
            ProgressTo::Nowhere => {}
            ProgressTo::Stderr => drop(write(&mut self.stderr, &line).await),
            ProgressTo::Stdout => drop(write(&mut self.stdout, &line).await),
        }
    }

    /// Tells the user something on standard error, once.
    pub async fn notice(&mut self, text: &str) {
        if !self.shown_notices.insert(text.to_owned()) {
            return;
        }
        let line = format!("{} {}\n", self.paint(Tone::Warning, "peri:"), printable(text));
        drop(write(&mut self.stderr, &line).await);
    }

    /// Tells a failure on standard error.
    pub async fn failure(&mut self, failure: &Failure) {
        let text = format!("{} {}\n", self.paint(Tone::Bad, "peri: error:"), printable(&failure.to_string()));
        drop(write(&mut self.stderr, &text).await);
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        match self.look.colour {
            Colour::Plain => text.to_owned(),
            Colour::Ansi => format!("{}{text}\x1b[0m", tone.code()),
        }
    }
}

/// Tokio's standard streams write on a thread of their own; an error shows at the flush.
async fn write(stream: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

/// The text without control characters, less newline and tab.
pub fn printable(text: &str) -> String {
    text.chars().filter(|character| matches!(character, '\n' | '\t') || !character.is_control()).collect()
}

/// The text's first line, without control characters, cut to what fits a terminal well.
pub fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 160;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let mut line: String = first.chars().filter(|character| !character.is_control()).take(MAX_CHARS).collect();
    if first.chars().count() > MAX_CHARS || lines.next().is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(printable("a\x1b]0;title\x07b\n\tc\u{9b}1m"), "a]0;titleb\n\tc1m");
        assert_eq!(one_line("Bash: ls\nrm -rf x"), "Bash: ls…");
        assert_eq!(one_line("\x1b[31mred"), "[31mred");
    }
}
