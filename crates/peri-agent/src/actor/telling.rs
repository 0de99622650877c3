//! What a session has to tell outside its turns, and has not yet found room for in the lane.
//!
//! Invariant: of each kind only the latest counts, so what waits here is bounded and never holds the mailbox up.

use peri_acp_types::{SessionEvent, SessionSettings};

use crate::queue::InputQueue;

/// Later ones take the place of earlier ones.
#[derive(Default)]
pub(super) struct Untold {
    pub settings: Option<SessionSettings>,
    pub title: Option<String>,
    /// The version of the queue that was told last.
    queue_told: u64,
}

/// What was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    Settings,
    Title,
    Queue { version: u64 },
}

impl Untold {
    /// What is to be told next.
    pub(super) fn next(&self, queue: &InputQueue) -> Option<(Told, SessionEvent)> {
        if let Some(settings) = &self.settings {
            return Some((Told::Settings, SessionEvent::SettingsChanged(settings.clone())));
        }
        if let Some(title) = &self.title {
            return Some((Told::Title, SessionEvent::TitleChanged { title: title.clone() }));
        }
        // Before the snapshot: what changes in between is told again.
        let version = queue.version();
        let told = Told::Queue { version };
        (version != self.queue_told).then(|| (told, SessionEvent::QueueChanged(queue.snapshot())))
    }

    pub(super) fn told(&mut self, told: Told) {
        match told {
            Told::Settings => self.settings = None,
            Told::Title => self.title = None,
            Told::Queue { version } => self.queue_told = version,
        }
    }
}
