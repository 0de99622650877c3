//! Permission: may this call run?
//!
//! Owns: the session's rules, the mode, and the question to the user. Isolation is somebody else's: what is allowed runs
//! with all the rights that Peri has, and a deny rule about paths binds the file tools and redirections, not programs.
//! Must not: run anything, read files, or believe what an external server says of its tools.
//! Invariants: deny beats ask beats allow; a question that gets no answer is a refusal.

mod judge;
mod path_rule;
mod refusal;
mod rule;
mod shell;
mod shell_rule;
mod shell_verdict;
mod suggest;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{Either, select};
use peri_acp_types::ports::{PathResolver, UserInteractionBroker};
use peri_acp_types::{
    NoticeKind, PermissionAnswer, PermissionMode, PermissionRequest, ToolArguments, ToolCall, ToolSpec,
};
use peri_agent::{CallVerdict, Contribution, Middleware, PendingCall, SessionScope};
use peri_config::{PermissionRule, RuleList, Sourced};
use tokio::sync::watch;

use judge::{Grounds, Question, Verdict, hidden_paths, judge};
use path_rule::Place;
use refusal::Remedy;
use rule::{Pattern, Rule, Rules, SHELL_TOOL};

pub use rule::PolicyRule;

/// What a session may do from the start.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PermissionPolicy {
    pub mode: PermissionMode,
    pub allow: Vec<PolicyRule>,
    pub ask: Vec<PolicyRule>,
    pub deny: Vec<PolicyRule>,
}

impl From<&peri_config::Permissions> for PermissionPolicy {
    fn from(settings: &peri_config::Permissions) -> PermissionPolicy {
        let rules = |sourced: &[Sourced<PermissionRule>]| sourced.iter().map(PolicyRule::from).collect();
        PermissionPolicy {
            mode: settings.mode,
            allow: rules(&settings.allow),
            ask: rules(&settings.ask),
            deny: rules(&settings.deny),
        }
    }
}

/// Tools that the model is not shown, since every call of them is denied.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    denied: Vec<Rule>,
}

impl ToolFilter {
    /// The filter that follows from a policy's deny rules without a pattern.
    pub fn new(policy: &PermissionPolicy) -> ToolFilter {
        let rules = policy.deny.iter().cloned().map(Rule::new);
        ToolFilter { denied: rules.filter(|rule| matches!(rule.pattern, Pattern::Every)).collect() }
    }

    pub fn hides(&self, tool: &ToolSpec) -> bool {
        self.denied.iter().any(|rule| rule.is_about(tool))
    }
}

/// Keeps the rules that a user chose to have for good.
#[async_trait::async_trait]
pub trait RuleSink: Send + Sync {
    /// Adds rules to that list. The session has them already. May be dropped when the turn is cancelled, and must then
    /// have written all or none.
    ///
    /// # Errors
    /// Why they could not be written, for the user.
    async fn keep(&self, list: RuleList, rules: &[PermissionRule]) -> Result<(), String>;
}

/// Judges every call of one session.
pub struct PermissionMiddleware {
    /// The mode in force; a question that is open watches it.
    mode: watch::Sender<PermissionMode>,
    broker: Arc<dyn UserInteractionBroker>,
    paths: Arc<dyn PathResolver>,
    sink: Arc<dyn RuleSink>,
    /// Held to read or add, never over an await.
    memory: Mutex<Memory>,
    /// Held while a question is open: a person gets one at a time, and an answer may settle those that wait.
    asking: futures::lock::Mutex<()>,
}

/// What the session has learned.
struct Memory {
    rules: Arc<Rules>,
    /// Calls that were rejected for good and that no rule can name.
    rejected: HashSet<String>,
}

impl PermissionMiddleware {
    pub fn new(
        policy: &PermissionPolicy,
        broker: Arc<dyn UserInteractionBroker>,
        paths: Arc<dyn PathResolver>,
        sink: Arc<dyn RuleSink>,
    ) -> PermissionMiddleware {
        let rules = Arc::new(Rules::new(&policy.allow, &policy.ask, &policy.deny));
        PermissionMiddleware {
            mode: watch::Sender::new(policy.mode),
            broker,
            paths,
            sink,
            memory: Mutex::new(Memory { rules, rejected: HashSet::new() }),
            asking: futures::lock::Mutex::new(()),
        }
    }

    fn mode(&self) -> PermissionMode {
        *self.mode.borrow()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Rules and rejections are added whole; no panic can leave them half changed.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn judge_with(&self, pending: &PendingCall, rules: &Rules, mode: PermissionMode) -> Verdict {
        let place = Place { resolver: self.paths.as_ref(), session: &pending.session };
        judge(&pending.spec, &pending.call, Grounds { rules, mode, place }).await
    }

    async fn judge(&self, pending: &PendingCall) -> Verdict {
        let rules = self.memory().rules.clone();
        if self.memory().rejected.contains(&fingerprint(&pending.call)) {
            return Verdict::Deny("the user rejected this call for the whole session".to_owned());
        }
        self.judge_with(pending, &rules, self.mode()).await
    }

    /// Asks the user, unless an answer to another question has settled it meanwhile.
    async fn ask(&self, pending: &mut PendingCall) -> CallVerdict {
        let _one_at_a_time = self.asking.lock().await;
        // From before the verdict on, so that no change falls between the two.
        let changes = self.mode.subscribe();
        match self.judge(pending).await {
            Verdict::Ask(question) => self.put(pending, question, changes).await,
            settled => settle(pending, settled),
        }
    }

    async fn put(
        &self,
        pending: &mut PendingCall,
        question: Question,
        changes: watch::Receiver<PermissionMode>,
    ) -> CallVerdict {
        let offered = if self.would_allow(pending, &question.candidates, self.mode()).await {
            question.candidates.clone()
        } else {
            Vec::new()
        };
        let answer = match self.answer(pending, request(pending, &question, &offered), changes).await {
            Either::Left(answer) => answer,
            Either::Right(settled) => return settle(pending, settled),
        };
        let subject = refusal::subject(&pending.spec, &pending.call);
        let refused = match answer {
            PermissionAnswer::AllowOnce => None,
            PermissionAnswer::AllowAlways => {
                if !offered.is_empty() {
                    self.learn(pending, RuleList::Allow, &offered).await;
                }
                None
            }
            PermissionAnswer::RejectOnce => Some(refusal::rejected(&subject)),
            PermissionAnswer::RejectAlways => {
                // Several rules together were needed to allow it; one of them alone may be about harmless calls too. So
                // nothing is written then, and this very call is rejected for as long as the session lasts.
                match offered.as_slice() {
                    [_] => self.learn(pending, RuleList::Deny, &offered).await,
                    _ => drop(self.memory().rejected.insert(fingerprint(&pending.call))),
                }
                Some(refusal::rejected(&subject))
            }
            PermissionAnswer::Cancelled => Some(refusal::cancelled(&subject)),
            PermissionAnswer::Unavailable(why) => {
                let remedy = self.remedy(pending, offered).await;
                Some(refusal::unavailable(&subject, &question.reason, &why, &remedy))
            }
        };
        match refused {
            Some(output) => CallVerdict::Refuse(output),
            None => settle(pending, Verdict::Allow { granted: question.granted }),
        }
    }

    /// The user's answer, or the verdict that a change of the mode came to meanwhile, which withdraws the question.
    async fn answer(
        &self,
        pending: &PendingCall,
        request: PermissionRequest,
        mut changes: watch::Receiver<PermissionMode>,
    ) -> Either<PermissionAnswer, Verdict> {
        let mut answer = self.broker.request_permission(request);
        loop {
            match select(answer, pin!(changes.changed())).await {
                Either::Left((answer, _)) => return Either::Left(answer),
                Either::Right((_, still_open)) => answer = still_open,
            }
            match self.judge(pending).await {
                Verdict::Ask(_) => {}
                settled => return Either::Right(settled),
            }
        }
    }

    /// Takes up rules for this session and for good; the user is told where the latter fails.
    async fn learn(&self, pending: &mut PendingCall, list: RuleList, rules: &[PermissionRule]) {
        self.take_up(list, rules);
        if let Err(why) = self.sink.keep(list, rules).await {
            pending.notices.push((NoticeKind::Configuration, not_kept(list, rules, &why)));
        }
    }

    fn take_up(&self, list: RuleList, rules: &[PermissionRule]) {
        let mut memory = self.memory();
        let known = Arc::make_mut(&mut memory.rules);
        let known = match list {
            RuleList::Allow => &mut known.allow,
            RuleList::Deny => &mut known.deny,
        };
        known.extend(rules.iter().cloned().map(Rule::new));
    }

    /// Whether the call would run without a question if these rules allowed what they mean.
    async fn would_allow(&self, pending: &PendingCall, more: &[PermissionRule], mode: PermissionMode) -> bool {
        let mut rules = Rules::clone(&self.memory().rules.clone());
        rules.allow.extend(more.iter().cloned().map(Rule::new));
        matches!(self.judge_with(pending, &rules, mode).await, Verdict::Allow { .. })
    }

    async fn remedy(&self, pending: &PendingCall, offered: Vec<PermissionRule>) -> Remedy {
        let mut remedy = Remedy { rules: offered, mode: None };
        if remedy.rules.is_empty() && pending.spec.name == SHELL_TOOL {
            let every_command: Vec<PermissionRule> = PermissionRule::builtin(SHELL_TOOL, None).into_iter().collect();
            if self.would_allow(pending, &every_command, self.mode()).await {
                remedy.rules = every_command;
            }
        }
        for mode in PermissionMode::ALL {
            if mode != self.mode() && remedy.mode.is_none() && self.would_allow(pending, &[], mode).await {
                remedy.mode = Some(mode);
            }
        }
        remedy
    }
}

#[async_trait::async_trait]
impl Middleware for PermissionMiddleware {
    fn name(&self) -> &'static str {
        "permission"
    }

    async fn open(&self, _session: &SessionScope) -> Contribution {
        let complaints = self.memory().rules.complaints();
        let notices = complaints.into_iter().map(|complaint| (NoticeKind::Configuration, complaint)).collect();
        Contribution { notices, ..Contribution::default() }
    }

    async fn permission_mode_changed(&self, mode: PermissionMode) {
        self.mode.send_replace(mode);
    }

    async fn before_call(&self, call: &mut PendingCall) -> CallVerdict {
        let verdict = match self.judge(call).await {
            Verdict::Ask(_) => self.ask(call).await,
            settled => settle(call, settled),
        };
        if verdict == CallVerdict::Proceed {
            let rules = self.memory().rules.clone();
            let place = Place { resolver: self.paths.as_ref(), session: &call.session };
            let hidden = hidden_paths(&call.spec, &rules, place).await;
            call.hidden_paths = hidden;
        }
        verdict
    }
}

fn not_kept(list: RuleList, rules: &[PermissionRule], why: &str) -> String {
    let what = match list {
        RuleList::Allow => "allowed",
        RuleList::Deny => "rejected",
    };
    let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
    format!("{what} for this session only, since the rules could not be kept ({}): {why}", rules.join(", "))
}

/// Carries out a verdict that is no question.
fn settle(pending: &mut PendingCall, verdict: Verdict) -> CallVerdict {
    let subject = || refusal::subject(&pending.spec, &pending.call);
    match verdict {
        Verdict::Allow { granted } => {
            pending.granted_paths.extend(granted);
            CallVerdict::Proceed
        }
        Verdict::Ask(question) => CallVerdict::Refuse(refusal::denied(&subject(), &question.reason)),
        Verdict::Deny(reason) => CallVerdict::Refuse(refusal::denied(&subject(), &reason)),
        Verdict::Malformed(output) => CallVerdict::Refuse(output),
    }
}

fn request(pending: &PendingCall, question: &Question, offered: &[PermissionRule]) -> PermissionRequest {
    PermissionRequest {
        session_id: pending.session.session_id,
        turn_id: pending.turn_id,
        call: pending.call.clone(),
        kind: pending.spec.kind,
        title: refusal::title(&pending.spec, &pending.call),
        reason: question.reason.clone(),
        always_rules: offered.iter().map(PermissionRule::to_string).collect(),
    }
}

/// The call, whoever makes it again.
fn fingerprint(call: &ToolCall) -> String {
    let arguments = match &call.arguments {
        ToolArguments::Object(arguments) => serde_json::Value::Object(arguments.clone()).to_string(),
        ToolArguments::Invalid { raw, .. } => raw.clone(),
    };
    format!("{} {arguments}", call.name)
}
