//! What a session is made of: the agent's definition, its limits, the ports.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::ports::{Clock, ContextSource, FileHistory, IdSource, SessionHold, Spawner, ThreadStore};
use peri_acp_types::{Effort, NoticeKind, PermissionMode, SessionId};
use peri_model::{LanguageModel, Thinking};

use crate::Middleware;

/// The agent that a session runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentDefinition {
    /// The reference by which it was chosen: `main`.
    pub name: String,
    /// The system prompt's first part.
    pub system_prompt: String,
    /// The system prompt's last part, from the user (`--append-system-prompt`).
    pub append_system_prompt: Option<String>,
}

/// Everything that a session is created or opened with.
#[derive(Clone)]
pub struct SessionConfig {
    pub session_id: SessionId,
    /// Set for a subagent.
    pub parent: Option<SessionId>,
    /// Absolute.
    pub cwd: String,
    /// Absolute; the first is `cwd`.
    pub roots: Vec<String>,
    pub definition: AgentDefinition,
    pub limits: SessionLimits,
    pub model: Arc<dyn LanguageModel>,
    /// The mode that the chain was made with.
    pub permission_mode: PermissionMode,
    /// None: requests say what `limits` says of thinking.
    pub effort: Option<Effort>,
    /// The production chain, in its order.
    pub middlewares: Vec<Arc<dyn Middleware>>,
    /// What the user should know before the first turn.
    pub notices: Vec<(NoticeKind, String)>,
    /// This process's claim on the session. Given up when the session has ended.
    pub hold: Arc<SessionHold>,
    /// What a turn without an end means, if the thread has one.
    pub past: Past,
}

/// Where a stored thread comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Past {
    /// It is the session's own: a turn without an end was interrupted when its process stopped.
    #[default]
    Own,
    /// It was copied from another session, in which a turn without an end may go on.
    Forked,
}

/// Ports of the process that a session uses.
#[derive(Clone)]
pub struct SessionPorts {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub spawner: Arc<dyn Spawner>,
    pub store: Arc<dyn ThreadStore>,
    pub context: Arc<dyn ContextSource>,
    pub files: Arc<dyn FileHistory>,
}

/// Bounds of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionLimits {
    /// Requests to the model within one turn; None: no bound.
    pub max_turn_requests: Option<u32>,
    /// Tokens that one answer may have, where settings say so. The model's own limit still holds.
    pub max_output_tokens: Option<u32>,
    /// Where no effort is chosen.
    pub thinking: Thinking,
    pub retry: RetryPolicy,
    /// The same call with the same result this many times in a row: a notice to the model; once more as often: the turn
    /// is stopped. 0 turns the guard off.
    pub loop_guard: u32,
    /// Read-only calls that run side by side.
    pub parallel_calls: usize,
}

/// When and how often a failed attempt is followed by another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetryPolicy {
    /// Attempts per request, the first included. At least 1.
    pub max_attempts: u32,
    /// The wait before the second attempt; doubles from there, with jitter.
    pub first_delay: Duration,
    pub max_delay: Duration,
    /// A Retry-After beyond this ends the turn instead of holding it.
    pub max_retry_after: Duration,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            max_turn_requests: None,
            max_output_tokens: None,
            thinking: Thinking::Unset,
            retry: RetryPolicy::default(),
            loop_guard: 4,
            parallel_calls: 8,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 6,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(300),
        }
    }
}
