//! The handle of a session: cheap to clone, safe to keep after the session is gone.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::{
    AttemptId, CommandId, CommandSpec, PromptInput, QueueSnapshot, RewindDone, RewindPreview, RewindScope,
    SessionEpoch, SessionId, SessionSettings, SteerAnswer, StoreError, TakeBack, ToolKind, TurnId, TurnKey,
};
use tokio::sync::{mpsc, oneshot};

use crate::{CloseIncomplete, RenameRefused, RewindRefused, SessionChange, SessionEnded, SessionScope};

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
    Prompt { input: PromptInput, reply: oneshot::Sender<Result<AcceptedInput, PromptRefused>> },
    Queue { reply: oneshot::Sender<QueueSnapshot> },
    TakeBack { command_id: CommandId, reply: oneshot::Sender<TakeBack> },
    Steer { command_id: CommandId, reply: oneshot::Sender<SteerAnswer> },
    Rename { title: String, reply: oneshot::Sender<Result<(), RenameRefused>> },
    PreviewRewind { to_before: TurnId, reply: oneshot::Sender<Result<RewindPreview, RewindRefused>> },
    Rewind { rewind: Rewind, reply: oneshot::Sender<Result<RewindDone, RewindRefused>> },
    UndoRewind { scope: RewindScope, reply: oneshot::Sender<Result<RewindDone, RewindRefused>> },
    Change { change: SessionChange, reply: oneshot::Sender<Result<SessionSettings, SessionEnded>> },
    Cancel { target: CancelTarget, queue: QueueOnCancel, reply: oneshot::Sender<CancelAnswer> },
    Close { deadline: Duration, reply: oneshot::Sender<Result<(), CloseIncomplete>> },
}

/// An input that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedInput {
    /// The turn that it has unless it is steered into another one.
    pub turn_id: TurnId,
    pub command_id: CommandId,
}

/// A rewind that was previewed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewind {
    pub to_before: TurnId,
    pub scope: RewindScope,
    /// Of the preview: if anything has changed since, nothing is done.
    pub fingerprint: String,
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CancelAnswer {
    /// The turn is being cancelled, by this call or an earlier one.
    Cancelling(Cancelling),
    /// That attempt is over; nothing was done. This one runs now, if any.
    Stale { current: Option<TurnKey> },
    /// No turn runs.
    Idle,
}

/// What a cancel has set going.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancelling {
    /// The turn whose terminal event follows.
    pub key: TurnKey,
    /// Inputs that this call took from the queue, in their order. They have no turn, so no terminal event comes for them.
    pub withdrawn: Vec<AcceptedInput>,
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
    /// and its terminal event tells the outcome. One that joined another turn ([`InputSteered`]) ends with that one. The
    /// same command id again is the same input: it is not taken twice, and the answer is the same.
    ///
    /// # Errors
    /// [`PromptRefused`]; the input was not taken then.
    ///
    /// [`InputSteered`]: peri_acp_types::SessionEvent::InputSteered
    pub async fn prompt(&self, input: PromptInput) -> Result<AcceptedInput, PromptRefused> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Prompt { input, reply }).await;
        answer.await.unwrap_or(Err(PromptRefused::Closed))
    }

    /// The queue as it stands.
    ///
    /// # Errors
    /// [`SessionEnded`].
    pub async fn queue(&self) -> Result<QueueSnapshot, SessionEnded> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Queue { reply }).await;
        answer.await.map_err(|_| SessionEnded)
    }

    /// Takes an input back that still waits.
    ///
    /// # Errors
    /// [`SessionEnded`].
    pub async fn take_back(&self, command_id: CommandId) -> Result<TakeBack, SessionEnded> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::TakeBack { command_id, reply }).await;
        answer.await.map_err(|_| SessionEnded)
    }

    /// Has an input that waits delivered at the next Receive of the running turn.
    ///
    /// # Errors
    /// [`SessionEnded`].
    pub async fn steer(&self, command_id: CommandId) -> Result<SteerAnswer, SessionEnded> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Steer { command_id, reply }).await;
        answer.await.map_err(|_| SessionEnded)
    }

    /// Gives the session another title. It is stored when this returns.
    ///
    /// # Errors
    /// [`RenameRefused`].
    pub async fn rename(&self, title: String) -> Result<(), RenameRefused> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Rename { title, reply }).await;
        answer.await.unwrap_or(Err(RenameRefused::Ended))
    }

    /// What taking the session back to before that turn would do. Changes nothing.
    ///
    /// # Errors
    /// [`RewindRefused`].
    pub async fn preview_rewind(&self, to_before: TurnId) -> Result<RewindPreview, RewindRefused> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::PreviewRewind { to_before, reply }).await;
        answer.await.unwrap_or(Err(RewindRefused::Ended))
    }

    /// Takes the session back, as it was previewed. Files go first: where the conversation cannot follow, the error says so.
    ///
    /// # Errors
    /// [`RewindRefused`].
    pub async fn rewind(&self, rewind: Rewind) -> Result<RewindDone, RewindRefused> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Rewind { rewind, reply }).await;
        answer.await.unwrap_or(Err(RewindRefused::Ended))
    }

    /// Undoes the last rewind, of each kind that the scope names.
    ///
    /// # Errors
    /// [`RewindRefused`].
    pub async fn undo_rewind(&self, scope: RewindScope) -> Result<RewindDone, RewindRefused> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::UndoRewind { scope, reply }).await;
        answer.await.unwrap_or(Err(RewindRefused::Ended))
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

    /// Cancels. What is cleared from the queue is withdrawn. Idempotent; the terminal event follows when the turn has ended.
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
