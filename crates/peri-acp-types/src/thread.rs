//! The thread: a session as it is stored, and the pure reducer that every store applies.
//!
//! Invariants, kept by [`Thread::apply`] and by nothing else: a turn begins with one input and has at most one end; every
//! tool call has exactly one result, in the same change; a message id occurs once; nothing is deleted, a compaction and a
//! rewind only take messages out of sight. A change that breaks a rule is refused whole, so that a store and a running
//! session can never disagree.

use std::collections::HashSet;

use crate::{FrozenBlob, Message, MessageBody, MessageId, SessionEpoch, SessionId, StopReason, Summary, TurnId};

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
    /// Messages of the conversation before `messages` that were not loaded, since a compaction took them out of the
    /// model's context. 0 in a whole thread.
    pub earlier: u64,
    /// The conversation, less what was rewound.
    pub messages: Vec<Message>,
    /// What rewinds took out of the conversation, oldest rewind first. Empty in a thread that was loaded in part.
    pub rewound: Vec<Rewound>,
    /// Turns that have ended, in order.
    pub turns: Vec<StoredTurn>,
    /// A turn with an input and no end: running, or found so after a crash.
    pub open_turn: Option<TurnId>,
}

/// What one rewind took out of a conversation.
#[derive(Clone, PartialEq, Debug)]
pub struct Rewound {
    pub messages: Vec<Message>,
    /// False once an input was accepted after it: it stays history and does not come back.
    pub undoable: bool,
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
    /// An input that joins the open turn.
    InputSteered {
        message: Message,
    },
    /// A word of ours to the model.
    NoticeAdded {
        message: Message,
    },
    /// A summary, from which on the model's context begins. Between steps of the open turn.
    Compacted {
        summary: Message,
    },
    TurnEnded {
        turn_id: TurnId,
        end: StoredTurnEnd,
    },
    TitleSet {
        title: String,
    },
    /// Everything from that turn's first message on leaves the conversation. Between turns.
    Rewound {
        to_before: TurnId,
    },
    /// What the last rewind took comes back, if nothing was said since. Between turns.
    RewindUndone,
}

impl ThreadChange {
    /// True where the change touches more than the end of the conversation. Such a change wants a whole thread, and a
    /// session that keeps a part reads its thread anew after it.
    pub fn reaches_back(&self) -> bool {
        match self {
            ThreadChange::Rewound { .. } | ThreadChange::RewindUndone => true,
            // That earlier rewinds can no longer be undone matters to whole threads only.
            ThreadChange::InputAccepted { .. }
            | ThreadChange::InputSteered { .. }
            | ThreadChange::StepCommitted { .. }
            | ThreadChange::NoticeAdded { .. }
            | ThreadChange::Compacted { .. }
            | ThreadChange::TurnEnded { .. }
            | ThreadChange::TitleSet { .. } => false,
        }
    }
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
    #[error("message {0} is no place from which a context can go on")]
    NotKeepable(MessageId),
    #[error("turn {0} is not in the conversation")]
    NoSuchTurn(TurnId),
    #[error("there is no rewind that can be undone")]
    NothingToUndo,
}

impl Thread {
    /// A thread without messages.
    pub fn new(meta: ThreadMeta) -> Thread {
        Thread {
            meta,
            epoch: SessionEpoch::UNOPENED,
            frozen: None,
            close_intent: None,
            earlier: 0,
            messages: Vec::new(),
            rewound: Vec::new(),
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
            ThreadChange::InputSteered { message } => self.steer_input(message),
            ThreadChange::NoticeAdded { message } => {
                self.require_fresh(message)?;
                require(matches!(message.body, MessageBody::Notice(_)), message)?;
                self.messages.push(message.clone());
                Ok(())
            }
            ThreadChange::Compacted { summary } => self.compact(summary),
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
            ThreadChange::Rewound { to_before } => self.rewind(*to_before),
            ThreadChange::RewindUndone => self.undo_rewind(),
        }
    }

    /// Applies all changes or none.
    ///
    /// # Errors
    /// The first [`ThreadRuleError`], with the thread unchanged.
    pub fn apply_all(&mut self, changes: &[ThreadChange]) -> Result<(), ThreadRuleError> {
        if let [change] = changes {
            return self.apply(change);
        }
        if changes.iter().any(ThreadChange::reaches_back) {
            let mut changed = self.clone();
            changes.iter().try_for_each(|change| changed.apply(change))?;
            *self = changed;
            return Ok(());
        }
        let (messages, turns) = (self.messages.len(), self.turns.len());
        let (open_turn, title) = (self.open_turn, self.meta.title.clone());
        let undoable: Vec<bool> = self.rewound.iter().map(|rewound| rewound.undoable).collect();
        for change in changes {
            if let Err(error) = self.apply(change) {
                self.messages.truncate(messages);
                self.turns.truncate(turns);
                self.open_turn = open_turn;
                self.meta.title = title;
                self.rewound.iter_mut().zip(undoable).for_each(|(rewound, undoable)| rewound.undoable = undoable);
                return Err(error);
            }
        }
        Ok(())
    }

    /// What the model sees of the conversation: all of it, or the last summary, then what it kept, then what came since.
    pub fn context(&self) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        let last = self.messages.iter().enumerate().rev().find_map(|(index, message)| match &message.body {
            MessageBody::Summary(summary) => Some((index, summary)),
            _ => None,
        });
        let (summary, kept, since) = match last {
            None => (0..0, 0..0, 0..self.messages.len()),
            Some((index, summary)) => {
                let kept = self.messages.iter().position(|message| Some(message.id) == summary.first_kept);
                (index..index + 1, kept.unwrap_or(index)..index, index + 1..self.messages.len())
            }
        };
        let part = |range: std::ops::Range<usize>| self.messages.get(range).unwrap_or_default().iter();
        // An earlier summary is not part of what a later one kept.
        let kept = part(kept).filter(|message| !matches!(message.body, MessageBody::Summary(_)));
        part(summary).chain(kept).chain(part(since))
    }

    fn accept_input(&mut self, message: &Message) -> Result<(), ThreadRuleError> {
        self.require_idle()?;
        if self.turns.iter().any(|turn| turn.turn_id == message.turn_id) {
            return Err(ThreadRuleError::TurnReused(message.turn_id));
        }
        self.require_fresh(message)?;
        let MessageBody::User(content) = &message.body else {
            return Err(ThreadRuleError::WrongBody(message.id));
        };
        // What was rewound before stays so from here on.
        self.rewound.iter_mut().for_each(|rewound| rewound.undoable = false);
        if self.meta.title.is_none() {
            self.meta.title = crate::message::title_of(content);
        }
        self.open_turn = Some(message.turn_id);
        self.messages.push(message.clone());
        Ok(())
    }

    fn steer_input(&mut self, message: &Message) -> Result<(), ThreadRuleError> {
        self.require_open(message.turn_id)?;
        self.require_fresh(message)?;
        require(matches!(message.body, MessageBody::User(_)), message)?;
        self.messages.push(message.clone());
        Ok(())
    }

    fn compact(&mut self, message: &Message) -> Result<(), ThreadRuleError> {
        self.require_open(message.turn_id)?;
        self.require_fresh(message)?;
        let MessageBody::Summary(Summary { first_kept, .. }) = &message.body else {
            return Err(ThreadRuleError::WrongBody(message.id));
        };
        if let Some(first) = first_kept {
            let kept = self.messages.iter().rev().find(|known| known.id == *first);
            // Results without their calls are nothing that a model takes.
            let goes_on = |body: &MessageBody| !matches!(body, MessageBody::ToolResults(_) | MessageBody::Summary(_));
            if !kept.is_some_and(|kept| goes_on(&kept.body)) {
                return Err(ThreadRuleError::NotKeepable(*first));
            }
        }
        self.messages.push(message.clone());
        Ok(())
    }

    fn rewind(&mut self, to_before: TurnId) -> Result<(), ThreadRuleError> {
        self.require_idle()?;
        let first = self.messages.iter().position(|message| message.turn_id == to_before);
        let first = first.ok_or(ThreadRuleError::NoSuchTurn(to_before))?;
        let messages = self.messages.split_off(first);
        self.rewound.push(Rewound { messages, undoable: true });
        Ok(())
    }

    fn undo_rewind(&mut self) -> Result<(), ThreadRuleError> {
        self.require_idle()?;
        let last = self.rewound.pop_if(|last| last.undoable).ok_or(ThreadRuleError::NothingToUndo)?;
        self.messages.extend(last.messages);
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

    fn require_idle(&self) -> Result<(), ThreadRuleError> {
        self.open_turn.map_or(Ok(()), |open| Err(ThreadRuleError::TurnOpen(open)))
    }

    fn require_open(&self, turn_id: TurnId) -> Result<(), ThreadRuleError> {
        if self.open_turn == Some(turn_id) { Ok(()) } else { Err(ThreadRuleError::TurnNotOpen(turn_id)) }
    }

    fn require_fresh(&self, message: &Message) -> Result<(), ThreadRuleError> {
        // Newest first: a repeated commit repeats recent messages.
        let rewound = self.rewound.iter().flat_map(|rewound| &rewound.messages);
        match self.messages.iter().rev().chain(rewound).any(|known| known.id == message.id) {
            true => Err(ThreadRuleError::MessageReused(message.id)),
            false => Ok(()),
        }
    }
}

fn require(holds: bool, message: &Message) -> Result<(), ThreadRuleError> {
    if holds { Ok(()) } else { Err(ThreadRuleError::WrongBody(message.id)) }
}
