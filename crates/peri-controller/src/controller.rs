//! The controller: opens sessions, finds them, forwards to them, sees them closed.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::ports::{MessagePage, SessionHold, ThreadPage, ThreadQuery};
use peri_acp_types::{
    CommandId, PromptInput, QueueSnapshot, RewindDone, RewindPreview, RewindScope, SessionEpoch, SessionId,
    SessionSettings, SteerAnswer, StoreError, TakeBack, ThreadMeta, TurnId,
};
use peri_agent::{
    AcceptedInput, CancelAnswer, CancelTarget, CloseIncomplete, CloseReason, Past, QueueOnCancel, Rewind,
    RewindRefused, SessionChange, SessionConfig, SessionHandle, SessionPorts,
};
use peri_config::{ModelRef, Settings};
use peri_runtime::{AlreadyOpen, Reservation, Runtime};

use crate::assemble::{Assembly, assemble, canonical_cwd};
use crate::models::{HttpModels, model_endpoint, with_the_one_provider};
use crate::user_level::user_level_settings;
use crate::{
    ControllerError, ControllerPorts, LiteParams, LoadedSession, ModelChoice, ModelConnector, OpenedSession,
    SessionFacts, SettingChoice, TakeOver,
};

/// What a client should wait before it asks again to close.
const CLOSE_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Cheap to clone; all clones reach the same sessions.
#[derive(Clone)]
pub struct Controller {
    ports: ControllerPorts,
    models: Arc<dyn ModelConnector>,
    runtime: Runtime,
}

impl Controller {
    /// A controller whose models are reached over HTTP.
    pub fn new(ports: ControllerPorts) -> Controller {
        let models = Arc::new(HttpModels { http: ports.http.clone(), clock: ports.clock.clone() });
        Controller { ports, models, runtime: Runtime::default() }
    }

    /// Takes models from elsewhere.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn ModelConnector>) -> Controller {
        Controller { models, ..self }
    }

    /// Creates a session and runs it. `id` is the client's choice; None: a new one.
    ///
    /// # Errors
    /// [`ControllerError`]; nothing runs then.
    pub async fn new_session(
        &self,
        params: LiteParams,
        id: Option<SessionId>,
    ) -> Result<OpenedSession, ControllerError> {
        let id = id.unwrap_or_else(|| SessionId(self.ports.ids.uuid()));
        let reservation = self.runtime.reserve(id)?;
        let Assembly { config, models } = assemble(&self.ports, self.models.as_ref(), params, id).await?;
        let hold = Arc::new(self.ports.store.hold(id).await?);
        let created = peri_agent::create_session(SessionConfig { hold, ..config }, self.session_ports()).await;
        let (handle, lane) = created.map_err(|error| ControllerError::of_opening(id, error))?;
        let facts = self.facts(&handle, models);
        Ok(OpenedSession { facts, events: reservation.register(handle, lane) })
    }

    /// Opens a stored session and runs it.
    ///
    /// # Errors
    /// [`ControllerError`]; nothing runs then.
    pub async fn load_session(&self, params: LiteParams, id: SessionId) -> Result<LoadedSession, ControllerError> {
        let reservation = match self.runtime.reserve(id) {
            Ok(reservation) => reservation,
            Err(already_open) => return Err(self.why_open(already_open).await),
        };
        self.open_stored(reservation, params, id, Past::Own).await
    }

    /// Copies a stored session, whether it runs or not, and opens the copy: its frozen context and its conversation as they
    /// are stored now. `id` is the client's choice; None: a new one.
    ///
    /// # Errors
    /// [`ControllerError`]; nothing runs then. Where the copy could be made and not be opened, it stays stored.
    pub async fn fork_session(
        &self,
        params: LiteParams,
        source: SessionId,
        id: Option<SessionId>,
    ) -> Result<LoadedSession, ControllerError> {
        let id = id.unwrap_or_else(|| SessionId(self.ports.ids.uuid()));
        let reservation = self.runtime.reserve(id)?;
        let head = self.ports.store.head(source).await?;
        self.require_own_cwd(&params, source, &head.meta.cwd).await?;
        let now_ms = self.ports.clock.now_ms();
        let meta = ThreadMeta { id, parent_thread_id: None, created_at_ms: now_ms, updated_at_ms: now_ms, ..head.meta };
        self.ports.store.fork(source, &meta).await?;
        self.open_stored(reservation, params, id, Past::Forked).await
    }

    async fn open_stored(
        &self,
        reservation: Reservation,
        params: LiteParams,
        id: SessionId,
        past: Past,
    ) -> Result<LoadedSession, ControllerError> {
        let head = self.ports.store.head(id).await?;
        self.require_own_cwd(&params, id, &head.meta.cwd).await?;
        let hold = Arc::new(self.hold(id, params.take_over).await?);
        let Assembly { config, models } = assemble(&self.ports, self.models.as_ref(), params, id).await?;
        let config = SessionConfig { hold, past, ..config };
        let thread = self.ports.store.load(id).await?;
        let messages = thread.earlier + thread.messages.len() as u64;
        let opened = peri_agent::open_session(thread, config, self.session_ports()).await;
        let (handle, lane) = opened.map_err(|error| ControllerError::of_opening(id, error))?;
        let facts = self.facts(&handle, models);
        Ok(LoadedSession { opened: OpenedSession { facts, events: reservation.register(handle, lane) }, messages })
    }

    async fn hold(&self, id: SessionId, take_over: TakeOver) -> Result<SessionHold, ControllerError> {
        match (self.ports.store.hold(id).await, take_over) {
            (Err(StoreError::Held { .. }), TakeOver::Yes) => Ok(SessionHold::default()),
            (held, _) => Ok(held?),
        }
    }

    /// A session's tools and instructions are those of its own directory.
    async fn require_own_cwd(&self, params: &LiteParams, id: SessionId, stored: &str) -> Result<(), ControllerError> {
        let asked = canonical_cwd(&self.ports, &params.cwd).await?;
        if !self.ports.paths.is_directory(&asked).await {
            return Err(ControllerError::NoSuchCwd(params.cwd.clone()));
        }
        if asked == stored {
            return Ok(());
        }
        Err(ControllerError::OtherCwd { id, stored: stored.to_owned(), asked })
    }

    /// Reads a part of a session's conversation, oldest first; `from` is 0, or the `next` of the page before.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`], [`ControllerError::Store`].
    pub async fn history(&self, id: SessionId, from: u64, limit: usize) -> Result<MessagePage, ControllerError> {
        Ok(self.ports.store.page(id, from, limit).await?)
    }

    /// Hands in an input. Its events carry the turn id that comes back.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`] where the session does not run here; [`ControllerError::Prompt`].
    pub async fn prompt(&self, id: SessionId, input: PromptInput) -> Result<AcceptedInput, ControllerError> {
        Ok(self.find(id)?.prompt(input).await?)
    }

    /// The inputs that wait, and what became of the last ones.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`] where the session does not run here; [`ControllerError::Ended`].
    pub async fn queue(&self, id: SessionId) -> Result<QueueSnapshot, ControllerError> {
        Ok(self.find(id)?.queue().await?)
    }

    /// Takes an input back that still waits.
    ///
    /// # Errors
    /// As for [`Controller::queue`].
    pub async fn take_back(&self, id: SessionId, command_id: CommandId) -> Result<TakeBack, ControllerError> {
        Ok(self.find(id)?.take_back(command_id).await?)
    }

    /// Has an input that waits delivered to the running turn.
    ///
    /// # Errors
    /// As for [`Controller::queue`].
    pub async fn steer(&self, id: SessionId, command_id: CommandId) -> Result<SteerAnswer, ControllerError> {
        Ok(self.find(id)?.steer(command_id).await?)
    }

    /// Gives a session that runs here another title.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`] where the session does not run here; [`ControllerError::Rename`].
    pub async fn rename(&self, id: SessionId, title: String) -> Result<(), ControllerError> {
        Ok(self.find(id)?.rename(title).await?)
    }

    /// What taking a session back to before a turn would do.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`] where the session does not run here; [`ControllerError::Rewind`].
    pub async fn preview_rewind(&self, id: SessionId, to_before: TurnId) -> Result<RewindPreview, ControllerError> {
        Ok(self.find(id)?.preview_rewind(to_before).await?)
    }

    /// Takes a session back as it was previewed.
    ///
    /// # Errors
    /// As for [`Controller::preview_rewind`].
    pub async fn rewind(&self, id: SessionId, rewind: Rewind) -> Result<RewindDone, ControllerError> {
        Ok(self.find(id)?.rewind(rewind).await?)
    }

    /// Undoes a session's last rewind.
    ///
    /// # Errors
    /// As for [`Controller::preview_rewind`].
    pub async fn undo_rewind(&self, id: SessionId, scope: RewindScope) -> Result<RewindDone, ControllerError> {
        Ok(self.find(id)?.undo_rewind(scope).await?)
    }

    /// Changes a session that runs, and gives what it works with from then on. A model is looked up in the settings as
    /// they are now.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`] where the session does not run here, [`ControllerError::Ended`] where it is closing;
    /// [`ControllerError::ModelName`] and [`ControllerError::Config`] for a model that cannot be had. Nothing was changed.
    pub async fn change_session(
        &self,
        id: SessionId,
        choice: SettingChoice,
    ) -> Result<SessionSettings, ControllerError> {
        let handle = self.find(id)?;
        let change = match choice {
            SettingChoice::Model(text) => {
                let settings = self.settings(handle.cwd()).await?;
                let model: ModelRef = match text.parse() {
                    Ok(model) => model,
                    Err(why) => {
                        let did_you_mean = with_the_one_provider(&settings, &text);
                        return Err(ControllerError::ModelName { text, why, did_you_mean });
                    }
                };
                let endpoint = model_endpoint(&settings, settings.provider_for(&model)?);
                SessionChange::Model(self.models.connect(endpoint))
            }
            SettingChoice::PermissionMode(mode) => SessionChange::PermissionMode(mode),
            SettingChoice::Effort(effort) => SessionChange::Effort(effort),
        };
        Ok(handle.change(change).await?)
    }

    /// Finds out whether a session could ask a model: one is chosen and its key is there. Asks no endpoint. None: by the
    /// user's own settings, whatever the workspace.
    ///
    /// # Errors
    /// [`ControllerError::RelativeCwd`]; [`ControllerError::Config`], of which [`ControllerError::wants_authentication`]
    /// tells whether a key is what is missing.
    pub async fn check_model(&self, cwd: Option<&str>) -> Result<(), ControllerError> {
        let settings = match cwd {
            Some(cwd) => self.settings(&canonical_cwd(&self.ports, cwd).await?).await?,
            None => user_level_settings(&self.ports).await?,
        };
        settings.provider_for(settings.chosen_model()?)?;
        Ok(())
    }

    /// Locates the session and forwards; what comes of it is the session's verdict.
    ///
    /// # Errors
    /// [`ControllerError::NotFound`] where the session does not run here.
    pub async fn cancel(
        &self,
        id: SessionId,
        target: CancelTarget,
        queue: QueueOnCancel,
    ) -> Result<CancelAnswer, ControllerError> {
        Ok(self.find(id)?.cancel(target, queue).await)
    }

    /// Settles a session and forgets it. Succeeds for a session that is stored and does not run here.
    ///
    /// # Errors
    /// [`ControllerError::Close`] where it is not settled within the deadline; it may be asked again.
    /// [`ControllerError::NotFound`] where there is no such session.
    pub async fn close_session(&self, id: SessionId, deadline: Duration) -> Result<(), ControllerError> {
        let Some(handle) = self.runtime.find(id) else {
            return self.ports.store.head(id).await.map(drop).map_err(ControllerError::from);
        };
        let epoch = handle.session_epoch();
        let settled = async {
            handle.close(deadline).await?;
            self.runtime.drained(id, epoch).await;
            Ok::<(), CloseIncomplete>(())
        };
        tokio::select! {
            biased;
            settled = settled => settled?,
            () = self.ports.clock.sleep(deadline) => {
                let reasons = vec![CloseReason::EventsUndelivered];
                return Err(CloseIncomplete { reasons, retry_after: CLOSE_RETRY_AFTER }.into());
            }
        }
        self.runtime.remove(id, epoch);
        Ok(())
    }

    /// To be called by the reader of a session's events when they have ended: the session is gone, by whatever way.
    pub fn events_ended(&self, id: SessionId, epoch: SessionEpoch) {
        self.runtime.remove(id, epoch);
    }

    /// Lists stored sessions, newest change first.
    ///
    /// # Errors
    /// [`ControllerError::RelativeCwd`], [`ControllerError::Store`].
    pub async fn list_sessions(&self, query: ThreadQuery) -> Result<ThreadPage, ControllerError> {
        let cwd = match &query.cwd {
            Some(cwd) => Some(canonical_cwd(&self.ports, cwd).await?),
            None => None,
        };
        Ok(self.ports.store.list(&ThreadQuery { cwd, ..query }).await?)
    }

    /// Removes a stored session. One that runs here must be closed first.
    ///
    /// # Errors
    /// [`ControllerError::AlreadyOpen`], [`ControllerError::Store`].
    pub async fn delete_session(&self, id: SessionId) -> Result<(), ControllerError> {
        let _reservation = self.runtime.reserve(id)?;
        let _hold = self.ports.store.hold(id).await?;
        self.ports.store.delete(id).await?;
        // What is left of a file history is not reached any more; a later delete of the id tries again.
        self.ports.files.forget(id).await.map_err(|words| ControllerError::Rewind(RewindRefused::Files(words)))
    }

    /// Cancels what runs and closes every session. Returns what could not be confirmed, a line each.
    pub async fn shutdown(&self, deadline: Duration) -> Vec<String> {
        self.end_all(&self.runtime.open_sessions(), deadline).await
    }

    /// The same for some sessions: those of a client that is gone.
    pub async fn end_sessions(&self, ids: &[SessionId], deadline: Duration) -> Vec<String> {
        let handles: Vec<SessionHandle> = ids.iter().filter_map(|id| self.runtime.find(*id)).collect();
        self.end_all(&handles, deadline).await
    }

    async fn end_all(&self, handles: &[SessionHandle], deadline: Duration) -> Vec<String> {
        let ends = handles.iter().map(|handle| self.cancel_and_close(handle, deadline));
        futures::future::join_all(ends).await.into_iter().flatten().collect()
    }

    async fn cancel_and_close(&self, handle: &SessionHandle, deadline: Duration) -> Option<String> {
        let id = handle.session_id();
        let give_up = self.ports.clock.monotonic() + deadline;
        tokio::select! {
            biased;
            _ = handle.cancel(CancelTarget::Current, QueueOnCancel::Clear) => {}
            () = self.ports.clock.sleep(deadline) => {}
        }
        loop {
            let left = give_up.saturating_sub(self.ports.clock.monotonic());
            match self.close_session(id, left).await {
                Ok(()) | Err(ControllerError::NotFound(_)) => return None,
                Err(ControllerError::Close(incomplete)) if left > Duration::ZERO => {
                    self.ports.clock.sleep(incomplete.retry_after.min(left)).await;
                }
                Err(error) => return Some(format!("session {id}: {error}")),
            }
        }
    }

    /// A session that is being closed is about to be free; any other that is open stays so.
    async fn why_open(&self, already_open: AlreadyOpen) -> ControllerError {
        match self.ports.store.head(already_open.0).await {
            Ok(head) if head.close_intent == Some(head.epoch) => {
                let reasons = vec![CloseReason::TasksActive];
                CloseIncomplete { reasons, retry_after: CLOSE_RETRY_AFTER }.into()
            }
            Ok(_) | Err(_) => already_open.into(),
        }
    }

    fn find(&self, id: SessionId) -> Result<SessionHandle, ControllerError> {
        self.runtime.find(id).ok_or(ControllerError::NotFound(id))
    }

    fn facts(&self, handle: &SessionHandle, models: Vec<ModelChoice>) -> SessionFacts {
        SessionFacts {
            session_id: handle.session_id(),
            session_epoch: handle.session_epoch(),
            cwd: handle.cwd().to_owned(),
            settings: handle.opened_with().clone(),
            models,
            commands: handle.commands().to_vec(),
            tools: handle.tools().to_vec(),
            persistence: self.ports.persistence,
        }
    }

    async fn settings(&self, cwd: &str) -> Result<Settings, ControllerError> {
        let ports = &self.ports;
        Ok(peri_config::load(ports.config.as_ref(), ports.trust.as_ref(), cwd, &ports.overlay).await?.settings)
    }

    fn session_ports(&self) -> SessionPorts {
        SessionPorts {
            clock: self.ports.clock.clone(),
            ids: self.ports.ids.clone(),
            spawner: self.ports.spawner.clone(),
            store: self.ports.store.clone(),
            context: self.ports.context.clone(),
            files: self.ports.files.clone(),
        }
    }
}
