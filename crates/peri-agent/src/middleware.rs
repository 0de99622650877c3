//! Hook points: how a capability or a rule is mounted on a session without the loop knowing it.

use peri_acp_types::{
    AttemptId, CancellationToken, CommandSpec, NoticeKind, PermissionMode, SessionEpoch, SessionId, ToolCall,
    ToolOutput, ToolSpec, TurnId,
};

/// An aspect of a session. The chain's order is contract: hooks run from first to last.
///
/// Every hook may wait. A hook's future is dropped when the turn is cancelled; it must then leave nothing running.
#[async_trait::async_trait]
pub trait Middleware: Send + Sync {
    /// For messages and tests.
    fn name(&self) -> &'static str;

    /// Called once, before the first turn of this process: connects what it needs and says what it adds. Does not fail:
    /// what cannot be had is left out and named in a notice.
    async fn open(&self, session: &SessionScope) -> Contribution {
        let _ = session;
        Contribution::default()
    }

    /// Called on every middleware before any of them judges: a call of a tool that stands for another one becomes that
    /// other one, so that rules, people and servers see what would really run. The transcript keeps what the model said.
    async fn resolve_call(&self, call: &mut PendingCall) {
        let _ = call;
    }

    /// Runs a command that it contributed: gives the text that the model is shown in place of it. `name` is without the
    /// slash, `input` is what follows it, trimmed. None where the command is not its own.
    ///
    /// # Errors
    /// A text for the user; no turn begins then.
    async fn run_command(&self, name: &str, input: &str) -> Option<Result<String, String>> {
        let _ = (name, input);
        None
    }

    /// The session has another mode from now on, also for calls that wait for an answer. The session waits for this hook:
    /// it must take note and return, and wait for nothing.
    async fn permission_mode_changed(&self, mode: PermissionMode) {
        let _ = mode;
    }

    /// Judges a call before it runs. The first refusal counts and becomes the call's result.
    async fn before_call(&self, call: &mut PendingCall) -> CallVerdict {
        let _ = call;
        CallVerdict::Proceed
    }

    /// Runs a call of a tool that it contributed; None where the tool is not its own.
    async fn run_call(&self, call: &PendingCall) -> Option<ToolOutput> {
        let _ = call;
        None
    }

    /// Called once, last: ends what it started, within the time that the caller gives. Returns what it could not confirm.
    async fn close(&self, session: &SessionScope) -> Vec<String> {
        let _ = session;
        Vec::new()
    }
}

/// The session that a hook works for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionScope {
    pub session_id: SessionId,
    pub session_epoch: SessionEpoch,
    /// Absolute.
    pub cwd: String,
    /// Workspace roots, absolute; the first is `cwd`.
    pub roots: Vec<String>,
}

/// What a middleware adds to a session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Contribution {
    /// Shown to the model in this order, after those of earlier middlewares.
    pub tools: Vec<ToolSpec>,
    /// Goes into the system prompt when the session is created, and is frozen with it.
    pub prompt_parts: Vec<String>,
    /// What a prompt that begins with a slash may run.
    pub commands: Vec<CommandSpec>,
    pub notices: Vec<(NoticeKind, String)>,
}

/// A call on its way.
#[derive(Clone, Debug)]
pub struct PendingCall {
    pub session: SessionScope,
    pub turn_id: TurnId,
    pub attempt_id: AttemptId,
    pub call: ToolCall,
    pub spec: ToolSpec,
    /// Absolute, canonical paths outside the roots that permission has granted for this call.
    pub granted_paths: Vec<String>,
    /// Globs on absolute, canonical paths that a search of this call must leave out, since a rule denies reading them.
    pub hidden_paths: Vec<String>,
    /// What the user should know of how the call was judged; told once it is.
    pub notices: Vec<(NoticeKind, String)>,
    /// Fires when the turn is cancelled. The future of the hook is dropped soon after.
    pub cancel: CancellationToken,
}

/// What a middleware says of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum CallVerdict {
    Proceed,
    /// The call does not run; this is its result.
    Refuse(ToolOutput),
}
