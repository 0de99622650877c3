//! The bytes of an event stream, up to a bound for each event.
//!
//! Invariant: what a reader of events has to hold at once is no more than one event of [`MAX_EVENT`] bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use peri_acp_types::ports::HttpError;

/// The longest event, in bytes.
pub(super) const MAX_EVENT: usize = 16 * 1024 * 1024;

/// A body that ends with an error where an event is too long.
pub(super) struct Bounded {
    body: BoxStream<'static, Result<Bytes, HttpError>>,
    /// Bytes since the last empty line.
    event: usize,
    /// The last byte that was no carriage return ended a line.
    at_line_start: bool,
    /// Set when an event was too long.
    is_over_bound: Arc<AtomicBool>,
}

/// Why a stream broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamFault {
    #[error("an event is longer than {} MiB", MAX_EVENT / 1024 / 1024)]
    TooLong,
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl Bounded {
    pub(super) fn new(body: BoxStream<'static, Result<Bytes, HttpError>>, is_over_bound: Arc<AtomicBool>) -> Bounded {
        Bounded { body, event: 0, at_line_start: true, is_over_bound }
    }

    /// Lines end with a carriage return, a newline or both.
    fn holds(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            self.event += 1;
            if self.event > MAX_EVENT {
                return false;
            }
            match byte {
                b'\n' | b'\r' if self.at_line_start => self.event = 0,
                b'\n' => self.at_line_start = true,
                // The newline after it does not make an empty line; a lone one at the end of a line is rare enough.
                b'\r' => {}
                _ => self.at_line_start = false,
            }
        }
        true
    }
}

impl Stream for Bounded {
    type Item = Result<Bytes, StreamFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.event > MAX_EVENT {
            return Poll::Ready(None);
        }
        self.body.poll_next_unpin(cx).map(|next| {
            let chunk = match next? {
                Ok(chunk) => chunk,
                Err(error) => return Some(Err(error.into())),
            };
            if self.holds(&chunk) {
                return Some(Ok(chunk));
            }
            self.is_over_bound.store(true, Ordering::Release);
            Some(Err(StreamFault::TooLong))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::stream;

    #[track_caller]
    fn check(chunks: Vec<Vec<u8>>, expect_whole: bool) {
        let count = chunks.len();
        let is_over_bound = Arc::<AtomicBool>::default();
        let body = stream::iter(chunks).map(|chunk| Ok(Bytes::from(chunk))).boxed();
        let seen: Vec<_> = Bounded::new(body, is_over_bound.clone()).collect().now_or_never().expect("no wait");
        let is_whole = seen.iter().all(Result::is_ok) && seen.len() == count;
        assert_eq!((is_whole, is_over_bound.load(Ordering::Acquire)), (expect_whole, !expect_whole));
    }

    #[test]
    fn events_are_counted_one_by_one() {
        let event = |end: &str| format!("data: {}{end}", "x".repeat(MAX_EVENT / 2)).into_bytes();
        check(vec![event("\n\n"), event("\r\n\r\n"), event("\n\n")], true);
        check(vec![event("\n"), event("\n\n")], false);
        check(vec![event("\r\n"), event("\r\n\r\n")], false);
        check(vec![event(""), event("")], false);
    }

    #[test]
    fn comments_that_keep_a_stream_alive_may_come_forever() {
        check(vec![": still here\n\n".repeat(100_000).into_bytes(); 20], true);
    }
}
