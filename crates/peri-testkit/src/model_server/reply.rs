//! What the endpoint does with one request: bytes, in what pieces, and what goes wrong on the way.

use peri_model::ModelProtocol;
use serde_json::Value;

use super::answer::Answer;
use super::wire;
use crate::gate::Gate;

/// A reply, in the order: wait, head, body in pieces, with a fault at some place of the body.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    /// Every LF of the body as CRLF.
    crlf: bool,
    /// The size of a write; None: as the body comes in pieces.
    chunk_bytes: Option<usize>,
    framing: Framing,
    before_head: Option<Gate>,
    fault: Option<(usize, Rest)>,
    /// Written in place of head and body.
    raw: Option<Vec<Vec<u8>>>,
}

/// What is said, as long as it is not known to whom.
#[derive(Clone, Debug)]
enum Body {
    Bytes(Vec<u8>),
    /// Each event is one write.
    Answer(Answer),
    Error {
        kind: String,
        message: String,
    },
}

/// How the client knows where the body ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Framing {
    Chunked,
    ContentLength,
    UntilClose,
}

/// What happens after some bytes of the body, in place of the rest.
#[derive(Clone, Debug)]
pub enum Rest {
    /// The connection is closed in order.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing until the gate opens; then the rest.
    Stall(Gate),
}

/// What a connection does, one thing after the other.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Write(Vec<u8>),
    Wait(Gate),
    Close,
    Reset,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Reply {
        Reply {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            body: Body::Answer(answer),
            framing: Framing::Chunked,
            ..Reply::status(200)
        }
    }
}

impl Reply {
    /// A status without a body.
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: Body::Bytes(Vec::new()),
            crlf: false,
            chunk_bytes: None,
            framing: Framing::ContentLength,
            before_head: None,
            fault: None,
            raw: None,
        }
    }

    /// Those bytes in place of an HTTP answer, each piece one write; then the connection is closed.
    pub fn raw(pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Reply {
        Reply { raw: Some(pieces.into_iter().map(Into::into).collect()), ..Reply::status(200) }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Reply {
        self.body = Body::Bytes(body.into());
        self
    }

    #[must_use]
    pub fn json_body(self, body: &Value) -> Reply {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// The protocol's error document.
    #[must_use]
    pub fn error_body(self, kind: &str, message: &str) -> Reply {
        let body = Body::Error { kind: kind.to_owned(), message: message.to_owned() };
        Reply { body, ..self.header("content-type", "application/json") }
    }

    /// The body in writes of that many bytes, whatever pieces it was made of.
    #[must_use]
    pub fn in_chunks_of(mut self, bytes: usize) -> Reply {
        self.chunk_bytes = Some(bytes.max(1));
        self
    }

    #[must_use]
    pub fn byte_at_a_time(self) -> Reply {
        self.in_chunks_of(1)
    }

    /// Every LF of the body as CRLF.
    #[must_use]
    pub fn crlf(mut self) -> Reply {
        self.crlf = true;
        self
    }

    /// The body ends where the connection does, so that a cut looks like an end.
    #[must_use]
    pub fn until_close(mut self) -> Reply {
        self.framing = Framing::UntilClose;
        self
    }

    /// Nothing at all before the gate opens.
    #[must_use]
    pub fn before_head(mut self, gate: &Gate) -> Reply {
        self.before_head = Some(gate.clone());
        self
    }

    /// After that many bytes of the body comes something else in place of the rest.
    #[must_use]
    pub fn after(mut self, bytes: usize, rest: Rest) -> Reply {
        self.fault = Some((bytes, rest));
        self
    }

    /// The size of the body as it would be without a fault, in Anthropic's protocol.
    pub fn body_bytes(&self) -> usize {
        self.body_bytes_in(ModelProtocol::AnthropicMessages)
    }

    /// As [`Reply::body_bytes`], in that protocol.
    pub fn body_bytes_in(&self, protocol: ModelProtocol) -> usize {
        self.pieces(protocol).iter().map(Vec::len).sum()
    }

    /// The body in the words of the protocol; each piece is one write.
    fn pieces(&self, protocol: ModelProtocol) -> Vec<Vec<u8>> {
        let mut pieces = match &self.body {
            Body::Bytes(bytes) => vec![bytes.clone()],
            Body::Answer(answer) => answer.events(protocol),
            Body::Error { kind, message } => {
                vec![wire::error_document(protocol, kind, message).to_string().into_bytes()]
            }
        };
        if self.crlf {
            pieces = pieces.iter().map(|piece| with_crlf(piece)).collect();
        }
        match self.chunk_bytes {
            Some(bytes) => pieces.concat().chunks(bytes).map(<[u8]>::to_vec).collect(),
            None => pieces,
        }
    }

    /// What to do, and whether the connection can take another request afterwards.
    pub(super) fn steps(&self, protocol: ModelProtocol) -> Vec<Step> {
        let mut steps: Vec<Step> = self.before_head.iter().cloned().map(Step::Wait).collect();
        if let Some(raw) = &self.raw {
            steps.extend(raw.iter().cloned().map(Step::Write));
            steps.push(Step::Close);
            return steps;
        }
        let pieces = self.pieces(protocol);
        steps.push(Step::Write(self.head(pieces.iter().map(Vec::len).sum())));
        let (place, rest) = match &self.fault {
            Some((place, rest)) => (*place, Some(rest)),
            None => (usize::MAX, None),
        };
        let (before, after) = split_pieces(&pieces, place);
        steps.extend(before.into_iter().map(|piece| self.framed(piece)));
        match rest {
            Some(Rest::Close) => steps.push(Step::Close),
            Some(Rest::Reset) => steps.push(Step::Reset),
            Some(Rest::Stall(gate)) => {
                steps.push(Step::Wait(gate.clone()));
                steps.extend(after.into_iter().map(|piece| self.framed(piece)));
                steps.push(self.end());
            }
            None => steps.push(self.end()),
        }
        steps
    }

    fn head(&self, body_bytes: usize) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.framing {
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::ContentLength => head.push_str(&format!("content-length: {body_bytes}\r\n")),
            Framing::UntilClose => head.push_str("connection: close\r\n"),
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn framed(&self, piece: Vec<u8>) -> Step {
        Step::Write(match self.framing {
            Framing::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat(),
            Framing::ContentLength | Framing::UntilClose => piece,
        })
    }

    fn end(&self) -> Step {
        match self.framing {
            Framing::Chunked => Step::Write(b"0\r\n\r\n".to_vec()),
            Framing::ContentLength => Step::Write(Vec::new()),
            Framing::UntilClose => Step::Close,
        }
    }
}

fn with_crlf(piece: &[u8]) -> Vec<u8> {
    let framed = piece.iter().flat_map(|byte| if *byte == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(byte) });
    framed.copied().collect()
}

/// The pieces before and after that many bytes; empty ones would end a chunked body and are left out.
fn split_pieces(pieces: &[Vec<u8>], mut place: usize) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for piece in pieces {
        let (head, tail) = piece.split_at(place.min(piece.len()));
        place -= head.len();
        before.push(head.to_vec());
        after.push(tail.to_vec());
    }
    before.retain(|piece| !piece.is_empty());
    after.retain(|piece| !piece.is_empty());
    (before, after)
}
