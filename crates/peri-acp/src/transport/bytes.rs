//! JSON-RPC over bytes: one message per line, as on standard input and output.
//!
//! What is no message is answered here, so that garbage never reaches the connection. Both directions are bounded: the
//! reader waits for the connection to take what it has read, and for its own answers to garbage to be written.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;

use agent_client_protocol::{Channel, Error, ErrorCode, RawJsonRpcId, RawJsonRpcMessage, TransportFrame};
use futures::channel::mpsc;
use futures::future::{Either, select};
use futures::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};

use super::backlog::frame_weight;
use super::lines::{BoundedLines, Line};
use super::{AgentSide, Backlog};

/// The most bytes that a client's message may have. A prompt may carry several images.
const MAX_FRAME: usize = 32 * 1024 * 1024;
/// Messages that have been read and not yet taken by the connection.
const MAX_UNTAKEN: usize = 16;
/// Answers to garbage that wait to be written.
const MAX_REJECTIONS: usize = 8;
/// Frames are written together up to so many bytes.
const WRITE_TOGETHER: usize = 64 * 1024;
/// How much of a garbage frame its answer shows, in characters.
const SHOWN_OF_GARBAGE: usize = 120;

/// A transport over a reader and a writer. The connection ends when the reader does, or when the writer fails.
pub fn byte_stream(
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
) -> AgentSide {
    let (channel, outer) = Channel::duplex();
    let (frames, into_connection) = outer.into_parts();
    let backlog = Arc::new(Backlog::default());
    let (reject, rejections) = mpsc::channel(MAX_REJECTIONS);
    let reading = read_frames(reader, into_connection, reject);
    let writing = write_frames(frames, rejections, writer, backlog.clone());
    let pump = {
        let backlog = backlog.clone();
        async move {
            let result = match select(Box::pin(reading), Box::pin(writing)).await {
                // The client has said all it will; what the connection has for it is still written.
                Either::Left((read, writing)) => writing.await.and(read),
                Either::Right((written, _)) => written,
            };
            backlog.client_gone();
            result
        }
    };
    AgentSide { channel, pump: Some(Box::pin(pump)), backlog }
}

async fn read_frames(
    reader: impl AsyncRead + Unpin,
    into_connection: mpsc::UnboundedSender<TransportFrame>,
    mut reject: mpsc::Sender<TransportFrame>,
) -> io::Result<()> {
    let mut lines = BoundedLines::new(reader, MAX_FRAME);
    while let Some(line) = lines.next().await? {
        let frame = match parse(line) {
            Parsed::Message(frame) => frame,
            Parsed::Nothing => continue,
            Parsed::Garbage(error) => {
                let answer = RawJsonRpcMessage::response(RawJsonRpcId::Null, Err(error));
                // A failed send means that nothing is written any more: the other half says why.
                let _ = reject.send(TransportFrame::Single(answer)).await;
                continue;
            }
        };
        while into_connection.len() >= MAX_UNTAKEN {
            give_way().await;
        }
        if into_connection.unbounded_send(frame).is_err() {
            break;
        }
    }
    Ok(())
}

enum Parsed {
    Message(TransportFrame),
    /// A blank line, or an answer that is no answer: the rules forbid to answer it.
    Nothing,
    Garbage(Error),
}

fn parse(line: Line) -> Parsed {
    let Line::Whole(bytes) = line else {
        return garbage(Error::invalid_request(), format!("a message may have {MAX_FRAME} bytes at most"), "");
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return garbage(Error::parse_error(), "the message is not UTF-8".to_owned(), "");
    };
    if text.trim().is_empty() {
        return Parsed::Nothing;
    }
    match TransportFrame::parse_json(&text) {
        TransportFrame::Malformed { error, .. } if error.code == ErrorCode::PARSE_ERROR => {
            garbage(Error::parse_error(), "the message is not JSON".to_owned(), &text)
        }
        TransportFrame::Malformed { .. } if is_answer_shaped(&text) => Parsed::Nothing,
        TransportFrame::Malformed { .. } => {
            garbage(Error::invalid_request(), "the message is not JSON-RPC 2.0".to_owned(), &text)
        }
        frame => Parsed::Message(frame),
    }
}

fn garbage(error: Error, detail: String, text: &str) -> Parsed {
    let shown: String = text.chars().take(SHOWN_OF_GARBAGE).collect();
    Parsed::Garbage(error.data(json!({"detail": detail, "frame": shown})))
}

fn is_answer_shaped(text: &str) -> bool {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    value.get("method").is_none() && (value.get("result").is_some() || value.get("error").is_some())
}

/// Writes frames in their order, and answers to garbage between them, until the connection has no more.
async fn write_frames(
    mut frames: mpsc::UnboundedReceiver<TransportFrame>,
    mut rejections: mpsc::Receiver<TransportFrame>,
    mut writer: impl AsyncWrite + Unpin,
    backlog: Arc<Backlog>,
) -> io::Result<()> {
    let mut lines = String::new();
    loop {
        let next = match select(frames.next(), rejections.next()).await {
            Either::Left((None, _)) => break,
            Either::Left((Some(frame), _)) | Either::Right((Some(frame), _)) => frame,
            Either::Right((None, frame)) => match frame.await {
                Some(frame) => frame,
                None => break,
            },
        };
        let mut weight = push_line(&mut lines, &next)?;
        while lines.len() < WRITE_TOGETHER {
            let Ok(frame) = frames.try_recv() else { break };
            weight += push_line(&mut lines, &frame)?;
        }
        writer.write_all(lines.as_bytes()).await?;
        writer.flush().await?;
        backlog.take(weight);
        lines.clear();
    }
    writer.close().await
}

/// Adds the frame as a line; gives what it counts for.
fn push_line(lines: &mut String, frame: &TransportFrame) -> io::Result<usize> {
    let line = frame.to_json().map_err(io::Error::other)?;
    lines.push_str(&line);
    lines.push('\n');
    Ok(frame_weight(frame))
}

/// Gives way once: the connection is polled by the same task.
fn give_way() -> impl Future<Output = ()> {
    let mut given = false;
    poll_fn(move |context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}
