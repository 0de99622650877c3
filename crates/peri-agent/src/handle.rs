//! The handle of a session: cheap to clone, safe to keep after the session is gone.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::{
    AttemptId, CommandSpec, Content, SessionEpoch, SessionId, SessionSettings, StoreError, ToolKind, TurnId, TurnKey,
};
use tokio::sync::{mpsc, oneshot};

use crate::{CloseIncomplete, SessionChange, SessionEnded, SessionScope};

/// Commands that wait in a session's mailbox before a sender waits.
pub(crate) const MAILBOX_CAPACITY: usize = 64;

/// Reaches the one task that owns a session.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    opening: Arc<Opening>,
    mailbox: mpsc::Sender<SessionCommand>,
}

/// What a session was opened with. Settings may have changed since; the session's events tell.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Opening {
    pub scope: SessionScope,
    pub settings: SessionSettings,
    pub tools: Vec<ShownTool>,
    pub commands: Vec<CommandSpec>,
}

/// A tool that the model is shown, as far as a client may want to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownTool {
    pub name: String,
    pub kind: ToolKind,
}

/// What can be asked of a session.
pub(crate) enum SessionCommand {
    Prompt { content: Vec<Content>, reply: oneshot::Sender<Result<TurnId, PromptRefused>> },
    Change { change: SessionChange, reply: oneshot::Sender<Result<SessionSettings, SessionEnded>> },
    Cancel { target: CancelTarget, queue: QueueOnCancel, reply: oneshot::Sender<CancelAnswer> },
    Close { deadline: Duration, reply: oneshot::Sender<Result<(), CloseIncomplete>> },
}

/// Which turn a cancel means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelTarget {
    /// The turn that runs, whatever its attempt (ACP's `session/cancel`).
    Current,
    /// That attempt of that turn and no other.
    Attempt { turn_id: TurnId, attempt_id: AttemptId },
}

/// What a cancel does to inputs that still wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueOnCancel {
    /// They stay, and the next one starts the next turn.
    #[default]
    Keep,
    Clear,
}

/// The verdict on a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelAnswer {
    /// The turn is being cancelled, by this call or an earlier one.
    Cancelling(TurnKey),
    /// That attempt is over; nothing was done. This one runs now, if any.
    Stale { current: Option<TurnKey> },
    /// No turn runs.
    Idle,
}

/// An input that was not taken.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PromptRefused {
    #[error("the session is closing or closed")]
    Closed,
    #[error("an input needs text, an image or a resource")]
    Empty,
    #[error("{waiting} inputs wait already; take one back or let the turn end")]
    QueueFull { waiting: usize },
}

/// A session that could not be created or opened.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SessionOpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its history is readable; it cannot go on.
    #[error("the session's frozen context has an unknown form ({version}); start a new session")]
    UnknownContext { version: u32 },
}

impl SessionHandle {
    pub(crate) fn new(opening: Opening, mailbox: mpsc::Sender<SessionCommand>) -> SessionHandle {
        SessionHandle { opening: Arc::new(opening), mailbox }
    }

    pub fn session_id(&self) -> SessionId {
        self.opening.scope.session_id
    }

    pub fn session_epoch(&self) -> SessionEpoch {
        self.opening.scope.session_epoch
    }

    /// The session's working directory: absolute.
    pub fn cwd(&self) -> &str {
        &self.opening.scope.cwd
    }

    /// The settings that the session was opened with, whatever they are now.
    pub fn opened_with(&self) -> &SessionSettings {
        &self.opening.settings
    }

    /// The tools that the model is shown, in that order.
    pub fn tools(&self) -> &[ShownTool] {
        &self.opening.tools
    }

    /// What a prompt that begins with a slash may run.
    pub fn commands(&self) -> &[CommandSpec] {
        &self.opening.commands
    }

    /// Hands in an input. It runs at once, or after the turn that runs now; its events carry the turn id that comes back,
    /// and its terminal event tells the outcome.
    ///
    /// # Errors
    /// [`PromptRefused`]; the input was not taken then.
    pub async fn prompt(&self, content: Vec<Content>) -> Result<TurnId, PromptRefused> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Prompt { content, reply }).await;
        answer.await.unwrap_or(Err(PromptRefused::Closed))
    }

    /// Changes the session; [`SessionChange`] says from when on it holds. What comes back is what the session works with
    /// from then on; where that is not what it was, [`SettingsChanged`] tells everybody else.
    ///
    /// # Errors
    /// [`SessionEnded`]; nothing was changed then.
    ///
    /// [`SettingsChanged`]: peri_acp_types::SessionEvent::SettingsChanged
    pub async fn change(&self, change: SessionChange) -> Result<SessionSettings, SessionEnded> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Change { change, reply }).await;
        answer.await.unwrap_or(Err(SessionEnded))
    }

    /// Cancels. Idempotent; the terminal event follows when the turn has ended.
    pub async fn cancel(&self, target: CancelTarget, queue: QueueOnCancel) -> CancelAnswer {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Cancel { target, queue, reply }).await;
        answer.await.unwrap_or(CancelAnswer::Idle)
    }

    /// Settles the session: nothing of it runs afterwards and everything that it acknowledged is stored. Closing a closed
    /// session succeeds. `deadline` bounds the wait for what the session has started.
    ///
    /// # Errors
    /// [`CloseIncomplete`] where that cannot be confirmed; the session is still there and may be closed again.
    pub async fn close(&self, deadline: Duration) -> Result<(), CloseIncomplete> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Close { deadline, reply }).await;
        answer.await.unwrap_or(Ok(()))
    }

    /// A send that fails means that the actor has ended: the dropped reply channel says so to the caller.
    async fn send(&self, command: SessionCommand) {
        let _ = self.mailbox.send(command).await;
    }
}
