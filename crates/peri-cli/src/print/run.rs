//! A run's course: open the session, send each prompt, show what happens, end in order.
//!
//! Invariant: from the first moment on a signal is answered: it cancels the turn, ends every child process, and decides
//! the exit code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, PromptRequest, PromptResponse,
};
use peri_acp::ClientSide;
use peri_acp::extension::SessionMeta;
use peri_acp_types::ports::IdSource;
use peri_process::SupervisedHost;
use tokio::time::timeout;

use super::client::{AgentLink, FromAgent, Listener, connect};
use super::denials::Denials;
use super::happening::Happening;
use super::hints::refused_request;
use super::intake::{Intake, NoMore};
use super::lines::Control;
use super::screen::{Format, Screen};
use super::sessions::{self, SessionChoice, WorkDir};
use super::summary::{Summary, Verdict};
use crate::console::{Console, one_line};
use crate::exit::{Exit, Failure, StopSignal};
use crate::signals::{StopSignals, leave_at_once};
use crate::stopping::{CHILDREN_LIMIT, Stopping};

/// How long the session may take to settle.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// How long a reader that is stuck is waited for at the end of a cancelled run.
const STUCK_OUTPUT_LIMIT: Duration = Duration::from_millis(500);

/// What to run.
pub struct PrintJob {
    pub input: Intake,
    pub session: SessionChoice,
    pub work_dir: WorkDir,
    pub format: Format,
}

/// What a run needs of the process around it.
pub struct Surroundings<'a> {
    pub console: &'a mut Console,
    pub signals: &'a mut StopSignals,
    pub ids: Arc<dyn IdSource>,
    pub processes: Arc<SupervisedHost>,
}

/// Runs the job to its end and says how the process should exit.
pub async fn print(job: PrintJob, agent: ClientSide, around: Surroundings<'_>) -> Exit {
    let Surroundings { console, signals, ids, processes } = around;
    let mut run = Run::new(Screen::new(console, ids, job.format));
    if let Err(error) = connect(agent, async |link| run.course(job, link, signals, &processes).await).await {
        run.conclude(Verdict::Failed(Failure::run(format!("the session's connection broke: {error}")))).await;
    }
    run.end().await
}

/// A run that failed before there was a session: told in the job's format like any other.
pub async fn failed_before_session(
    failure: Failure,
    format: Format,
    console: &mut Console,
    ids: Arc<dyn IdSource>,
) -> Exit {
    let mut run = Run::new(Screen::new(console, ids, format));
    run.conclude(Verdict::Failed(failure)).await;
    run.end().await
}

struct Run<'a> {
    screen: Screen<'a>,
    summary: Summary,
    denials: Denials,
    session: Option<SessionMeta>,
    /// What was heard before the session had begun: shown after its first line.
    early: Vec<Happening>,
    /// The worst of the turns so far; None before the first has ended.
    exit: Option<Exit>,
}

impl Listener for Run<'_> {
    async fn hear(&mut self, message: FromAgent) {
        match (Happening::of(message), &self.session) {
            (Some(happening), Some(_)) => self.show(&happening).await,
            (Some(happening), None) => self.early.push(happening),
            (None, _) => {}
        }
    }
}

impl<'a> Run<'a> {
    fn new(screen: Screen<'a>) -> Run<'a> {
        let (summary, denials) = (Summary::start(), Denials::default());
        Run { screen, summary, denials, session: None, early: Vec::new(), exit: None }
    }

    async fn show(&mut self, happening: &Happening) {
        self.summary.observe(happening);
        self.denials.observe(happening);
        self.screen.show(happening).await;
    }

    async fn show_early(&mut self) {
        for happening in std::mem::take(&mut self.early) {
            self.show(&happening).await;
        }
    }

    /// Answers one message after the other. The session is opened with the first, so that an input without any leaves none.
    async fn course(
        &mut self,
        job: PrintJob,
        mut link: AgentLink,
        signals: &mut StopSignals,
        processes: &SupervisedHost,
    ) {
        let mut around = Around { input: job.input, link: &mut link, signals, processes };
        loop {
            let content = match self.next_message(&mut around).await {
                Ok(Some(content)) => content,
                Ok(None) => break,
                // Every message has its result already.
                Err(Verdict::Signalled(signal)) if self.exit.is_some() => {
                    self.exit = Some(Exit::Signal(signal));
                    break;
                }
                Err(verdict) => {
                    self.conclude(verdict).await;
                    break;
                }
            };
            if self.exit.is_some() {
                // The first turn's time is the run's; the waiting before a later one is nobody's.
                self.summary = Summary::start();
            }
            let verdict = match self.open(&job.session, &job.work_dir, &mut around).await {
                Ok(session) => self.turn(content, &session, &mut around).await,
                Err(verdict) => verdict,
            };
            let is_last = matches!(verdict, Verdict::Signalled(_)) || self.session.is_none();
            self.conclude(verdict).await;
            if is_last || !self.screen.is_watched() {
                break;
            }
        }
        if let Some(session) = self.session.clone() {
            self.close(&session, around.link, around.signals).await;
        }
    }

    /// The next message; None at the end of the input. What the session says meanwhile is shown.
    ///
    /// # Errors
    /// How the run ends where it does not end with its input.
    async fn next_message(&mut self, around: &mut Around<'_>) -> Result<Option<Vec<ContentBlock>>, Verdict> {
        loop {
            if let Some(content) = around.input.take() {
                return Ok(Some(content));
            }
            match around.input.no_more() {
                Some(NoMore::Refused(failure)) => return Err(Verdict::Failed(failure)),
                Some(NoMore::End) if self.exit.is_none() => return Err(Verdict::Failed(no_message())),
                Some(NoMore::End) => return Ok(None),
                None => {}
            }
            tokio::select! {
                biased;
                signal = around.signals.next() => return Err(Verdict::Signalled(signal)),
                Some(message) = around.link.inbox.recv() => self.hear(message).await,
                control = around.input.arrival() => if let Some(control) = control {
                    self.screen.answer_control(&control.request_id, judge_control(&control).map(drop)).await;
                },
            }
        }
    }

    /// The session, opened if it is not.
    ///
    /// # Errors
    /// How the run ends where it cannot be opened.
    async fn open(
        &mut self,
        choice: &SessionChoice,
        work_dir: &WorkDir,
        around: &mut Around<'_>,
    ) -> Result<SessionMeta, Verdict> {
        if let Some(session) = &self.session {
            return Ok(session.clone());
        }
        let opened = tokio::select! {
            biased;
            signal = around.signals.next() => return Err(Verdict::Signalled(signal)),
            opened = sessions::open(around.link, choice, work_dir, self) => opened,
        };
        let session = opened.map_err(Verdict::Failed)?;
        self.session = Some(session.clone());
        if Path::new(&session.cwd) != work_dir.path {
            self.screen.notice(&format!("this session works in {}", session.cwd)).await;
        }
        self.screen.begin(&session).await;
        self.show_early().await;
        Ok(session)
    }

    async fn turn(&mut self, content: Vec<ContentBlock>, session: &SessionMeta, around: &mut Around<'_>) -> Verdict {
        let Around { input, link, signals, processes } = around;
        let answer = link.connection.send_request(PromptRequest::new(session.session_id.clone(), content)).block_task();
        let mut answer = std::pin::pin!(answer);
        let mut stopping = Stopping::default();
        let answer = loop {
            tokio::select! {
                biased;
                signal = signals.next() => match stopping.signal() {
                    None => self.cancel(session, link, &mut stopping, Some(signal)),
                    Some(first) => leave_at_once(first),
                },
                () = stopping.children_due() => {
                    drop(processes.shutdown(CHILDREN_LIMIT).await);
                    stopping.children_ended();
                }
                () = stopping.given_up() => return given_up(&stopping),
                Some(message) = link.inbox.recv() => {
                    if let Some(signal) = self.hear_unless_signalled(message, signals).await {
                        self.cancel(session, link, &mut stopping, Some(signal));
                    }
                    if !self.screen.is_watched() && !stopping.has_begun() {
                        self.cancel(session, link, &mut stopping, None);
                    }
                }
                control = input.arrival() => if let Some(control) = control {
                    let judged = judge_control(&control);
                    if let Ok(Deed::Interrupt) = judged {
                        // The session goes on, so nothing but the turn is ended.
                        request_cancel(session, link);
                    }
                    if let Some(signal) = self.answer_unless_signalled(&control, judged, signals).await {
                        self.cancel(session, link, &mut stopping, Some(signal));
                    }
                },
                answer = &mut answer => break answer,
            }
        };
        link.hear_the_rest(self).await;
        match stopping.signal() {
            Some(signal) => Verdict::Signalled(signal),
            None => self.judge(answer),
        }
    }

    /// Shows a message; gives the signal that came while the output was stuck.
    async fn hear_unless_signalled(&mut self, message: FromAgent, signals: &mut StopSignals) -> Option<StopSignal> {
        let signal = tokio::select! {
            biased;
            () = self.hear(message) => return None,
            signal = signals.next() => signal,
        };
        self.screen.give_up_output();
        Some(signal)
    }

    /// The same for an answer to a control request.
    async fn answer_unless_signalled(
        &mut self,
        control: &Control,
        judged: Result<Deed, String>,
        signals: &mut StopSignals,
    ) -> Option<StopSignal> {
        let signal = tokio::select! {
            biased;
            () = self.screen.answer_control(&control.request_id, judged.map(drop)) => return None,
            signal = signals.next() => signal,
        };
        self.screen.give_up_output();
        Some(signal)
    }

    fn cancel(&self, session: &SessionMeta, link: &AgentLink, stopping: &mut Stopping, signal: Option<StopSignal>) {
        request_cancel(session, link);
        stopping.begin(signal);
    }

    fn judge(&self, answer: Result<PromptResponse, Error>) -> Verdict {
        match answer {
            Ok(_) => self.summary.verdict(),
            // The terminal event says more than the error that it was mapped to.
            Err(error) => match self.summary.verdict() {
                Verdict::Failed(failure) if self.summary.has_ended() => Verdict::Failed(failure),
                _ => Verdict::Failed(refused_request(&error)),
            },
        }
    }

    /// What is left undone shows in the next run, so it is said and does not change how this one ended.
    async fn close(&mut self, session: &SessionMeta, link: &mut AgentLink, signals: &mut StopSignals) {
        let request = CloseSessionRequest::new(session.session_id.clone());
        let closed = tokio::select! {
            biased;
            signal = signals.next() => leave_at_once(signal),
            closed = timeout(CLOSE_LIMIT, link.request(request, self)) => closed,
        };
        match closed {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => self.screen.notice(&format!("the session is not settled: {}", error.message)).await,
            Err(_) => self.screen.notice("the session is not settled: it did not answer in time").await,
        }
    }

    /// Tells how a turn, or the run, has ended.
    async fn conclude(&mut self, verdict: Verdict) {
        let told = self.screen.end(&self.summary, &verdict, &self.denials, self.session.as_ref());
        match &verdict {
            // A reader that is stuck must not hold what a signal wants to end.
            Verdict::Signalled(_) => drop(timeout(STUCK_OUTPUT_LIMIT, told).await),
            _ => told.await,
        }
        self.exit = Some(self.exit.map_or(verdict.exit(), |exit| exit.or_worse(verdict.exit())));
        self.summary = Summary::start();
        self.denials = Denials::default();
    }

    async fn end(mut self) -> Exit {
        if let Some(failure) = self.screen.output_failure() {
            self.screen.failure(&failure).await;
        }
        match (self.exit.unwrap_or(Exit::Success), self.screen.is_watched()) {
            // Answered, and nobody got it.
            (Exit::Success, false) => Exit::Failure,
            (exit, _) => exit,
        }
    }
}

/// What a run works with besides its own state.
struct Around<'a> {
    input: Intake,
    link: &'a mut AgentLink,
    signals: &'a mut StopSignals,
    processes: &'a SupervisedHost,
}

/// What a control request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    Interrupt,
    /// It only wants to be answered.
    Nothing,
}

/// What is to be done for a control request.
///
/// # Errors
/// Why nothing is, in words for its sender.
fn judge_control(control: &Control) -> Result<Deed, String> {
    let has_hooks =
        control.request.get("hooks").is_some_and(|hooks| hooks.as_object().is_some_and(|map| !map.is_empty()));
    match control.request.get("subtype").and_then(|subtype| subtype.as_str()) {
        Some("interrupt") => Ok(Deed::Interrupt),
        Some("initialize") if has_hooks => Err("hooks of a client are not supported".to_owned()),
        Some("initialize") => Ok(Deed::Nothing),
        Some(other) => Err(format!("control request `{}` is not supported", one_line(other))),
        None => Err("the control request has no `subtype`".to_owned()),
    }
}

fn request_cancel(session: &SessionMeta, link: &AgentLink) {
    // Where the connection is gone the answer says so.
    drop(link.connection.send_notification(CancelNotification::new(session.session_id.clone())));
}

fn no_message() -> Failure {
    Failure::usage("standard input ended without a message")
        .hint("a line is {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"what to do\"}}")
}

/// The verdict of a turn that was cancelled and is not waited for any longer.
fn given_up(stopping: &Stopping) -> Verdict {
    match stopping.signal() {
        Some(signal) => Verdict::Signalled(signal),
        None => Verdict::Failed(Failure::run("the turn was cancelled and did not end in time")),
    }
}
