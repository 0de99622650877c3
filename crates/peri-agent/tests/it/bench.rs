//! A session on fakes, and what a test asks of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use peri_acp_types::ports::{ContextSource, NoFileHistory, ThreadStore};
use peri_acp_types::*;
use peri_agent::*;
use peri_testkit::fake_model::{FakeAnswer, FakeModel};
use peri_testkit::fake_store::FakeStore;
use peri_testkit::gate::Gate;
use peri_testkit::runtime::{FakeClock, FakeIds, TokioSpawner};
use tokio::sync::Notify;

/// Long enough for a busy machine; a test that reaches it has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A session and everything around it.
pub struct Bench {
    pub model: FakeModel,
    pub store: Arc<FakeStore>,
    pub clock: FakeClock,
    pub tools: Arc<FakeTools>,
    pub handle: SessionHandle,
    pub events: EventReceiver,
}

pub struct Setup {
    pub store: Arc<FakeStore>,
    pub clock: FakeClock,
    pub limits: SessionLimits,
    pub notices: Vec<(NoticeKind, String)>,
    /// Other than the one that the script is for.
    pub model: Option<FakeModel>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            store: Arc::new(FakeStore::new()),
            clock: FakeClock::automatic(),
            limits: SessionLimits::default(),
            notices: Vec::new(),
            model: None,
        }
    }
}

pub fn session_id() -> SessionId {
    SessionId(uuid::Uuid::from_u128(42))
}

impl Bench {
    pub async fn new(script: impl IntoIterator<Item = FakeAnswer>) -> Bench {
        Bench::with(Setup::default(), script).await
    }

    pub async fn with(setup: Setup, script: impl IntoIterator<Item = FakeAnswer>) -> Bench {
        Bench::start(setup, script).await.expect("a session")
    }

    /// Opens the stored session if there is one, else creates it.
    pub async fn start(setup: Setup, script: impl IntoIterator<Item = FakeAnswer>) -> Result<Bench, SessionOpenError> {
        let model = setup.model.unwrap_or_default();
        model.then(script);
        let tools = Arc::new(FakeTools::default());
        let config = SessionConfig {
            session_id: session_id(),
            parent: None,
            cwd: "/workspace".into(),
            roots: vec!["/workspace".into()],
            definition: AgentDefinition {
                name: "main".into(),
                system_prompt: "You are a test.".into(),
                append_system_prompt: Some("Be brief.".into()),
            },
            limits: setup.limits,
            model: Arc::new(model.clone()),
            permission_mode: PermissionMode::Default,
            effort: None,
            middlewares: vec![tools.clone()],
            notices: setup.notices,
            hold: Arc::default(),
            past: Past::Own,
        };
        let ports = SessionPorts {
            clock: Arc::new(setup.clock.clone()),
            ids: Arc::new(FakeIds::starting_at(
                setup.store.thread(session_id()).map_or(0, |thread| thread.epoch.0 * 10_000),
            )),
            spawner: Arc::new(TokioSpawner),
            store: setup.store.clone(),
            context: Arc::new(FixedContext),
            files: Arc::new(NoFileHistory),
        };
        let (handle, events) = match setup.store.thread(session_id()) {
            Some(_) => open_session(setup.store.load(session_id()).await?, config, ports).await?,
            None => create_session(config, ports).await?,
        };
        Ok(Bench { model, store: setup.store, clock: setup.clock, tools, handle, events })
    }

    /// Hands in a text and gives the events up to the end of its turn.
    pub async fn prompt(&mut self, text: &str) -> Vec<SessionEvent> {
        let turn_id = self.accept(text).await;
        self.until_end_of(turn_id).await
    }

    pub async fn accept(&self, text: &str) -> TurnId {
        let input = PromptInput::new(vec![Content::Text(text.into())]);
        self.handle.prompt(input).await.expect("an accepted input").turn_id
    }

    pub async fn until_end_of(&mut self, turn_id: TurnId) -> Vec<SessionEvent> {
        let mut seen = Vec::new();
        loop {
            let event = self.next().await.expect("events up to the end of the turn");
            let ends = matches!(event.event, SessionEvent::TurnEnded(_)) && event.turn_id == Some(turn_id);
            seen.push(event.event);
            if ends {
                return seen;
            }
        }
    }

    pub async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            let event = self.next_of_any_kind().await;
            if !event.as_ref().is_some_and(|event| matches!(event.event, SessionEvent::QueueChanged(_))) {
                return event;
            }
        }
    }

    /// Snapshots of the queue too, which come beside everything else.
    pub async fn next_of_any_kind(&mut self) -> Option<AgentEvent> {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event in time")
    }

    /// Reads events until one is of that kind.
    pub async fn until(&mut self, wanted: fn(&SessionEvent) -> bool) -> AgentEvent {
        loop {
            let event = self.next().await.expect("events");
            if wanted(&event.event) {
                return event;
            }
        }
    }

    pub fn thread(&self) -> Thread {
        self.store.thread(session_id()).expect("a stored thread")
    }
}

/// The end of the last turn in a list of events.
pub fn end(events: &[SessionEvent]) -> &TurnEnd {
    match events.last() {
        Some(SessionEvent::TurnEnded(end)) => end,
        other => panic!("the last event is {other:?}"),
    }
}

/// Results of the tools that the session offers: `echo` answers with its argument `text`, `hang` waits for the cancel,
/// `write` is like `echo` but not read-only, `panic` is a bug.
#[derive(Default)]
pub struct FakeTools {
    /// Names of calls in the order in which they began and ended: `+echo`, `-echo`.
    pub log: Mutex<Vec<String>>,
    pub hanging: Notify,
    pub refuse: Mutex<Option<String>>,
    /// What `close` cannot confirm.
    pub unconfirmed: Mutex<Vec<String>>,
    /// Holds the command `slow` back.
    pub commands: Gate,
}

impl FakeTools {
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("a log").clone()
    }

    fn note(&self, text: String) {
        self.log.lock().expect("a log").push(text);
    }
}

struct NoteOnDrop<'a>(&'a FakeTools, String);

impl Drop for NoteOnDrop<'_> {
    fn drop(&mut self) {
        self.0.note(format!("-{}", self.1));
    }
}

#[async_trait::async_trait]
impl Middleware for FakeTools {
    fn name(&self) -> &'static str {
        "fake-tools"
    }

    async fn open(&self, _session: &SessionScope) -> Contribution {
        let spec = |name: &str, kind: ToolKind| ToolSpec {
            name: name.into(),
            description: format!("{name} for tests"),
            input_schema: serde_json::json!({"type": "object"}),
            kind,
            read_only: kind == ToolKind::Read,
            origin: ToolOrigin::Builtin("fake".into()),
        };
        let tools = vec![
            spec("echo", ToolKind::Read),
            spec("write", ToolKind::Edit),
            spec("hang", ToolKind::Execute),
            spec("panic", ToolKind::Other),
        ];
        let command = |name: &str| CommandSpec { name: name.into(), description: "for tests".into(), input_hint: None };
        let commands = ["review", "silent", "fail", "slow"].map(command).to_vec();
        Contribution { tools, commands, prompt_parts: vec!["Tools are fake.".into()], ..Contribution::default() }
    }

    async fn run_command(&self, name: &str, input: &str) -> Option<Result<String, String>> {
        self.note(format!("/{name}"));
        match name {
            "review" => Some(Ok(format!("Please review {input}."))),
            "silent" => Some(Ok(String::new())),
            "fail" => Some(Err("its server is down".into())),
            "slow" => {
                let _note = NoteOnDrop(self, "/slow".into());
                self.commands.pass().await;
                Some(Ok("at last".into()))
            }
            _ => None,
        }
    }

    async fn permission_mode_changed(&self, mode: PermissionMode) {
        self.note(format!("mode {}", mode.as_str()));
    }

    async fn before_call(&self, _call: &mut PendingCall) -> CallVerdict {
        match &*self.refuse.lock().expect("a refusal") {
            Some(text) => CallVerdict::Refuse(ToolOutput::error(text.clone())),
            None => CallVerdict::Proceed,
        }
    }

    async fn run_call(&self, call: &PendingCall) -> Option<ToolOutput> {
        let name = call.call.name.clone();
        self.note(format!("+{name}"));
        let _note = NoteOnDrop(self, name.clone());
        match name.as_str() {
            "echo" | "write" => {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                Some(ToolOutput::text(call.call.arguments.str("text").unwrap_or("nothing")))
            }
            "hang" => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            "panic" => panic!("a bug in a middleware"),
            _ => None,
        }
    }

    async fn close(&self, _session: &SessionScope) -> Vec<String> {
        self.note("closed".into());
        self.unconfirmed.lock().expect("a list").clone()
    }
}

struct FixedContext;

#[async_trait::async_trait]
impl ContextSource for FixedContext {
    async fn pull(&self, _cwd: &str) -> (ContextFacts, Vec<String>) {
        let facts = ContextFacts {
            instructions: vec![InstructionFile { path: "/workspace/AGENTS.md".into(), text: "Use tabs.".into() }],
            date: "2026-01-02".into(),
            platform: "test".into(),
            git: None,
            language: None,
        };
        (facts, Vec::new())
    }
}
