//! Bytes to text and back, without loss.
//!
//! Must not touch files. Invariant: `encode(decode(bytes)) == bytes` for whatever decodes, so that an edit changes what
//! it was asked to change and not one byte more.

/// How a file's bytes stand for text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    Utf8,
    /// UTF-8 with a byte order mark.
    Utf8Bom,
    /// Always with a byte order mark: without one it cannot be told from binary.
    Utf16Le,
    Utf16Be,
    /// Anything else: each byte is shown as the character of that number, which loses nothing.
    Latin1,
}

/// A file's text, byte order mark aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) encoding: Encoding,
}

/// Bytes that are no text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotText {
    #[error("it is a binary file")]
    Binary,
    #[error("it begins as UTF-16 but holds broken UTF-16")]
    BrokenUtf16,
}

/// A character that a file's encoding does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the character {0:?} does not exist in the file's encoding (shown as Latin-1)")]
pub(crate) struct Unencodable(pub(crate) char);

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_LE_MARK: &[u8] = &[0xff, 0xfe];
const UTF16_BE_MARK: &[u8] = &[0xfe, 0xff];

/// Where a zero byte makes a file binary. Text that carries one later on is still shown.
const SNIFFED: usize = 8192;

impl Encoding {
    /// What the first bytes of a file say.
    pub(crate) fn of_mark(bytes: &[u8]) -> Option<Encoding> {
        [(UTF8_MARK, Encoding::Utf8Bom), (UTF16_LE_MARK, Encoding::Utf16Le), (UTF16_BE_MARK, Encoding::Utf16Be)]
            .into_iter()
            .find_map(|(mark, encoding)| bytes.starts_with(mark).then_some(encoding))
    }

    fn mark(self) -> &'static [u8] {
        match self {
            Encoding::Utf8 | Encoding::Latin1 => &[],
            Encoding::Utf8Bom => UTF8_MARK,
            Encoding::Utf16Le => UTF16_LE_MARK,
            Encoding::Utf16Be => UTF16_BE_MARK,
        }
    }

    /// A sentence for whoever reads the file, where there is something to know.
    pub(crate) fn note(self) -> Option<&'static str> {
        match self {
            Encoding::Utf8 => None,
            Encoding::Utf8Bom => Some("The file begins with a byte order mark; Edit and Write keep it."),
            Encoding::Utf16Le | Encoding::Utf16Be => Some("The file is UTF-16; Edit and Write keep that."),
            Encoding::Latin1 => Some(
                "The file is not valid UTF-8. Each byte is shown as the Latin-1 character of that number; Edit keeps the bytes.",
            ),
        }
    }
}

/// True where the bytes look like no text: a zero byte near the start, no UTF-16 mark.
pub(crate) fn looks_binary(bytes: &[u8]) -> bool {
    let sniffed = bytes.get(..SNIFFED).unwrap_or(bytes);
    !matches!(Encoding::of_mark(bytes), Some(Encoding::Utf16Le | Encoding::Utf16Be)) && sniffed.contains(&0)
}

/// Reads a file's bytes as text.
///
/// # Errors
/// [`NotText`] where they are none.
pub(crate) fn decode(bytes: &[u8]) -> Result<Text, NotText> {
    if looks_binary(bytes) {
        return Err(NotText::Binary);
    }
    let marked = Encoding::of_mark(bytes);
    let body = bytes.get(marked.map_or(0, |encoding| encoding.mark().len())..).unwrap_or_default();
    match marked {
        Some(Encoding::Utf16Le) => decode_utf16(body, u16::from_le_bytes, Encoding::Utf16Le),
        Some(Encoding::Utf16Be) => decode_utf16(body, u16::from_be_bytes, Encoding::Utf16Be),
        _ => Ok(decode_utf8_or_latin1(bytes, body, marked.unwrap_or(Encoding::Utf8))),
    }
}

fn decode_utf8_or_latin1(bytes: &[u8], body: &[u8], encoding: Encoding) -> Text {
    match std::str::from_utf8(body) {
        Ok(text) => Text { text: text.to_owned(), encoding },
        // The mark, if there is one, is then three characters like any others.
        Err(_) => Text { text: bytes.iter().copied().map(char::from).collect(), encoding: Encoding::Latin1 },
    }
}

fn decode_utf16(body: &[u8], unit: fn([u8; 2]) -> u16, encoding: Encoding) -> Result<Text, NotText> {
    let (pairs, odd) = body.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(NotText::BrokenUtf16);
    }
    let text = char::decode_utf16(pairs.iter().copied().map(unit))
        .collect::<Result<String, _>>()
        .map_err(|_| NotText::BrokenUtf16)?;
    Ok(Text { text, encoding })
}

/// Writes text as the bytes of a file in that encoding, mark included.
///
/// # Errors
/// [`Unencodable`] where the encoding lacks a character.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, Unencodable> {
    let mut bytes = encoding.mark().to_vec();
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => bytes.extend_from_slice(text.as_bytes()),
        Encoding::Utf16Le => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
        Encoding::Utf16Be => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
        Encoding::Latin1 => {
            for character in text.chars() {
                bytes.push(u8::try_from(character).map_err(|_| Unencodable(character))?);
            }
        }
    }
    Ok(bytes)
}

/// How the lines of a text end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineEndings {
    /// No line break at all.
    None,
    Lf,
    CrLf,
    Mixed,
}

/// Looks at every line break of a text.
pub(crate) fn line_endings(text: &str) -> LineEndings {
    let (mut lf, mut crlf) = (false, false);
    for (at, _) in text.match_indices('\n') {
        if text.get(..at).is_some_and(|before| before.ends_with('\r')) { crlf = true } else { lf = true }
    }
    match (lf, crlf) {
        (false, false) => LineEndings::None,
        (true, false) => LineEndings::Lf,
        (false, true) => LineEndings::CrLf,
        (true, true) => LineEndings::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], text: &str, encoding: Encoding) {
        let decoded = decode(bytes).unwrap();
        assert_eq!((decoded.text.as_str(), decoded.encoding), (text, encoding));
        assert_eq!(encode(text, encoding).unwrap(), bytes);
    }

    #[test]
    fn what_is_decoded_encodes_to_the_same_bytes() {
        check(b"", "", Encoding::Utf8);
        check("Grüße 🦀\r\n".as_bytes(), "Grüße 🦀\r\n", Encoding::Utf8);
        check(b"\xef\xbb\xbfa\r\nb", "a\r\nb", Encoding::Utf8Bom);
        check(b"\xff\xfea\0\n\0", "a\n", Encoding::Utf16Le);
        check(b"\xfe\xff\0a\xd8\x3e\xdd\x80", "a🦀", Encoding::Utf16Be);
        check(b"Gr\xfc\xdfe\x80", "Grüße\u{80}", Encoding::Latin1);
        check(b"\xef\xbb\xbf\xff", "ï»¿ÿ", Encoding::Latin1);
    }

    #[test]
    fn what_is_no_text_says_so() {
        assert_eq!(decode(b"\x7fELF\0"), Err(NotText::Binary));
        assert_eq!(decode(b"\xff\xfea"), Err(NotText::BrokenUtf16));
        assert_eq!(decode(b"\xff\xfe\x00\xd8"), Err(NotText::BrokenUtf16));
        assert_eq!(encode("ü€", Encoding::Latin1), Err(Unencodable('€')));
    }

    #[test]
    fn line_endings_are_told_apart() {
        for (text, expected) in [
            ("a\rb", LineEndings::None),
            ("a\n", LineEndings::Lf),
            ("a\r\nb\r\n", LineEndings::CrLf),
            ("a\nb\r\n", LineEndings::Mixed),
        ] {
            assert_eq!(line_endings(text), expected, "{text:?}");
        }
    }
}
