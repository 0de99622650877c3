//! Stand-ins for what a middleware reaches the outside by.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use peri_acp_types::ports::{Clock, PathResolver, ResolvedPath, UserInteractionBroker};
use peri_acp_types::{
    AttemptId, CancellationToken, ElicitationAnswer, ElicitationRequest, PermissionAnswer, PermissionRequest,
    SessionEpoch, SessionId, ToolArguments, ToolCall, ToolCallId, ToolKind, ToolOrigin, ToolSpec, TurnId,
};
use peri_agent::{PendingCall, SessionScope};
use peri_config::{PermissionRule, RuleList};
use peri_middlewares::permission::RuleSink;
use serde_json::{Value, json};
use uuid::Uuid;

/// The workspace of every test.
pub const ROOT: &str = "/work";

pub fn scope() -> SessionScope {
    SessionScope {
        session_id: SessionId(Uuid::from_u128(1)),
        session_epoch: SessionEpoch(1),
        cwd: ROOT.to_owned(),
        roots: vec![ROOT.to_owned()],
    }
}

pub fn builtin(name: &str, kind: ToolKind, read_only: bool) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        kind,
        read_only,
        origin: ToolOrigin::Builtin("workspace".to_owned()),
    }
}

/// A tool of the workspace server, as it is listed.
pub fn workspace_tool(name: &str) -> ToolSpec {
    match name {
        "Read" | "BashOutput" => builtin(name, ToolKind::Read, true),
        "Grep" | "Glob" => builtin(name, ToolKind::Search, true),
        "Write" | "Edit" => builtin(name, ToolKind::Edit, false),
        _ => builtin(name, ToolKind::Execute, false),
    }
}

pub fn external(server: &str, tool: &str, read_only: bool) -> ToolSpec {
    ToolSpec {
        name: peri_middlewares::mcp::external_tool_name(server, tool),
        origin: ToolOrigin::External(server.to_owned()),
        ..builtin("", ToolKind::Other, read_only)
    }
}

pub fn pending(spec: ToolSpec, arguments: Value) -> PendingCall {
    let arguments = arguments.as_object().expect("an object").clone();
    PendingCall {
        session: scope(),
        turn_id: TurnId(Uuid::from_u128(2)),
        attempt_id: AttemptId(Uuid::from_u128(3)),
        call: ToolCall {
            id: ToolCallId("call".to_owned()),
            name: spec.name.clone(),
            arguments: ToolArguments::Object(arguments),
        },
        spec,
        granted_paths: Vec::new(),
        hidden_paths: Vec::new(),
        notices: Vec::new(),
        cancel: CancellationToken::new(),
    }
}

/// Answers questions in the order in which it was told to; when it has no answer left, nobody is there.
#[derive(Default)]
pub struct FakeBroker {
    pub answers: Mutex<VecDeque<PermissionAnswer>>,
    /// While set, questions are shown and nobody answers.
    pub away: AtomicBool,
    pub asked: Mutex<Vec<PermissionRequest>>,
    /// Answers to forms; when there is none left, a form stays open.
    pub forms: Mutex<VecDeque<ElicitationAnswer>>,
    pub shown_forms: tokio::sync::watch::Sender<Vec<ElicitationRequest>>,
}

#[async_trait::async_trait]
impl UserInteractionBroker for FakeBroker {
    async fn request_permission(&self, request: PermissionRequest) -> PermissionAnswer {
        self.asked.lock().unwrap().push(request);
        if self.away.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let answer = self.answers.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| PermissionAnswer::Unavailable("nobody is there to be asked".to_owned()))
    }

    async fn elicit(&self, request: ElicitationRequest) -> ElicitationAnswer {
        self.shown_forms.send_modify(|forms| forms.push(request));
        let answer = self.forms.lock().unwrap().pop_front();
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

/// Keeps what it is given; rules that deny begin with `deny`.
#[derive(Default)]
pub struct FakeSink(pub Mutex<Vec<String>>);

#[async_trait::async_trait]
impl RuleSink for FakeSink {
    async fn keep(&self, list: RuleList, rules: &[PermissionRule]) -> Result<(), String> {
        self.0.lock().unwrap().extend(rules.iter().map(|rule| match list {
            RuleList::Allow => rule.to_string(),
            RuleList::Deny => format!("deny {rule}"),
        }));
        Ok(())
    }
}

/// A file system that exists in its links only; the home is `/home/me`.
#[derive(Default)]
pub struct FakePaths {
    /// From a path to where it leads.
    pub links: Mutex<BTreeMap<String, String>>,
}

impl FakePaths {
    pub fn link(&self, from: &str, to: &str) {
        self.links.lock().unwrap().insert(from.to_owned(), to.to_owned());
    }

    fn follow(&self, path: &str) -> String {
        let links = self.links.lock().unwrap();
        let mut resolved = String::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                resolved.truncate(resolved.rfind('/').unwrap_or(0));
            } else {
                resolved = format!("{resolved}/{part}");
            }
            if let Some(target) = links.get(&resolved) {
                resolved = target.clone();
            }
        }
        if resolved.is_empty() { "/".to_owned() } else { resolved }
    }
}

#[async_trait::async_trait]
impl PathResolver for FakePaths {
    async fn resolve(&self, roots: &[String], cwd: &str, path: &str) -> ResolvedPath {
        let absolute = match path.strip_prefix('~') {
            Some(rest) => format!("/home/me{rest}"),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("{cwd}/{path}"),
        };
        let path = self.follow(&absolute);
        let inside = roots
            .iter()
            .map(|root| self.follow(root))
            .any(|root| path == root || path.starts_with(&format!("{root}/")));
        ResolvedPath { path, inside }
    }
}

/// Time that stands still until a sleep is let go.
#[derive(Default)]
pub struct StillClock {
    pub ring: Arc<tokio::sync::Notify>,
}

impl Clock for StillClock {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        let ring = self.ring.clone();
        Box::pin(async move { ring.notified().await })
    }
}
