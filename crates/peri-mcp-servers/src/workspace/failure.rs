//! Why a tool did not do what it was asked, in words for the model.
//!
//! Must not become a protocol error: the model reads it and tries something else.

use super::paths::{OpenError, PlaceError};
use super::threads::Unfinished;

/// The text of an error result. It names what failed, with what input, and where it can what to do instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failure(String);

impl Failure {
    pub(super) fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// A file that cannot be opened for what the tool wanted to do (`read`, `edit`).
    pub(super) fn cannot(verb: &str, shown: &str, error: &OpenError) -> Failure {
        Failure(format!("Cannot {verb} {shown}: {error}."))
    }

    /// Work that came to no result of its own.
    pub(super) fn unfinished<F>(unfinished: &Unfinished<F>) -> Failure {
        Failure(match unfinished {
            Unfinished::NoThread { error, .. } => format!(
                "The tool was not run: the system gives no thread for it ({error}). Too many processes may be running."
            ),
            Unfinished::Died => "The tool itself failed.".to_owned(),
        })
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Failure {
        Failure(error.to_string())
    }
}
