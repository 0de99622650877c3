//! The body of a successful answer: an event stream, or what an endpoint sent in its place.
//!
//! Does no I/O: chunks go in, events come out. The first byte tells what the body is, since endpoints lie about its type.
//! Invariant: an answer is given only where its adapter saw a finish reason or an end marker.

use std::collections::VecDeque;

use crate::sse::{SseDecoder, SseTooLarge};
use crate::wire::{AnswerReader, ReadError, Reading};
use crate::{ModelAnswer, ModelStreamEvent};

/// How much is kept for the message, should the body turn out to be no event stream.
const OPENING_BYTES: usize = 4096;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads one body by the rules of `R`.
pub(crate) struct BodyReader<R> {
    form: Form,
    reader: R,
    /// The head of the answer says that it is an event stream.
    declared_events: bool,
}

enum Form {
    /// Nothing but white space has come.
    Unknown(Vec<u8>),
    Events(SseDecoder, Opening),
    /// A JSON document, or a page.
    Document(Vec<u8>),
}

/// What an event stream began with.
enum Opening {
    NoEventYet(Vec<u8>),
    Event,
}

/// How a body that has ended counts.
#[derive(Debug)]
pub(crate) enum BodyEnd {
    Answer(ModelAnswer),
    /// It stopped short of a finish reason and an end marker.
    Cut,
    Failed(ReadError),
    /// It is something else; here is its beginning.
    SomethingElse(Vec<u8>),
}

impl<R: AnswerReader> BodyReader<R> {
    pub(crate) fn new(reader: R, content_type: Option<&str>) -> BodyReader<R> {
        let declared_events = content_type.is_some_and(|kind| kind.contains("event-stream"));
        BodyReader { form: Form::Unknown(Vec::new()), reader, declared_events }
    }

    /// Takes the next bytes and puts what a client should see into `out`.
    ///
    /// # Errors
    /// [`ReadError`]; the body must not be read on.
    pub(crate) fn chunk(&mut self, bytes: &[u8], out: &mut VecDeque<ModelStreamEvent>) -> Result<Reading, ReadError> {
        match &mut self.form {
            Form::Unknown(head) => {
                head.extend_from_slice(bytes);
                match first_sign(head) {
                    None => Ok(Reading::GoesOn),
                    Some(b'{' | b'[' | b'<') => {
                        let head = std::mem::take(head);
                        self.form = Form::Document(head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&head).to_vec());
                        Ok(Reading::GoesOn)
                    }
                    Some(_) => {
                        let head = std::mem::take(head);
                        self.form = Form::Events(SseDecoder::default(), Opening::NoEventYet(Vec::new()));
                        self.chunk(&head, out)
                    }
                }
            }
            Form::Document(document) => {
                document.extend_from_slice(bytes);
                Ok(Reading::GoesOn)
            }
            Form::Events(decoder, opening) => {
                opening.extend(bytes);
                decoder.feed(bytes);
                while let Some(event) = decoder.next_event()? {
                    *opening = Opening::Event;
                    if self.reader.event(event, out)? == Reading::Done {
                        return Ok(Reading::Done);
                    }
                }
                Ok(Reading::GoesOn)
            }
        }
    }

    /// The end marker has come. What follows it does not count.
    pub(crate) fn done(self) -> BodyEnd {
        self.reader.finish().map_or(BodyEnd::Cut, BodyEnd::Answer)
    }

    /// The body has ended in order.
    pub(crate) fn finish(mut self, out: &mut VecDeque<ModelStreamEvent>) -> BodyEnd {
        match &mut self.form {
            Form::Unknown(_) => BodyEnd::Cut,
            Form::Document(document) => {
                let document = std::mem::take(document);
                match self.reader.document(&document, out) {
                    Ok(()) => self.reader.finish().map_or(BodyEnd::SomethingElse(document), BodyEnd::Answer),
                    Err(ReadError::Unreadable(_)) => BodyEnd::SomethingElse(document),
                    Err(failed) => BodyEnd::Failed(failed),
                }
            }
            Form::Events(_, opening) => {
                let opening = std::mem::replace(opening, Opening::Event);
                let declared_events = self.declared_events;
                match (self.interrupt(out), opening) {
                    (BodyEnd::Cut, Opening::NoEventYet(opening)) if !declared_events => BodyEnd::SomethingElse(opening),
                    (end, _) => end,
                }
            }
        }
    }

    /// The body will not end in order: its connection broke, or no more of it comes.
    pub(crate) fn interrupt(mut self, out: &mut VecDeque<ModelStreamEvent>) -> BodyEnd {
        let Form::Events(decoder, _) = &mut self.form else { return BodyEnd::Cut };
        if let Some(event) = decoder.finish()
            && let Err(failed @ ReadError::Provider(_)) = self.reader.event(event, out)
        {
            return BodyEnd::Failed(failed);
        }
        // An event that cannot be read here was cut short.
        self.done()
    }
}

impl Opening {
    fn extend(&mut self, bytes: &[u8]) {
        if let Opening::NoEventYet(opening) = self {
            let room = OPENING_BYTES.saturating_sub(opening.len());
            opening.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

impl From<SseTooLarge> for ReadError {
    fn from(error: SseTooLarge) -> ReadError {
        ReadError::Unreadable(error.to_string())
    }
}

/// The first byte that is neither white space nor part of a byte order mark.
fn first_sign(head: &[u8]) -> Option<u8> {
    head.iter().copied().find(|byte| !byte.is_ascii_whitespace() && !BYTE_ORDER_MARK.contains(byte))
}
