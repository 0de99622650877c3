//! An answer of the model: what it says, before any protocol has words for it.

use peri_acp_types::Usage;
use peri_model::ModelProtocol;
use serde_json::Value;

use super::wire;

/// An answer under construction. Each event of its protocol is one write, unless the reply says otherwise.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Everything between the start of the answer and its end.
    pub(super) pieces: Vec<Piece>,
    pub(super) usage: Usage,
    /// In Anthropic's words.
    pub(super) stop_reason: Option<String>,
    pub(super) ending: Ending,
}

/// Something that the model says, or its endpoint in between.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// A text in deltas.
    Text(Vec<String>),
    Thought {
        text: String,
        seal: String,
    },
    /// Calls whose deltas come in turns.
    Calls(Vec<Call>),
    Error {
        kind: String,
        message: String,
    },
    Ping,
    /// An event in the words of its protocol, whichever that is.
    Event {
        name: String,
        members: Value,
    },
    Raw(Vec<u8>),
}

/// A call and the deltas of its arguments.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub id: String,
    pub name: String,
    pub deltas: Vec<String>,
}

/// How the stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Whole,
    /// A finish reason, but no end marker. The Responses protocol has one event for both, which comes.
    NoEndMarker,
    /// Neither.
    Nothing,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer::new()
    }
}

impl Answer {
    /// An empty answer that ends in order.
    pub fn new() -> Answer {
        Answer {
            pieces: Vec::new(),
            usage: Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() },
            stop_reason: None,
            ending: Ending::Whole,
        }
    }

    /// A text in one piece.
    #[must_use]
    pub fn text(self, text: &str) -> Answer {
        self.text_deltas([text])
    }

    /// A text in those pieces.
    #[must_use]
    pub fn text_deltas<'a>(self, deltas: impl IntoIterator<Item = &'a str>) -> Answer {
        self.piece(Piece::Text(deltas.into_iter().map(str::to_owned).collect()))
    }

    /// A thought and its seal.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Answer {
        self.piece(Piece::Thought { text: text.to_owned(), seal: signature.to_owned() })
    }

    /// A tool call whose arguments come in one piece.
    #[must_use]
    pub fn tool_use(self, id: &str, name: &str, input: &Value) -> Answer {
        let json = input.to_string();
        self.tool_use_deltas(id, name, [json.as_str()])
    }

    /// A tool call whose arguments come in those pieces, which need not be JSON.
    #[must_use]
    pub fn tool_use_deltas<'a>(self, id: &str, name: &str, deltas: impl IntoIterator<Item = &'a str>) -> Answer {
        let deltas: Vec<&str> = deltas.into_iter().collect();
        self.interleaved_tool_uses(&[(id, name, &deltas)])
    }

    /// Tool calls (id, name, pieces of the arguments) whose pieces come in turns.
    #[must_use]
    pub fn interleaved_tool_uses(self, calls: &[(&str, &str, &[&str])]) -> Answer {
        let call = |(id, name, deltas): &(&str, &str, &[&str])| Call {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            deltas: deltas.iter().map(|delta| (*delta).to_owned()).collect(),
        };
        self.piece(Piece::Calls(calls.iter().map(call).collect()))
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Answer {
        self.usage = usage;
        self
    }

    /// In Anthropic's words, instead of `tool_use` where there are calls and `end_turn` where there are none.
    #[must_use]
    pub fn stop_reason(mut self, reason: &str) -> Answer {
        self.stop_reason = Some(reason.to_owned());
        self
    }

    /// Ends with the finish reason; the end marker does not come.
    #[must_use]
    pub fn without_message_stop(mut self) -> Answer {
        self.ending = Ending::NoEndMarker;
        self
    }

    /// Ends without finish reason and end marker.
    #[must_use]
    pub fn without_end(mut self) -> Answer {
        self.ending = Ending::Nothing;
        self
    }

    /// An error event, after which nothing comes.
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> Answer {
        self.piece(Piece::Error { kind: kind.to_owned(), message: message.to_owned() }).without_end()
    }

    /// A sign of life.
    #[must_use]
    pub fn ping(self) -> Answer {
        self.piece(Piece::Ping)
    }

    #[must_use]
    pub fn comment(self, text: &str) -> Answer {
        self.raw(format!(": {text}\n\n").as_bytes())
    }

    /// Any event, with its name as its `type`.
    #[must_use]
    pub fn event(self, name: &str, members: Value) -> Answer {
        self.piece(Piece::Event { name: name.to_owned(), members })
    }

    /// Bytes as they are.
    #[must_use]
    pub fn raw(self, bytes: &[u8]) -> Answer {
        self.piece(Piece::Raw(bytes.to_vec()))
    }

    fn piece(mut self, piece: Piece) -> Answer {
        self.pieces.push(piece);
        self
    }

    /// The reason why the answer stops, in Anthropic's words.
    pub(super) fn reason(&self) -> &str {
        let calls = self.pieces.iter().any(|piece| matches!(piece, Piece::Calls(calls) if !calls.is_empty()));
        self.stop_reason.as_deref().unwrap_or(if calls { "tool_use" } else { "end_turn" })
    }

    /// The events of Anthropic's protocol, from the start of the message to its end.
    pub fn into_events(self) -> Vec<Vec<u8>> {
        self.events(ModelProtocol::AnthropicMessages)
    }

    /// The events of that protocol, from the start of the answer to its end.
    pub fn events(&self, protocol: ModelProtocol) -> Vec<Vec<u8>> {
        match protocol {
            ModelProtocol::AnthropicMessages => wire::anthropic::events(self),
            ModelProtocol::OpenAiChat => wire::openai_chat::events(self),
            ModelProtocol::OpenAiResponses => wire::openai_responses::events(self),
        }
    }
}
