//! Changing a session while it lives.
//!
//! Owns: what can be changed, and its present value, of which the actor holds the one copy; a turn looks at the model
//! through a watch. Invariant: the settings that are told and the model that is asked belong together.

use std::sync::Arc;

use peri_acp_types::{Effort, PermissionMode, SessionSettings};
use peri_model::{LanguageModel, Thinking};
use tokio::sync::watch;

/// What can be changed.
#[derive(Clone)]
pub enum SessionChange {
    /// Holds from the next turn on, and for a running one that has no answer yet: once a model has answered, the turn
    /// stays with it to its end, since a provider seals its thoughts and wants them back within a turn.
    Model(Arc<dyn LanguageModel>),
    /// Holds at once: for the running turn's later calls, and for a call whose question is still open if the new mode
    /// settles it. What runs already runs on.
    PermissionMode(PermissionMode),
    /// Holds when a model would. None: requests say what settings say of thinking.
    Effort(Option<Effort>),
}

/// A session that is closing or closed; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the session is closing or closed")]
pub struct SessionEnded;

/// The model that requests go to, and how much it is to think.
#[derive(Clone)]
pub(crate) struct ModelInUse {
    pub model: Arc<dyn LanguageModel>,
    pub thinking: Thinking,
}

/// What of a session can change, as it stands.
pub(crate) struct Changeable {
    settings: SessionSettings,
    in_use: watch::Sender<ModelInUse>,
    /// Where no effort is chosen.
    thinking_by_settings: Thinking,
}

impl Changeable {
    pub(crate) fn new(
        model: Arc<dyn LanguageModel>,
        permission_mode: PermissionMode,
        effort: Option<Effort>,
        thinking_by_settings: Thinking,
    ) -> Changeable {
        let settings = SessionSettings { model: model.name().to_owned(), permission_mode, effort };
        let thinking = thinking(effort, thinking_by_settings);
        Changeable { settings, in_use: watch::Sender::new(ModelInUse { model, thinking }), thinking_by_settings }
    }

    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// The way by which a turn follows the choice.
    pub(crate) fn watch(&self) -> watch::Receiver<ModelInUse> {
        self.in_use.subscribe()
    }

    /// A model of the same name may be another one: its provider's settings have changed, say.
    pub(crate) fn set_model(&mut self, model: Arc<dyn LanguageModel>) {
        self.settings.model = model.name().to_owned();
        self.in_use.send_modify(|in_use| in_use.model = model);
    }

    pub(crate) fn set_effort(&mut self, effort: Option<Effort>) {
        self.settings.effort = effort;
        let thinking = thinking(effort, self.thinking_by_settings);
        self.in_use.send_modify(|in_use| in_use.thinking = thinking);
    }

    pub(crate) fn set_permission_mode(&mut self, mode: PermissionMode) {
        self.settings.permission_mode = mode;
    }
}

fn thinking(effort: Option<Effort>, by_settings: Thinking) -> Thinking {
    effort.map_or(by_settings, Thinking::Effort)
}
