//! What can go wrong between a client's request and a session.

use peri_acp_types::{SessionId, StoreError};
use peri_agent::{CloseIncomplete, PromptRefused, RenameRefused, RewindRefused, SessionEnded, SessionOpenError};
use peri_config::{ConfigError, ModelRef, ModelRefError};
use peri_runtime::AlreadyOpen;

/// Why the controller did not do what it was asked.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ControllerError {
    /// The user's settings need mending.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Text that names no model.
    #[error("`{text}` {why}")]
    ModelName {
        text: String,
        why: ModelRefError,
        /// The model that was probably meant.
        did_you_mean: Option<ModelRef>,
    },
    #[error("there is no agent definition `{0}`; there is `main`")]
    UnknownAgent(String),
    #[error("{0}: the working directory must be an absolute path")]
    RelativeCwd(String),
    #[error("{0}: the working directory is not there, is not a directory, or cannot be entered")]
    NoSuchCwd(String),
    /// A stored session's tools and instructions are those of its own directory.
    #[error("session {id} belongs to {stored}, not to {asked}; open it there")]
    OtherCwd { id: SessionId, stored: String, asked: String },
    #[error("no session {0}")]
    NotFound(SessionId),
    #[error("session {0} exists already; resume it, or choose another id")]
    Exists(SessionId),
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// Its history is readable; it cannot go on.
    #[error(
        "session {id}: its frozen context has a form ({version}) that this version does not know; start a new session"
    )]
    UnknownContext { id: SessionId, version: u32 },
    /// Another live process has it open.
    #[error("session {id} is open in another process ({holder}); end it there, or take it over")]
    Held { id: SessionId, holder: String },
    #[error(transparent)]
    Ended(#[from] SessionEnded),
    #[error(transparent)]
    Rename(#[from] RenameRefused),
    #[error(transparent)]
    Rewind(#[from] RewindRefused),
    #[error(transparent)]
    Prompt(#[from] PromptRefused),
    #[error(transparent)]
    Close(#[from] CloseIncomplete),
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ControllerError {
    fn from(error: StoreError) -> ControllerError {
        match error {
            StoreError::NotFound(id) => ControllerError::NotFound(id),
            StoreError::Exists(id) => ControllerError::Exists(id),
            StoreError::Held { id, holder } => ControllerError::Held { id, holder },
            other => ControllerError::Store(other),
        }
    }
}

impl ControllerError {
    /// True where what is missing is a key, and nothing else needs mending: a client may offer a way to get one.
    pub fn wants_authentication(&self) -> bool {
        matches!(self, ControllerError::Config(error) if lacks_a_key(error))
    }

    /// The model that was probably meant where a choice named none, or a provider that is not there.
    pub fn suggested_model(&self) -> Option<String> {
        match self {
            ControllerError::ModelName { did_you_mean, .. } => did_you_mean.as_ref().map(ModelRef::to_string),
            ControllerError::Config(ConfigError::UnknownProvider { model, known, .. }) => match known.as_slice() {
                [only] => Some(format!("{only}/{model}")),
                _ => None,
            },
            _ => None,
        }
    }

    /// For an opening that failed.
    pub(crate) fn of_opening(id: SessionId, error: SessionOpenError) -> ControllerError {
        match error {
            SessionOpenError::Store(error) => error.into(),
            SessionOpenError::UnknownContext { version } => ControllerError::UnknownContext { id, version },
        }
    }
}

fn lacks_a_key(error: &ConfigError) -> bool {
    match error {
        ConfigError::KeyMissing { .. } => true,
        ConfigError::NoModel { providers, .. } => providers.is_empty(),
        ConfigError::AfterWarnings { error, .. } => lacks_a_key(error),
        _ => false,
    }
}
