//! What is known of a server's condition besides its answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The longest piece of a server's output that is quoted, in characters.
const MAX_QUOTED: usize = 120;
/// Entries of lists that are named.
const MAX_SHOWN_UNUSABLE: usize = 5;

/// Shared by the connection, its transport and its handler.
#[derive(Default)]
pub(super) struct Health {
    /// The server has closed its end.
    ended: AtomicBool,
    /// It has said that its tools are other ones now.
    tools_changed: AtomicBool,
    /// Held to count or read, never over an await.
    rubbish: Mutex<Rubbish>,
    /// Held to add or read, never over an await.
    unusable: Mutex<Unusable>,
}

/// What came from a server and is no message.
#[derive(Default)]
struct Rubbish {
    count: usize,
    first: String,
}

/// What of its lists cannot be understood.
#[derive(Default)]
struct Unusable {
    count: usize,
    /// The first few: which, and why.
    shown: Vec<String>,
}

impl Health {
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn note_end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn note_changed_tools(&self) {
        self.tools_changed.store(true, Ordering::Release);
    }

    /// Whether its tools have changed since this was last asked.
    pub(super) fn take_changed_tools(&self) -> bool {
        self.tools_changed.swap(false, Ordering::AcqRel)
    }

    /// Of a text that may be shown, the beginning is kept.
    pub(super) fn note_rubbish(&self, text: &str) {
        let mut rubbish = self.rubbish.lock().unwrap_or_else(PoisonError::into_inner);
        if rubbish.count == 0 {
            rubbish.first = quoted(text);
        }
        rubbish.count = rubbish.count.saturating_add(1);
    }

    /// A sentence about what it sent that is no message; None if there was nothing.
    pub(super) fn rubbish(&self) -> Option<String> {
        let rubbish = self.rubbish.lock().unwrap_or_else(PoisonError::into_inner);
        let Rubbish { count, first } = &*rubbish;
        match count {
            0 => None,
            1 => Some(format!("it sent a line that is no message and was passed over: `{first}`")),
            count => {
                Some(format!("it sent {count} lines that are no messages and were passed over, the first: `{first}`"))
            }
        }
    }
    /// Notes an entry of a list, by a text that may be shown.
    pub(super) fn note_unusable(&self, which: &str, why: &str) {
        let mut unusable = self.unusable.lock().unwrap_or_else(PoisonError::into_inner);
        unusable.count = unusable.count.saturating_add(1);
        if unusable.shown.len() < MAX_SHOWN_UNUSABLE {
            unusable.shown.push(format!("{} ({})", quoted(which), quoted(why)));
        }
    }

    /// Forgets them, since the list is asked for again.
    pub(super) fn forget_unusable(&self) {
        *self.unusable.lock().unwrap_or_else(PoisonError::into_inner) = Unusable::default();
    }

    /// Reads on from the server's name; None if all could be understood. They are forgotten.
    pub(super) fn take_unusable(&self) -> Option<String> {
        let Unusable { count, shown } =
            std::mem::take(&mut *self.unusable.lock().unwrap_or_else(PoisonError::into_inner));
        let shown_count = shown.len();
        let shown = shown.join(", ");
        match count {
            0 => None,
            count if count > shown_count => {
                Some(format!("lists what cannot be used and is left out: {shown}, and {} more", count - shown_count))
            }
            _ => Some(format!("lists what cannot be used and is left out: {shown}")),
        }
    }
}

fn quoted(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_QUOTED).collect()
}
