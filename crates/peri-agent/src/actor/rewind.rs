//! What a session does between turns: it takes another title, or goes back to before one of its turns.
//!
//! Must not: change a file, which is the file history's. Invariant: a rewind does what its preview said, or nothing.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use peri_acp_types::{
    FileRewind, MessageId, RewindDone, RewindPreview, RewindScope, SessionEvent, StoreError, ThreadChange,
    ThreadRuleError, TurnId,
};

use super::Actor;
use crate::core::SessionCore;
use crate::handle::Rewind;
use crate::{RenameRefused, RewindRefused};

/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Messages that are looked through at a time.
const PAGE: usize = 200;

/// What leaves the conversation with a rewind.
struct Leaving {
    turns: Vec<TurnId>,
    messages: u64,
    last: Option<MessageId>,
}

impl Actor {
    pub(super) async fn rename(&mut self, title: &str) -> Result<(), RenameRefused> {
        let title = title.trim();
        let fits = !title.is_empty() && title.chars().count() <= MAX_TITLE_CHARS && !title.contains(char::is_control);
        if !fits {
            return Err(RenameRefused::NotATitle);
        }
        if self.closing {
            return Err(RenameRefused::Ended);
        }
        if self.running.is_some() {
            return Err(RenameRefused::TurnActive);
        }
        let change = ThreadChange::TitleSet { title: title.to_owned() };
        self.commit_between_turns(&change).await.map_err(RenameRefused::Store)?;
        if let Some(thread) = &mut self.thread {
            thread.meta.title = Some(title.to_owned());
        }
        self.core.emit_outside_turn(SessionEvent::TitleChanged { title: title.to_owned() }).await;
        Ok(())
    }

    pub(super) async fn preview_rewind(&mut self, to_before: TurnId) -> Result<RewindPreview, RewindRefused> {
        self.require_idle()?;
        look(&self.core, to_before).await.map(|(preview, _)| preview)
    }

    /// Files go first: where the conversation cannot follow, the error says so.
    pub(super) async fn rewind(&mut self, rewind: Rewind) -> Result<RewindDone, RewindRefused> {
        self.require_idle()?;
        let (preview, turns) = look(&self.core, rewind.to_before).await?;
        if preview.fingerprint != rewind.fingerprint {
            return Err(RewindRefused::StalePreview);
        }
        let mut done = RewindDone::default();
        let ports = &self.core.ports;
        if rewind.scope.files() {
            let session = self.core.scope.session_id;
            done = ports.files.restore(session, &turns).await.map_err(RewindRefused::Files)?;
        }
        if rewind.scope.conversation() {
            self.go_back(ThreadChange::Rewound { to_before: rewind.to_before }, Some(rewind.to_before)).await?;
            done.messages = preview.messages;
        }
        Ok(done)
    }

    pub(super) async fn undo_rewind(&mut self, scope: RewindScope) -> Result<RewindDone, RewindRefused> {
        self.require_idle()?;
        let mut done = RewindDone::default();
        if scope.files() {
            let session = self.core.scope.session_id;
            match self.core.ports.files.undo_restore(session).await.map_err(RewindRefused::Files)? {
                Some(undone) => done = undone,
                None if scope == RewindScope::Files => return Err(RewindRefused::NothingToUndo),
                None => {}
            }
        }
        if scope.conversation() {
            let before = self.message_count();
            self.go_back(ThreadChange::RewindUndone, None).await?;
            done.messages = self.message_count().saturating_sub(before);
        }
        Ok(done)
    }

    /// Changes the conversation and reads it anew.
    async fn go_back(&mut self, change: ThreadChange, to_before: Option<TurnId>) -> Result<(), RewindRefused> {
        self.commit_between_turns(&change).await.map_err(|error| match error {
            StoreError::Rule(ThreadRuleError::NothingToUndo) => RewindRefused::NothingToUndo,
            StoreError::Rule(ThreadRuleError::NoSuchTurn(_)) => RewindRefused::NoSuchTurn,
            error => RewindRefused::Store(error),
        })?;
        match self.core.ports.store.load(self.core.scope.session_id).await {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                // What is stored is not what is here, so nothing may be built on it.
                self.lost = true;
                return Err(RewindRefused::Store(error));
            }
        }
        self.core.emit_outside_turn(SessionEvent::Rewound { to_before }).await;
        Ok(())
    }

    /// A write of an epoch that is over ends the session.
    async fn commit_between_turns(&mut self, change: &ThreadChange) -> Result<(), StoreError> {
        let (scope, ports) = (&self.core.scope, &self.core.ports);
        let changes = std::slice::from_ref(change);
        let stored = ports.store.commit(scope.session_id, scope.session_epoch, changes, ports.clock.now_ms()).await;
        // An unknown outcome may have changed what is stored.
        self.lost |= matches!(stored, Err(StoreError::Fenced { .. } | StoreError::Unknown(_)));
        stored
    }

    fn require_idle(&self) -> Result<(), RewindRefused> {
        match (self.closing, self.running.is_some() || !self.queue.is_empty()) {
            (true, _) => Err(RewindRefused::Ended),
            (false, true) => Err(RewindRefused::TurnActive),
            (false, false) => Ok(()),
        }
    }

    fn message_count(&self) -> u64 {
        self.thread.as_ref().map_or(0, |thread| thread.earlier + thread.messages.len() as u64)
    }
}

/// What a rewind would do, and the turns that it concerns.
async fn look(core: &SessionCore, to_before: TurnId) -> Result<(RewindPreview, Vec<TurnId>), RewindRefused> {
    let leaving = leaving(core, to_before).await?;
    let session = core.scope.session_id;
    let files = core.ports.files.preview(session, &leaving.turns).await.map_err(RewindRefused::Files)?;
    let fingerprint = fingerprint(to_before, &leaving, &files);
    Ok((RewindPreview { fingerprint, messages: leaving.messages, files }, leaving.turns))
}

async fn leaving(core: &SessionCore, to_before: TurnId) -> Result<Leaving, RewindRefused> {
    let mut leaving = Leaving { turns: Vec::new(), messages: 0, last: None };
    let mut from = Some(0);
    while let Some(place) = from {
        let page = core.ports.store.page(core.scope.session_id, place, PAGE).await;
        let page = page.map_err(RewindRefused::Store)?;
        for message in page.messages {
            if message.turn_id != to_before && leaving.turns.is_empty() {
                continue;
            }
            if leaving.turns.last() != Some(&message.turn_id) {
                leaving.turns.push(message.turn_id);
            }
            leaving.messages += 1;
            leaving.last = Some(message.id);
        }
        from = page.next;
    }
    if leaving.turns.is_empty() { Err(RewindRefused::NoSuchTurn) } else { Ok(leaving) }
}

/// Not for secrets: it tells two previews of one session apart.
fn fingerprint(to_before: TurnId, leaving: &Leaving, files: &[FileRewind]) -> String {
    let mut hasher = DefaultHasher::new();
    (to_before, &leaving.turns, leaving.messages, leaving.last).hash(&mut hasher);
    for file in files {
        (&file.path, format!("{:?} {:?}", file.action, file.left_alone)).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
