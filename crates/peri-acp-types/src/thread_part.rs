//! Parts and copies of a whole thread, as every store gives them. For stores that keep whole threads.
//!
//! Must not: change a thread, which is [`Thread::apply`]'s alone. Invariant: a part is cut where [`Thread::context`] begins,
//! so that a session that goes on from it shows the model what one with the whole thread would show.

use std::collections::HashSet;

use crate::ports::{MessagePage, ThreadHead};
use crate::{Message, MessageBody, StoredTurn, Thread, ThreadMeta, TurnId};

impl Thread {
    /// What it is, without what is said in it.
    pub fn head(&self) -> ThreadHead {
        ThreadHead {
            meta: self.meta.clone(),
            epoch: self.epoch,
            close_intent: self.close_intent,
            open_turn: self.open_turn,
            messages: self.earlier + self.messages.len() as u64,
        }
    }

    /// What a session needs to go on: from the first message that the model still sees, without what was rewound.
    pub fn seen_part(&self) -> Thread {
        let start = self.first_seen();
        let messages = self.messages.get(start..).unwrap_or_default().to_vec();
        Thread {
            meta: self.meta.clone(),
            epoch: self.epoch,
            frozen: self.frozen.clone(),
            close_intent: self.close_intent,
            earlier: self.earlier + start as u64,
            turns: self.turns_of(&messages),
            messages,
            rewound: Vec::new(),
            open_turn: self.open_turn,
        }
    }

    /// At most `limit` messages of the conversation (one at least), from the one of that number on.
    pub fn page(&self, from: u64, limit: usize) -> MessagePage {
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(self.messages.len());
        let end = start.saturating_add(limit.max(1)).min(self.messages.len());
        let messages = self.messages.get(start..end).unwrap_or_default().to_vec();
        let next = (end < self.messages.len()).then_some(end as u64);
        MessagePage { turns: self.turns_of(&messages), messages, next }
    }

    /// A copy under the name that `meta` gives it: no epoch was taken, no close is under way, nothing was rewound.
    pub fn forked(&self, meta: &ThreadMeta) -> Thread {
        let title = meta.title.clone().or_else(|| self.meta.title.clone());
        Thread {
            frozen: self.frozen.clone(),
            earlier: self.earlier,
            messages: self.messages.clone(),
            turns: self.turns_of(&self.messages),
            open_turn: self.open_turn,
            ..Thread::new(ThreadMeta { title, ..meta.clone() })
        }
    }

    /// Where the model's context begins in `messages`.
    fn first_seen(&self) -> usize {
        let last = self.messages.iter().enumerate().rev().find_map(|(index, message)| match &message.body {
            MessageBody::Summary(summary) => Some((index, summary)),
            _ => None,
        });
        let Some((index, summary)) = last else { return 0 };
        let kept = self.messages.iter().position(|message| Some(message.id) == summary.first_kept);
        kept.map_or(index, |kept| kept.min(index))
    }

    fn turns_of(&self, messages: &[Message]) -> Vec<StoredTurn> {
        let named: HashSet<TurnId> = messages.iter().map(|message| message.turn_id).collect();
        self.turns.iter().filter(|turn| named.contains(&turn.turn_id)).cloned().collect()
    }
}
