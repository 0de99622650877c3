//! Members of JSON objects as endpoints send them: missing, null, or of a kind that nobody expected.
//!
//! Owns the words for what cannot be read, and the joining of texts that come in pieces.
//! Invariant: a member is parsed only by who needs it, so that an odd one elsewhere does no harm.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::utf16::TextDecoder;
use crate::wire::ReadError;

/// A member that may be missing or null.
pub(crate) fn member<T: DeserializeOwned>(raw: Option<&RawValue>, name: &str) -> Result<Option<T>, ReadError> {
    raw.map_or(Ok(None), |raw| parse(raw.get(), name))
}

/// A member that must be there, in the form of `T`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(json: &'a str, name: &str) -> Result<T, ReadError> {
    serde_json::from_str(json).map_err(|error| unreadable(name, &error))
}

/// A member that counts as missing where it is not of the form of `T`.
pub(crate) fn lenient<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

pub(crate) fn unreadable(name: &str, error: &serde_json::Error) -> ReadError {
    ReadError::Unreadable(format!("`{name}` of the answer cannot be read: {error}"))
}

/// Texts in pieces. A character may be cut between two pieces of one part.
#[derive(Debug, Default)]
pub(crate) struct TextPieces {
    /// The part that a piece came for last.
    index: u64,
    decoder: TextDecoder,
}

impl TextPieces {
    /// A part begins under that index: what was left of another under it does not belong to it.
    pub(crate) fn restart(&mut self, index: u64) {
        *self = TextPieces { index, decoder: TextDecoder::default() };
    }

    /// The next piece of the part's text; None where the member is missing or null.
    ///
    /// # Errors
    /// [`ReadError::Unreadable`] where it is no string.
    pub(crate) fn piece(&mut self, index: u64, text: Option<&RawValue>) -> Result<Option<String>, ReadError> {
        let Some(text) = text.filter(|text| text.get() != "null") else { return Ok(None) };
        if self.index != index {
            self.restart(index);
        }
        self.decoder.decode(text).map(Some).map_err(|error| unreadable("text", &error))
    }
}
