//! A question that the model has for the person behind a session.

use crate::{SessionId, ToolCallId, TurnId};

/// Questions of one tool call, to be shown together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuestionRequest {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// The call that asks; a client has been shown it.
    pub call_id: ToolCallId,
    pub questions: Vec<Question>,
}

/// One question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// A word or two, for a narrow screen.
    pub header: String,
    pub text: String,
    pub kind: QuestionKind,
}

/// How it is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuestionKind {
    /// One of these, or words of the person's own.
    One(Vec<QuestionOption>),
    /// Any number of these, or words of the person's own.
    Many(Vec<QuestionOption>),
    /// Free text.
    Text,
}

/// Something that can be chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuestionOption {
    /// Unique among the options of its question.
    pub label: String,
    pub description: Option<String>,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuestionAnswer {
    /// One reply for each question, in their order.
    Answered(Vec<QuestionReply>),
    /// The person said no.
    Declined,
    /// The turn was cancelled, or the question was put away.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
    /// Nobody can be asked, or not in this form. The text says which.
    Unavailable(String),
}

/// The answer to one question.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuestionReply {
    /// Labels of options, in the order of the options.
    pub chosen: Vec<String>,
    /// Words of the person's own.
    pub text: Option<String>,
}
