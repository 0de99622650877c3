//! Names and ids as the wires allow them: `[A-Za-z0-9_-]`, of a length that each wire bounds in its own way.
//!
//! A transcript may hold others: of another provider, of an endpoint that is less strict, or made up by the model.
//! Invariant: what the wire allows passes unchanged, and different texts stay different.

use std::borrow::Cow;

/// The text itself where a wire that takes at most so many bytes allows it, else one that it allows and that belongs to
/// this text only. No wire takes less than 34 bytes.
pub(crate) fn allowed(text: &str, max_bytes: usize) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !text.is_empty() && text.len() <= max_bytes && text.bytes().all(fits) {
        return Cow::Borrowed(text);
    }
    let kept: String =
        text.bytes().take(max_bytes / 2).map(|byte| if fits(byte) { char::from(byte) } else { '_' }).collect();
    Cow::Owned(format!("{kept}-{:016x}", fingerprint(text)))
}

/// FNV-1a, 64 bits: the same on every machine and in every release, which the prompt cache needs.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_passes_and_the_rest_becomes_allowed_and_stays_apart() {
        assert_eq!(allowed("toolu_01-Ab", 128), "toolu_01-Ab");
        let long = "x".repeat(5000);
        let odd = ["", "functions.Read:0", "functions_Read_0!", "functions_Read:0", "漢字", "漢学", &long];
        for max_bytes in [40, 64, 128] {
            let mapped: std::collections::HashSet<String> =
                odd.iter().map(|text| allowed(text, max_bytes).into_owned()).collect();
            assert_eq!(mapped.len(), odd.len());
            for text in &mapped {
                assert_eq!(allowed(text, max_bytes), text.as_str(), "must pass itself");
            }
        }
    }
}
