//! The client's end of the wire: this process's standard input and output, as the protocol edge takes them.
//!
//! Owns: how the input comes to its end. Invariant: once the input has ended, by itself or because it was cut, nothing more
//! is read from it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::channel::oneshot;
use futures::io::{AsyncRead, AsyncWrite};
use tokio::io::ReadBuf;

use super::traffic::Tap;

/// What the client sends. It can be cut: the reader then sees the end that a client makes which closes its output.
pub struct Input<R> {
    reader: R,
    cut: oneshot::Receiver<()>,
    /// None once the end has been reached.
    end: Option<oneshot::Sender<()>>,
    tap: Option<Tap>,
}

/// The end of an [`Input`], for whoever waits for it or wants it.
pub struct InputEnd {
    cut: Option<oneshot::Sender<()>>,
    reached: oneshot::Receiver<()>,
}

/// An input over a reader, and its end.
pub fn input<R>(reader: R, tap: Option<Tap>) -> (Input<R>, InputEnd) {
    let (cut, is_cut) = oneshot::channel();
    let (end, reached) = oneshot::channel();
    (Input { reader, cut: is_cut, end: Some(end), tap }, InputEnd { cut: Some(cut), reached })
}

impl InputEnd {
    /// Ends the input now, whatever the client does.
    pub fn cut(&mut self) {
        self.cut = None;
    }

    /// Resolves when the input has ended. To be awaited once.
    pub async fn reached(&mut self) {
        // The other end is dropped at the end of the input, or with the input.
        let _ = (&mut self.reached).await;
    }
}

impl<R: tokio::io::AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.end.is_none() || Future::poll(Pin::new(&mut self.cut), cx).is_ready() {
            self.end = None;
            return Poll::Ready(Ok(0));
        }
        let mut read = ReadBuf::new(buf);
        ready!(Pin::new(&mut self.reader).poll_read(cx, &mut read))?;
        let bytes = read.filled();
        if let Some(tap) = &mut self.tap {
            tap.passed(bytes);
        }
        let count = bytes.len();
        if count == 0 {
            self.end = None;
        }
        Poll::Ready(Ok(count))
    }
}

/// What the client receives.
pub struct Output<W> {
    writer: W,
    tap: Option<Tap>,
}

impl<W> Output<W> {
    pub fn new(writer: W, tap: Option<Tap>) -> Output<W> {
        Output { writer, tap }
    }
}

impl<W: tokio::io::AsyncWrite + Unpin> AsyncWrite for Output<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.writer).poll_write(cx, buf))?;
        if let Some(tap) = &mut self.tap {
            tap.passed(buf.get(..count).unwrap_or_default());
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn an_input_that_is_cut_ends_though_the_client_goes_on() {
        let (_client, ours) = tokio::io::duplex(64);
        let (mut input, mut end) = input(ours, None);
        let mut bytes = Vec::new();
        let reading = async {
            input.read_to_end(&mut bytes).await.expect("an end");
        };
        tokio::join!(reading, async {
            tokio::task::yield_now().await;
            end.cut();
            end.reached().await;
        });
    }

    #[tokio::test]
    async fn an_end_of_the_clients_is_told() {
        let (mut input, mut end) = input(&b"a line\n"[..], None);
        let mut text = String::new();
        input.read_to_string(&mut text).await.expect("text");
        end.reached().await;
        assert_eq!(text, "a line\n");
    }
}
