//! Server-sent events: bytes in, events out.
//!
//! Owns the framing and nothing of the meaning. It cuts the stream on bytes and leaves decoding to the reader of an event,
//! so that a character which arrives in pieces is whole again before anyone looks at it.
//! Invariant: neither a line nor an event takes more than [`MAX_EVENT_BYTES`], and no byte is scanned twice.

use memchr::memchr2;

/// The largest event, and the largest line, that is taken in.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decodes a stream that is fed piece by piece.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    /// Bytes as they came; those before `taken` are done with.
    buffer: Vec<u8>,
    taken: usize,
    /// Bytes from `taken` on that are known to hold no line end: an unfinished line is not scanned again.
    scanned: usize,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// A line has been read, so that a byte order mark can no longer come.
    begun: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    /// The event under construction has a `data` line.
    has_data: bool,
    /// `name` and `data` are an event that was handed out.
    handed_out: bool,
}

/// One event. `data` lines are joined by LF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SseEvent<'a> {
    /// Empty where the stream does not name it.
    pub name: &'a [u8],
    pub data: &'a [u8],
}

/// A stream that is no event stream of a sane size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
pub(crate) struct SseTooLarge;

impl SseDecoder {
    /// Takes the next piece. All events of the piece before it should have been read, or they are kept in memory.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole event; None until more is fed.
    ///
    /// # Errors
    /// [`SseTooLarge`]; the decoder must not be used after it.
    pub(crate) fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseTooLarge> {
        self.clear_handed_out();
        while let Some((start, end)) = self.next_line() {
            if self.take_line(start, end)? {
                return Ok(Some(self.hand_out()));
            }
        }
        if self.buffer.len() - self.taken > MAX_EVENT_BYTES { Err(SseTooLarge) } else { Ok(None) }
    }

    /// What is left when the stream has ended: an event whose last line or closing blank line is missing. It may be cut
    /// short, which only its reader can tell.
    pub(crate) fn finish(&mut self) -> Option<SseEvent<'_>> {
        self.clear_handed_out();
        let (start, end) = (self.taken, self.buffer.len());
        self.taken = end;
        if start < end && self.take_line(start, end).is_err() {
            return None;
        }
        self.has_data.then(|| self.hand_out())
    }

    fn hand_out(&mut self) -> SseEvent<'_> {
        self.handed_out = true;
        SseEvent { name: &self.name, data: &self.data }
    }

    fn clear_handed_out(&mut self) {
        if self.handed_out {
            self.clear_event();
            self.handed_out = false;
        }
    }

    fn clear_event(&mut self) {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }

    /// Bounds of the next whole line in the buffer, without its end.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.after_cr && self.taken < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.taken] == b'\n' {
                self.taken += 1;
            }
        }
        let unseen = &self.buffer[self.taken + self.scanned..];
        let Some(offset) = memchr2(b'\n', b'\r', unseen) else {
            self.scanned += unseen.len();
            return None;
        };
        let (start, end) = (self.taken, self.taken + self.scanned + offset);
        self.after_cr = self.buffer[end] == b'\r';
        self.taken = end + 1;
        self.scanned = 0;
        Some((start, end))
    }

    /// Takes one line. True where it completes an event.
    fn take_line(&mut self, start: usize, end: usize) -> Result<bool, SseTooLarge> {
        let mut line = &self.buffer[start..end];
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            let whole = self.has_data;
            if !whole {
                self.clear_event();
            }
            return Ok(whole);
        }
        let (field, value) = split_field(line);
        match field {
            b"data" => {
                if self.data.len() + value.len() > MAX_EVENT_BYTES {
                    return Err(SseTooLarge);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Comments (an empty field name), `id`, `retry` and unknown fields.
            _ => {}
        }
        Ok(false)
    }
}

/// Field name and value; one space after the colon is no part of the value.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        None => (line, b""),
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    }

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk);
            while let Some(event) = decoder.next_event().expect("small") {
                events.push((text(event.name), text(event.data)));
            }
        }
        if let Some(event) = decoder.finish() {
            events.push((text(event.name), text(event.data)));
        }
        events
    }

    #[track_caller]
    fn check(stream: &str, expect: &[(&str, &str)]) {
        let expect: Vec<(String, String)> = expect.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
        for framed in [stream.to_owned(), stream.replace('\n', "\r\n"), stream.replace('\n', "\r")] {
            assert_eq!(decode([framed.as_bytes()]), expect, "whole: {framed:?}");
            assert_eq!(decode(framed.as_bytes().chunks(1)), expect, "byte by byte: {framed:?}");
            assert_eq!(decode(framed.as_bytes().chunks(3)), expect, "in threes: {framed:?}");
        }
    }

    #[test]
    fn events_come_whole_however_the_bytes_arrive() {
        check("event: a\ndata: 1\n\ndata:2\n\n", &[("a", "1"), ("", "2")]);
        check("data: 漢字と🦀\n\n", &[("", "漢字と🦀")]);
    }

    #[test]
    fn data_lines_are_joined_and_only_one_space_is_taken() {
        check("data: a\ndata:  b\ndata\ndata:\n\n", &[("", "a\n b\n\n")]);
    }

    #[test]
    fn comments_unknown_fields_and_dataless_events_are_no_events() {
        check(": hello\n\nid: 7\nretry: 10\nnews: x\n\nevent: only-a-name\n\ndata: x\n\n", &[("", "x")]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        check("\u{feff}data: x\n\ndata: \u{feff}y\n\n", &[("", "x"), ("", "\u{feff}y")]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check("data: x\n\ndata: last", &[("", "x"), ("", "last")]);
        check("data: x\n\nevent: last\n", &[("", "x")]);
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_refused() {
        let piece = vec![b'x'; 1024 * 1024];
        let mut line = SseDecoder::default();
        let mut event = SseDecoder::default();
        let mut refused = (false, false);
        for _ in 0..=MAX_EVENT_BYTES / piece.len() {
            line.feed(&piece);
            refused.0 |= line.next_event().is_err();
            event.feed(b"data: ");
            event.feed(&piece);
            event.feed(b"\n");
            refused.1 |= event.next_event().is_err();
        }
        assert_eq!(refused, (true, true));
    }
}
