//! The thread: a session as it is stored, and the pure reducer that every store applies.
//!
//! Invariants, kept by [`Thread::apply`] and by nothing else: a turn has one input and at most one end; every tool
//! call has exactly one result, in the same change; a message id occurs once. A change that breaks a rule is refused
//! whole, so that a store and a running session can never disagree.

use std::collections::HashSet;

use crate::{FrozenBlob, Message, MessageBody, MessageId, SessionEpoch, SessionId, StopReason, TurnId};

/// What a list of sessions shows, without the messages.
#[derive(Clone, PartialEq, Debug)]
pub struct ThreadMeta {
    pub id: SessionId,
    /// A subagent's thread names its parent; lists hide it.
    pub parent_thread_id: Option<SessionId>,
    /// Absolute working directory.
    pub cwd: String,
    /// The first prompt's first line, until something better is set.
    pub title: Option<String>,
    /// Unix time in milliseconds.
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

/// A session as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Thread {
    pub meta: ThreadMeta,
    /// The last writer's epoch; [`SessionEpoch::UNOPENED`] before the first.
    pub epoch: SessionEpoch,
    pub frozen: Option<FrozenBlob>,
    /// Set while a close is under way, with the epoch that asked for it.
    pub close_intent: Option<SessionEpoch>,
    pub messages: Vec<Message>,
    /// Turns that have ended, in order.
    pub turns: Vec<StoredTurn>,
    /// A turn with an input and no end: running, or found so after a crash.
    pub open_turn: Option<TurnId>,
}

/// A turn that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredTurn {
    pub turn_id: TurnId,
    pub end: StoredTurnEnd,
}

/// How it ended, as history keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredTurnEnd {
    Completed(StopReason),
    /// Cancelled, failed, or found without an end at load; in words.
    Interrupted(String),
}

/// One change of a thread. A commit is a list of them, all or none.
#[derive(Clone, PartialEq, Debug)]
pub enum ThreadChange {
    /// The input of a new turn. The input counts as acknowledged once this is committed.
    InputAccepted {
        message: Message,
    },
    /// An assistant message, followed by the results of its calls if it has any.
    StepCommitted {
        assistant: Message,
        results: Option<Message>,
    },
    /// A word of ours to the model.
    NoticeAdded {
        message: Message,
    },
    TurnEnded {
        turn_id: TurnId,
        end: StoredTurnEnd,
    },
    TitleSet {
        title: String,
    },
}

/// A rule of the thread that a change would have broken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ThreadRuleError {
    #[error("turn {0} has no end yet")]
    TurnOpen(TurnId),
    #[error("turn {0} is not the open one")]
    TurnNotOpen(TurnId),
    #[error("turn {0} has been used already")]
    TurnReused(TurnId),
    #[error("message {0} is in the thread already")]
    MessageReused(MessageId),
    #[error("message {0} has a body that this change does not take")]
    WrongBody(MessageId),
    #[error("the results do not answer the calls one by one: {0}")]
    ResultsMismatch(String),
}

impl Thread {
    /// A thread without messages.
    pub fn new(meta: ThreadMeta) -> Thread {
        Thread {
            meta,
            epoch: SessionEpoch::UNOPENED,
            frozen: None,
            close_intent: None,
            messages: Vec::new(),
            turns: Vec::new(),
            open_turn: None,
        }
    }

    /// Applies one change.
    ///
    /// # Errors
    /// A [`ThreadRuleError`], with the thread unchanged.
    pub fn apply(&mut self, change: &ThreadChange) -> Result<(), ThreadRuleError> {
        match change {
            ThreadChange::InputAccepted { message } => self.accept_input(message),
            ThreadChange::StepCommitted { assistant, results } => self.commit_step(assistant, results.as_ref()),
            ThreadChange::NoticeAdded { message } => {
                self.require_fresh(message)?;
                require(matches!(message.body, MessageBody::Notice(_)), message)?;
                self.messages.push(message.clone());
                Ok(())
            }
            ThreadChange::TurnEnded { turn_id, end } => {
                self.require_open(*turn_id)?;
                self.open_turn = None;
                self.turns.push(StoredTurn { turn_id: *turn_id, end: end.clone() });
                Ok(())
            }
            ThreadChange::TitleSet { title } => {
                self.meta.title = Some(title.clone());
                Ok(())
            }
        }
    }

    /// Applies all changes or none.
    ///
    /// # Errors
    /// The first [`ThreadRuleError`], with the thread unchanged.
    pub fn apply_all(&mut self, changes: &[ThreadChange]) -> Result<(), ThreadRuleError> {
        let (messages, turns) = (self.messages.len(), self.turns.len());
        let (open_turn, title) = (self.open_turn, self.meta.title.clone());
        for change in changes {
            if let Err(error) = self.apply(change) {
                self.messages.truncate(messages);
                self.turns.truncate(turns);
                self.open_turn = open_turn;
                self.meta.title = title;
                return Err(error);
            }
        }
        Ok(())
    }

    fn accept_input(&mut self, message: &Message) -> Result<(), ThreadRuleError> {
        if let Some(open) = self.open_turn {
            return Err(ThreadRuleError::TurnOpen(open));
        }
        if self.turns.iter().any(|turn| turn.turn_id == message.turn_id) {
            return Err(ThreadRuleError::TurnReused(message.turn_id));
        }
        self.require_fresh(message)?;
        let MessageBody::User(content) = &message.body else {
            return Err(ThreadRuleError::WrongBody(message.id));
        };
        if self.meta.title.is_none() {
            self.meta.title = crate::message::title_of(content);
        }
        self.open_turn = Some(message.turn_id);
        self.messages.push(message.clone());
        Ok(())
    }

    fn commit_step(&mut self, assistant: &Message, results: Option<&Message>) -> Result<(), ThreadRuleError> {
        self.require_open(assistant.turn_id)?;
        self.require_fresh(assistant)?;
        let MessageBody::Assistant(body) = &assistant.body else {
            return Err(ThreadRuleError::WrongBody(assistant.id));
        };
        let calls: Vec<&str> = body.calls().map(|call| call.id.0.as_str()).collect();
        let answered: Vec<&str> = match results {
            None => Vec::new(),
            Some(message) => {
                self.require_fresh(message)?;
                let MessageBody::ToolResults(results) = &message.body else {
                    return Err(ThreadRuleError::WrongBody(message.id));
                };
                require(message.turn_id == assistant.turn_id && message.id != assistant.id, message)?;
                results.iter().map(|result| result.call_id.0.as_str()).collect()
            }
        };
        let distinct: HashSet<&str> = calls.iter().copied().collect();
        if calls != answered || distinct.len() != calls.len() {
            return Err(ThreadRuleError::ResultsMismatch(format!("calls {calls:?}, results {answered:?}")));
        }
        self.messages.push(assistant.clone());
        self.messages.extend(results.cloned());
        Ok(())
    }

    fn require_open(&self, turn_id: TurnId) -> Result<(), ThreadRuleError> {
        if self.open_turn == Some(turn_id) { Ok(()) } else { Err(ThreadRuleError::TurnNotOpen(turn_id)) }
    }

    fn require_fresh(&self, message: &Message) -> Result<(), ThreadRuleError> {
        // Newest first: a repeated commit repeats recent messages.
        match self.messages.iter().rev().any(|known| known.id == message.id) {
            true => Err(ThreadRuleError::MessageReused(message.id)),
            false => Ok(()),
        }
    }
}

fn require(holds: bool, message: &Message) -> Result<(), ThreadRuleError> {
    if holds { Ok(()) } else { Err(ThreadRuleError::WrongBody(message.id)) }
}
