//! A question to a person, answered with yes or no.
//!
//! Invariant: only a terminal is asked, and anything but a clear yes is a no.

use std::io::{BufRead, IsTerminal};

use crate::console::Console;
use crate::exit::Failure;

/// What is asked, and what to do where nobody can be.
#[derive(Clone, Copy)]
pub struct Question {
    /// Ends with a question mark.
    pub words: &'static str,
    /// Completes "whether to ... can only be asked on a terminal".
    pub deed: &'static str,
    /// What to do instead.
    pub hint: &'static str,
}

/// Whether to ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consent {
    /// On the terminal.
    Ask,
    /// `--yes`.
    Given,
}

impl Consent {
    pub fn from_option(yes: bool) -> Consent {
        if yes { Consent::Given } else { Consent::Ask }
    }
}

/// Asks, unless consent is given. Blocks until there is an answer; a signal ends the process meanwhile.
///
/// # Errors
/// A usage [`Failure`] where standard input is no terminal.
pub async fn is_agreed(consent: Consent, question: Question, console: &mut Console) -> Result<bool, Failure> {
    if consent == Consent::Given {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(
            Failure::usage(format!("whether to {} can only be asked on a terminal", question.deed)).hint(question.hint)
        );
    }
    // A question that cannot be shown is not asked.
    if console.text(&format!("{} [y/N]", question.words)).await.is_err() {
        return Ok(false);
    }
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::run(format!("no answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
