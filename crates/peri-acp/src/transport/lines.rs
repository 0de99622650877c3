//! Frames from bytes: one line each, of bounded length.
//!
//! Invariant: whatever arrives, at most the limit and one read buffer are held in memory.

use std::io;

use futures::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines.
pub(crate) struct BoundedLines<R> {
    reader: BufReader<R>,
    /// The most bytes that a line may have, without its end.
    limit: usize,
}

/// A line as it came.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// Without its line end.
    Whole(Vec<u8>),
    /// It was longer than the limit; it has been read to its end and thrown away.
    TooLong,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> BoundedLines<R> {
        BoundedLines { reader: BufReader::new(reader), limit }
    }

    /// The next line; None at the end. A last line without a line end counts. A future that is dropped may lose a part of
    /// a line.
    ///
    /// # Errors
    /// Those of the reader.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((!line.is_empty() || too_long).then(|| finished(line, too_long)));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if line.len() + part.len() > self.limit {
                too_long = true;
                line = Vec::new();
            }
            if !too_long {
                line.extend_from_slice(part);
            }
            let taken = end.map_or(chunk.len(), |end| end + 1);
            self.reader.consume_unpin(taken);
            if end.is_some() {
                return Ok(Some(finished(line, too_long)));
            }
        }
    }
}

fn finished(mut line: Vec<u8>, too_long: bool) -> Line {
    if too_long {
        return Line::TooLong;
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Line::Whole(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(input: &[u8], expected: &[Line]) {
        let mut reader = BoundedLines::new(input, 8);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.expect("a slice can be read") {
            lines.push(line);
        }
        assert_eq!(lines, expected);
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_with_or_without_carriage_return_and_at_the_end() {
        check(b"one\ntwo\r\n\nlast", &[whole("one"), whole("two"), whole(""), whole("last")]).await;
        check(b"", &[]).await;
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_the_next_one_is_read() {
        check(b"12345678\n123456789\nnext\n", &[whole("12345678"), Line::TooLong, whole("next")]).await;
        check(b"123456789", &[Line::TooLong]).await;
    }
}
