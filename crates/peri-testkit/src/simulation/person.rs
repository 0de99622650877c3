//! The person who is asked: answers when the run says so, and what it says. A question whose session gave it up is gone.

use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::oneshot;
use peri_acp_types::ports::UserInteractionBroker;
use peri_acp_types::{PermissionAnswer, PermissionRequest};

use super::Chance;

#[derive(Clone, Default)]
pub struct Person(Arc<Mutex<Vec<oneshot::Sender<PermissionAnswer>>>>);

impl Person {
    /// Answers an open question, if there is one. The answer may come too late.
    pub fn answer_one(&self, chance: &Chance) {
        let answer = match chance.below(6) {
            0 => PermissionAnswer::AllowAlways,
            1 => PermissionAnswer::RejectOnce,
            2 => PermissionAnswer::Cancelled,
            3 => PermissionAnswer::Unavailable("the client failed".to_owned()),
            _ => PermissionAnswer::AllowOnce,
        };
        let mut open = self.open();
        if !open.is_empty() {
            let place = chance.below(open.len());
            let _ = open.remove(place).send(answer);
        }
    }

    pub fn allow_all(&self) {
        for question in std::mem::take(&mut *self.open()) {
            let _ = question.send(PermissionAnswer::AllowOnce);
        }
    }

    /// Questions that somebody waits for.
    pub fn waiting(&self) -> usize {
        self.open().iter().filter(|question| !question.is_canceled()).count()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Vec<oneshot::Sender<PermissionAnswer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl UserInteractionBroker for Person {
    async fn request_permission(&self, _request: PermissionRequest) -> PermissionAnswer {
        let (question, answer) = oneshot::channel();
        self.open().push(question);
        answer.await.unwrap_or(PermissionAnswer::Cancelled)
    }
}
