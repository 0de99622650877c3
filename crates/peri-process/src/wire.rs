//! What peri, the supervisor and the leaders say to each other, and how it is framed.
//!
//! Owns: the message types of both sockets and their form (a length of four bytes, then JSON). Must not: read or write a
//! socket. Invariant: a frame is never longer than [`FRAME_LIMIT`], so a broken peer cannot make the reader grow.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Raised with every change of the messages, since the two ends may come from different builds.
pub(crate) const PROTOCOL: u32 = 1;

/// More than any kernel accepts as arguments and environment of a program.
pub(crate) const FRAME_LIMIT: usize = 16 << 20;

/// On the control socket, from peri: one such byte with the leader's end of a job socket. The only request there is.
pub(crate) const LAUNCH: u8 = b'L';

/// On the control socket, from the supervisor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum SupervisorReport {
    Ready {
        protocol: u32,
    },
    /// It cannot do its work and exits.
    Unable(String),
    /// Nothing is left of any job; it exits.
    Gone,
    /// It exits although this is left.
    Left(String),
}

/// On a job socket, from peri.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum JobRequest {
    /// The first one, with the descriptors of the piped standard streams: input, output, error.
    Start(Order),
    /// `round` counts the kills of a job, so that an answer can be told from that to an earlier one.
    Kill { round: u64, grace_ms: u64 },
}

/// On a job socket, from the leader, or from the supervisor in place of a leader that was killed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum JobReport {
    Started {
        pid: u32,
    },
    NotStarted(String),
    Exited(Ending),
    /// Nothing is left of the job. Always the last one.
    Gone,
    /// What a kill could not end. The leader goes on trying.
    Left {
        round: u64,
        what: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
    Unknown,
}

/// The command of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub program: String,
    pub args: Vec<String>,
    pub cwd: String,
    pub env: BTreeMap<String, Option<String>>,
    pub streams: Streams,
}

/// Which standard streams come as descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Streams {
    pub stdin: Input,
    pub output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Input {
    Null,
    Pipe,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Output {
    Merged,
    Separate,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a message of {0} bytes is over the limit of {FRAME_LIMIT}")]
    TooLong(usize),
    #[error("a message is not understood: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// A message as the bytes of one frame.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - 4;
    match u32::try_from(length) {
        Ok(header) if length <= FRAME_LIMIT => {
            frame[..4].copy_from_slice(&header.to_be_bytes());
            Ok(frame)
        }
        _ => Err(WireError::TooLong(length)),
    }
}

/// Turns the bytes of a stream, cut anywhere, back into messages.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message, or None while it is incomplete. After an error the stream is of no further use.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let Some((header, body)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > FRAME_LIMIT {
            return Err(WireError::TooLong(length));
        }
        let Some(body) = body.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.buffer.drain(..4 + length);
        if self.buffer.is_empty() {
            // An order may be large, and a leader lives long after it.
            self.buffer = Vec::new();
        }
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_any_cut() {
        let sent = [JobReport::Started { pid: 7 }, JobReport::Exited(Ending::Signal(9)), JobReport::Gone];
        let bytes: Vec<u8> = sent.iter().flat_map(|message| encode(message).unwrap()).collect();
        let mut decoder = Decoder::default();
        let mut received = Vec::new();
        for byte in bytes {
            decoder.push(&[byte]);
            while let Some(message) = decoder.next::<JobReport>().unwrap() {
                received.push(message);
            }
        }
        assert_eq!(received, sent);
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_body_arrives() {
        let mut decoder = Decoder::default();
        decoder.push(&u32::MAX.to_be_bytes());
        assert!(matches!(decoder.next::<JobReport>(), Err(WireError::TooLong(_))));
    }

    #[test]
    fn rubbish_is_refused() {
        let mut decoder = Decoder::default();
        decoder.push(b"\0\0\0\x04oops");
        assert!(matches!(decoder.next::<JobReport>(), Err(WireError::Malformed(_))));
    }
}
