//! Text whose characters may be cut in two between events.
//!
//! An endpoint that slices its text by UTF-16 units ends one JSON string with `\ud83e` and begins the next with `\udd80`. No
//! such half is a character, so each string alone does not decode; together they do.
//! Invariant: text without such halves passes as it is; a half that is followed by anything but its other is U+FFFD.

use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;

/// The bytes of half a surrogate pair, as a generalised UTF-8 would write them.
const HALF_BYTES: usize = 3;

/// Decodes JSON strings that follow each other.
#[derive(Debug, Default)]
pub(crate) struct TextDecoder {
    /// The first half of a pair, waiting for the second.
    pending: Option<u32>,
}

impl TextDecoder {
    /// The text of the next string, as far as its characters are whole.
    ///
    /// # Errors
    /// Where it is no JSON string.
    pub(crate) fn decode(&mut self, raw: &RawValue) -> Result<String, serde_json::Error> {
        if self.pending.is_none()
            && let Ok(text) = serde_json::from_str::<String>(raw.get())
        {
            return Ok(text);
        }
        let bytes = serde_json::Deserializer::from_str(raw.get()).deserialize_byte_buf(BytesVisitor)?;
        Ok(self.join(&bytes))
    }

    fn join(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len() + 1);
        let mut rest = bytes;
        while !rest.is_empty() {
            let whole = match std::str::from_utf8(rest) {
                Ok(whole) => whole,
                Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
            };
            if !whole.is_empty() {
                self.drop_pending(&mut text);
                text.push_str(whole);
            }
            rest = &rest[whole.len()..];
            if rest.is_empty() {
                break;
            }
            let (half, after) = rest.split_at(rest.len().min(HALF_BYTES));
            self.take_half(half, &mut text);
            rest = after;
        }
        text
    }

    fn take_half(&mut self, half: &[u8], text: &mut String) {
        let unit = match half {
            [0xED, high, low] => 0xD000 | (u32::from(high & 0x3F) << 6) | u32::from(low & 0x3F),
            _ => return text.push(char::REPLACEMENT_CHARACTER),
        };
        match self.pending {
            Some(first) if unit >= 0xDC00 => {
                self.pending = None;
                let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (unit - 0xDC00);
                text.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ if unit < 0xDC00 => {
                self.drop_pending(text);
                self.pending = Some(unit);
            }
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }

    fn drop_pending(&mut self, text: &mut String) {
        if self.pending.take().is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(strings: &[&str], expect: &[&str]) {
        let mut decoder = TextDecoder::default();
        let decoded: Vec<String> = strings
            .iter()
            .map(|json| {
                let raw = RawValue::from_string((*json).to_owned()).expect("JSON");
                decoder.decode(&raw).expect("a string")
            })
            .collect();
        assert_eq!(decoded, expect, "{strings:?}");
    }

    #[test]
    fn halves_of_a_pair_meet_across_strings() {
        check(&[r#""a""#, r#""漢\n🦀""#], &["a", "漢\n🦀"]);
        check(&[r#""a\ud83e""#, r#""\udd80b""#], &["a", "🦀b"]);
        check(&[r#""\ud83e""#, r#""""#, r#""\udd80\ud83e\udd80\ud83e""#, r#""\udd80""#], &["", "", "🦀🦀", "🦀"]);
    }

    #[test]
    fn a_half_without_its_other_is_marked() {
        check(&[r#""\ud83e""#, r#""x""#], &["", "\u{fffd}x"]);
        check(&[r#""\udd80x\ud83e\ud83e""#, r#""\udd80""#], &["\u{fffd}x\u{fffd}", "🦀"]);
    }

    #[test]
    fn what_is_no_string_is_an_error() {
        let raw = RawValue::from_string("7".to_owned()).expect("JSON");
        assert!(TextDecoder::default().decode(&raw).is_err());
    }
}
