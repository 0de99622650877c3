//! The session actor: one task owns the thread, the settings, the queue and the running turn; everything else sends it
//! commands.
//!
//! Invariants: at most one turn runs, and its terminal event has been sent before the next one starts. While a turn runs,
//! nothing but a close holds the mailbox up: a client that reads nothing can still cancel.

mod rewind;
mod telling;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use peri_acp_types::{
    AttemptId, CancellationToken, CommandId, Content, Delivery, NoticeKind, PromptInput, SessionEvent, SessionSettings,
    SteerAnswer, StoreError, StoredTurnEnd, Thread, ThreadChange, ThreadRuleError, TurnError, TurnId, TurnKey,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::change::Changeable;
use crate::command::begins_with_command;
use crate::core::SessionCore;
use crate::handle::{MAILBOX_CAPACITY, Opening, SessionCommand, ShownTool};
use crate::queue::InputQueue;
use crate::turn::{self, EndedTurn, SessionAfterTurn, Turn};
use crate::{
    AcceptedInput, CancelAnswer, CancelTarget, Cancelling, CloseIncomplete, CloseReason, PromptRefused, QueueOnCancel,
    SessionChange, SessionEnded, SessionHandle,
};
use telling::{Told, Untold};

/// What a client should wait before it asks again to close.
const CLOSE_RETRY_AFTER: Duration = Duration::from_millis(100);

struct Actor {
    core: Arc<SessionCore>,
    mailbox: mpsc::Receiver<SessionCommand>,
    changeable: Changeable,
    untold: Untold,
    /// The model is being asked for its limits. Here and not in a task of its own, so that it ends with the session.
    learning: Option<BoxFuture<'static, ()>>,
    /// None while a turn has it.
    thread: Option<Thread>,
    running: Option<RunningTurn>,
    queue: InputQueue,
    closing: bool,
    /// The chain has confirmed that nothing of it is left.
    middlewares_closed: bool,
    /// Another process writes the session now, or what is stored is not known: nothing more can be done here.
    lost: bool,
}

struct RunningTurn {
    turn_id: TurnId,
    /// The attempt that runs now; the turn writes it.
    attempt: watch::Receiver<AttemptId>,
    cancel: CancellationToken,
    future: BoxFuture<'static, Result<EndedTurn, Panic>>,
}

type Panic = Box<dyn Any + Send>;

#[expect(clippy::large_enum_variant, reason = "one at a time, moved once: a box for each would cost more")]
enum Next {
    Command(Option<SessionCommand>),
    Told(Told),
    /// The turn has changed the queue.
    QueueChanged,
    LimitsLearned,
    TurnDone(Result<EndedTurn, Panic>),
}

/// Starts the actor and gives the way to it.
pub(crate) fn start(
    core: Arc<SessionCore>,
    changeable: Changeable,
    thread: Thread,
    notices: Vec<(NoticeKind, String)>,
) -> SessionHandle {
    let (tx, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
    let opening = Opening {
        scope: core.scope.clone(),
        settings: changeable.settings().clone(),
        tools: core.tools.iter().map(|tool| ShownTool { name: tool.name.clone(), kind: tool.kind }).collect(),
        commands: core.commands.clone(),
    };
    let spawner = core.ports.spawner.clone();
    let actor = Actor {
        core,
        mailbox,
        learning: Some(learn_limits(&changeable)),
        changeable,
        untold: Untold::default(),
        thread: Some(thread),
        running: None,
        queue: InputQueue::default(),
        closing: false,
        middlewares_closed: false,
        lost: false,
    };
    spawner.spawn(actor.run(notices).boxed());
    SessionHandle::new(opening, tx)
}

impl Actor {
    async fn run(mut self, notices: Vec<(NoticeKind, String)>) {
        for (kind, text) in notices {
            self.core.emit_outside_turn(SessionEvent::Notice { kind, text }).await;
        }
        loop {
            match self.next().await {
                Next::Command(Some(SessionCommand::Prompt { input, reply })) => {
                    let answer = self.accept(input);
                    let _ = reply.send(answer);
                }
                Next::Command(Some(SessionCommand::Queue { reply })) => {
                    let _ = reply.send(self.queue.snapshot());
                }
                Next::Command(Some(SessionCommand::TakeBack { command_id, reply })) => {
                    let _ = reply.send(self.queue.take_back(&command_id));
                }
                Next::Command(Some(SessionCommand::Steer { command_id, reply })) => {
                    let _ = reply.send(self.steer(&command_id));
                }
                Next::Command(Some(SessionCommand::Rename { title, reply })) => {
                    let _ = reply.send(self.rename(&title).await);
                }
                Next::Command(Some(SessionCommand::PreviewRewind { to_before, reply })) => {
                    let _ = reply.send(self.preview_rewind(to_before).await);
                }
                Next::Command(Some(SessionCommand::Rewind { rewind, reply })) => {
                    let _ = reply.send(self.rewind(rewind).await);
                }
                Next::Command(Some(SessionCommand::UndoRewind { scope, reply })) => {
                    let _ = reply.send(self.undo_rewind(scope).await);
                }
                Next::Command(Some(SessionCommand::Change { change, reply })) => {
                    let answer = self.change(change).await;
                    let _ = reply.send(answer);
                }
                Next::Command(Some(SessionCommand::Cancel { target, queue, reply })) => {
                    let _ = reply.send(self.cancel(target, queue));
                }
                Next::Command(Some(SessionCommand::Close { deadline, reply })) => {
                    let answer = self.close(deadline).await;
                    if answer.is_ok() {
                        return self.end(Some(reply));
                    }
                    let _ = reply.send(answer);
                }
                Next::Told(told) => self.untold.told(told),
                Next::QueueChanged => {}
                Next::LimitsLearned => self.learning = None,
                // Nobody can reach the session any more.
                Next::Command(None) => return self.abandon().await,
                Next::TurnDone(result) => {
                    if self.turn_done(result).await == SessionAfterTurn::Lost {
                        return self.abandon().await;
                    }
                }
            }
            if self.lost {
                return self.abandon().await;
            }
            self.start_next_turn();
        }
    }

    async fn next(&mut self) -> Next {
        let telling = self.untold.next(&self.queue).map(|(told, event)| {
            let core = &self.core;
            async move {
                core.emit_outside_turn(event).await;
                told
            }
        });
        tokio::select! {
            // A cancel that has arrived is judged before the turn goes on, and changes are told before what follows them.
            biased;
            command = self.mailbox.recv() => Next::Command(command),
            told = if_any(telling) => Next::Told(told),
            result = if_any(self.running.as_mut().map(|turn| &mut turn.future)) => Next::TurnDone(result),
            () = self.queue.changed() => Next::QueueChanged,
            () = if_any(self.learning.as_mut()) => Next::LimitsLearned,
        }
    }

    async fn change(&mut self, change: SessionChange) -> Result<SessionSettings, SessionEnded> {
        if self.closing {
            return Err(SessionEnded);
        }
        let before = self.changeable.settings().clone();
        match change {
            SessionChange::Model(model) => {
                self.changeable.set_model(model);
                self.learning = Some(learn_limits(&self.changeable));
            }
            SessionChange::Effort(effort) => self.changeable.set_effort(effort),
            SessionChange::PermissionMode(mode) => {
                self.changeable.set_permission_mode(mode);
                for middleware in &self.core.middlewares {
                    middleware.permission_mode_changed(mode).await;
                }
            }
        }
        let settings = self.changeable.settings().clone();
        if settings != before {
            self.untold.settings = Some(settings.clone());
        }
        Ok(settings)
    }

    fn accept(&mut self, input: PromptInput) -> Result<AcceptedInput, PromptRefused> {
        let PromptInput { content, command_id, delivery } = input;
        if let Some(known) = command_id.as_ref().and_then(|command_id| self.queue.known(command_id)) {
            return Ok(known);
        }
        if self.closing {
            return Err(PromptRefused::Closed);
        }
        let says_something = |content: &Content| !matches!(content, Content::Text(text) if text.trim().is_empty());
        if !content.iter().any(says_something) {
            return Err(PromptRefused::Empty);
        }
        let turn_id = TurnId(self.core.ports.ids.uuid());
        let command_id = command_id.unwrap_or_else(|| CommandId::of_turn(turn_id));
        let accepted = AcceptedInput { turn_id, command_id };
        let delivery = match delivery {
            Delivery::Steer if self.running.is_some() && self.can_join(&content) => Delivery::Steer,
            Delivery::Steer | Delivery::OwnTurn => Delivery::OwnTurn,
        };
        self.queue.push(accepted.clone(), content, delivery)?;
        Ok(accepted)
    }

    fn steer(&self, command_id: &CommandId) -> SteerAnswer {
        if self.running.is_none() {
            return self.queue.state(command_id).map_or(SteerAnswer::NoSuchInput, SteerAnswer::TooLate);
        }
        self.queue.steer(command_id, |content| self.can_join(content))
    }

    /// A command is run for an input with a turn of its own only: what it does may end that turn.
    fn can_join(&self, content: &[Content]) -> bool {
        !begins_with_command(content, &self.core.commands)
    }

    fn start_next_turn(&mut self) {
        if self.running.is_some() || self.closing || self.thread.is_none() {
            return;
        }
        let Some(AcceptedInput { turn_id, .. }) = self.queue.dispatch() else { return };
        let Some(thread) = self.thread.take() else { return };
        let (attempt_tx, attempt) = watch::channel(AttemptId(self.core.ports.ids.uuid()));
        let cancel = CancellationToken::new();
        let (core, queue) = (self.core.clone(), self.queue.clone());
        let turn = Turn::new(core, thread, turn_id, queue, attempt_tx, cancel.clone(), self.changeable.watch());
        let future = AssertUnwindSafe(turn::run(turn)).catch_unwind().boxed();
        self.running = Some(RunningTurn { turn_id, attempt, cancel, future });
    }

    /// Takes the thread back.
    async fn turn_done(&mut self, result: Result<EndedTurn, Panic>) -> SessionAfterTurn {
        let Some(turn) = self.running.take() else { return SessionAfterTurn::GoesOn };
        let ended = match result {
            Ok(ended) => ended,
            Err(panic) => match self.recover(turn.key(), panic_text(panic)).await {
                Ok(thread) => EndedTurn { thread, session: SessionAfterTurn::GoesOn },
                // What is stored is not known, so nothing may be built on it here.
                Err(_) => return SessionAfterTurn::Lost,
            },
        };
        self.thread = Some(ended.thread);
        self.end_broken_off(turn.turn_id).await;
        ended.session
    }

    /// After a turn: what was to join it has a turn of its own, and what it left unsettled, since it broke off, has an end.
    async fn end_broken_off(&mut self, turn_id: TurnId) {
        for input in self.queue.turn_ended() {
            // The turn's own end has been told.
            if input.turn_id != turn_id {
                let error = TurnError::Internal("the turn that it joined broke off".to_owned());
                self.core.emit_end_of_input(input.turn_id, error).await;
            }
        }
    }

    /// After a bug of ours inside a turn: says so, and goes back to what is stored.
    async fn recover(
        &mut self,
        (turn_id, attempt_id): (TurnId, AttemptId),
        text: String,
    ) -> Result<Thread, StoreError> {
        self.core.emit_end(turn_id, Some(attempt_id), TurnError::Internal(text)).await;
        let mut thread = self.core.ports.store.load(self.core.scope.session_id).await?;
        if let Some(turn_id) = thread.open_turn {
            let change = ThreadChange::TurnEnded {
                turn_id,
                end: StoredTurnEnd::Interrupted("an internal error of Peri".to_owned()),
            };
            let (scope, ports) = (&self.core.scope, &self.core.ports);
            let changes = [change];
            ports.store.commit(scope.session_id, scope.session_epoch, &changes, ports.clock.now_ms()).await?;
            thread.apply_all(&changes)?;
        }
        Ok(thread)
    }

    fn cancel(&mut self, target: CancelTarget, queue: QueueOnCancel) -> CancelAnswer {
        let current = self.current_turn();
        let (Some(turn), Some(key)) = (&self.running, current) else {
            return match target {
                // Nothing waits where nothing runs.
                CancelTarget::Current => CancelAnswer::Idle,
                CancelTarget::Attempt { .. } => CancelAnswer::Stale { current: None },
            };
        };
        let named = match target {
            CancelTarget::Current => true,
            CancelTarget::Attempt { turn_id, attempt_id } => turn_id == key.turn_id && attempt_id == key.attempt_id,
        };
        if !named {
            return CancelAnswer::Stale { current };
        }
        turn.cancel.cancel();
        let withdrawn = match queue {
            QueueOnCancel::Keep => Vec::new(),
            QueueOnCancel::Clear => self.queue.clear(),
        };
        CancelAnswer::Cancelling(Cancelling { key, withdrawn })
    }

    fn current_turn(&self) -> Option<TurnKey> {
        let turn = self.running.as_ref()?;
        Some(TurnKey {
            session_id: self.core.scope.session_id,
            turn_id: turn.turn_id,
            attempt_id: *turn.attempt.borrow(),
        })
    }

    /// The destroy sequence up to the point where only the mapping is left to remove. What an earlier call has done is not
    /// done again. A session that another process has taken over is settled: nothing here is its any more.
    async fn close(&mut self, deadline: Duration) -> Result<(), CloseIncomplete> {
        if self.running.is_some() {
            return Err(incomplete(&[CloseReason::PromptActive]));
        }
        let core = self.core.clone();
        let (scope, ports) = (&core.scope, &core.ports);
        let limit = ports.clock.sleep(deadline).shared();
        let intent = ports.store.put_close_intent(scope.session_id, scope.session_epoch);
        let fenced = match within(&limit, intent).await {
            Some(Ok(())) => false,
            Some(Err(StoreError::Fenced { .. })) => true,
            Some(Err(_)) | None => {
                return Err(incomplete(&[CloseReason::CloseIntentUnconfirmed, CloseReason::StoreUnsettled]));
            }
        };
        self.closing = true;
        if !self.middlewares_closed {
            let unconfirmed = within(&limit, close_middlewares(&core)).await;
            self.middlewares_closed = unconfirmed.is_some_and(|lines| lines.is_empty());
        }
        if !self.middlewares_closed {
            return Err(incomplete(&[CloseReason::TasksActive]));
        }
        if fenced {
            return Ok(());
        }
        let unsettled = incomplete(&[CloseReason::StoreUnsettled]);
        match within(&limit, self.end_open_turn()).await {
            Some(Ok(())) => {}
            Some(Err(StoreError::Fenced { .. })) => return Ok(()),
            Some(Err(_)) | None => return Err(unsettled),
        }
        let settled = ports.store.settle_close(scope.session_id, scope.session_epoch);
        match within(&limit, settled).await {
            Some(Ok(()) | Err(StoreError::Fenced { .. })) => Ok(()),
            Some(Err(_)) | None => Err(unsettled),
        }
    }

    /// A turn whose end could not be stored when it came is still open there.
    async fn end_open_turn(&mut self) -> Result<(), StoreError> {
        let Some(thread) = &mut self.thread else { return Ok(()) };
        let Some(turn_id) = thread.open_turn else { return Ok(()) };
        let end = StoredTurnEnd::Interrupted("its end could not be stored when it came".to_owned());
        let changes = [ThreadChange::TurnEnded { turn_id, end }];
        let (scope, ports) = (&self.core.scope, &self.core.ports);
        match ports.store.commit(scope.session_id, scope.session_epoch, &changes, ports.clock.now_ms()).await {
            // It was stored after all, when nobody could say so.
            Err(StoreError::Rule(ThreadRuleError::TurnNotOpen(_))) => {}
            stored => stored?,
        }
        thread.apply_all(&changes)?;
        Ok(())
    }

    /// The end: dropping the actor ends the event lane once it is drained; only then the caller is told.
    fn end(self, reply: Option<oneshot::Sender<Result<(), CloseIncomplete>>>) {
        drop(self);
        if let Some(reply) = reply {
            let _ = reply.send(Ok(()));
        }
    }

    /// The session cannot or need not go on: ends what it started, as far as that goes.
    async fn abandon(mut self) {
        if let Some(turn) = self.running.take() {
            turn.cancel.cancel();
            let _ = turn.future.await;
        }
        close_middlewares(&self.core).await;
    }
}

impl RunningTurn {
    fn key(&self) -> (TurnId, AttemptId) {
        (self.turn_id, *self.attempt.borrow())
    }
}

/// What the model in use says of its limits finds its way to them by itself; this only asks.
fn learn_limits(changeable: &Changeable) -> BoxFuture<'static, ()> {
    let model = changeable.watch().borrow().model.clone();
    async move { model.learn_limits().await }.boxed()
}

/// The future's value where there is a future; else nothing, ever.
async fn if_any<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

fn panic_text(panic: Panic) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("a panic without words").to_owned(),
    }
}

fn incomplete(reasons: &[CloseReason]) -> CloseIncomplete {
    CloseIncomplete { reasons: reasons.to_vec(), retry_after: CLOSE_RETRY_AFTER }
}

/// Closes the chain from last to first; returns what could not be confirmed.
async fn close_middlewares(core: &SessionCore) -> Vec<String> {
    let mut unconfirmed = Vec::new();
    for middleware in core.middlewares.iter().rev() {
        unconfirmed.extend(middleware.close(&core.scope).await);
    }
    unconfirmed
}

/// The future's value, or None once the limit has passed.
async fn within<T>(
    limit: &futures::future::Shared<BoxFuture<'static, ()>>,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        () = limit.clone() => None,
    }
}
