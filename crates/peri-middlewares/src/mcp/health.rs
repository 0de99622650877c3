//! What is known of a server's condition besides its answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The longest piece of a server's output that is quoted, in characters.
const MAX_QUOTED: usize = 120;

/// Shared by the connection, its transport and its handler.
#[derive(Default)]
pub(super) struct Health {
    /// The server has closed its end.
    ended: AtomicBool,
    /// It has said that its tools are other ones now.
    tools_changed: AtomicBool,
    /// Held to count or read, never over an await.
    rubbish: Mutex<Rubbish>,
}

/// What came from a server and is no message.
#[derive(Default)]
struct Rubbish {
    count: usize,
    first: String,
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

    pub(super) fn note_rubbish(&self, text: &str) {
        let mut rubbish = self.rubbish.lock().unwrap_or_else(PoisonError::into_inner);
        if rubbish.count == 0 {
            rubbish.first = text.chars().filter(|c| !c.is_control()).take(MAX_QUOTED).collect();
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
}
