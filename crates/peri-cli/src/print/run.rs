//! A run's course: open the session, send the prompt, show what happens, end in order.
//!
//! Invariant: from the first moment on a signal is answered: it cancels the turn, ends every child process, and decides
//! the exit code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, PromptRequest, PromptResponse, TextContent,
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
use super::screen::{Format, Screen};
use super::sessions::{self, SessionChoice, WorkDir};
use super::summary::{Summary, Verdict};
use crate::console::Console;
use crate::exit::{Exit, Failure, StopSignal};
use crate::signals::{StopSignals, leave_at_once};
use crate::stopping::{CHILDREN_LIMIT, Stopping};

/// How long the session may take to settle.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// How long a reader that is stuck is waited for at the end of a cancelled run.
const STUCK_OUTPUT_LIMIT: Duration = Duration::from_millis(500);

/// One prompt to run.
pub struct PrintJob {
    pub prompt: String,
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
    let verdict = match connect(agent, async |link| run.course(&job, link, signals, &processes).await).await {
        Ok(verdict) => verdict,
        Err(error) => Verdict::Failed(Failure::run(format!("the session's connection broke: {error}"))),
    };
    run.end(verdict).await
}

/// A run that failed before there was a session: told in the job's format like any other.
pub async fn failed_before_session(
    failure: Failure,
    format: Format,
    console: &mut Console,
    ids: Arc<dyn IdSource>,
) -> Exit {
    let run = Run::new(Screen::new(console, ids, format));
    run.end(Verdict::Failed(failure)).await
}

struct Run<'a> {
    screen: Screen<'a>,
    summary: Summary,
    denials: Denials,
    session: Option<SessionMeta>,
}

impl Listener for Run<'_> {
    async fn hear(&mut self, message: FromAgent) {
        if let Some(happening) = Happening::of(message) {
            self.summary.observe(&happening);
            self.denials.observe(&happening);
            self.screen.show(&happening).await;
        }
    }
}

impl<'a> Run<'a> {
    fn new(screen: Screen<'a>) -> Run<'a> {
        Run { screen, summary: Summary::start(), denials: Denials::default(), session: None }
    }

    async fn course(
        &mut self,
        job: &PrintJob,
        mut link: AgentLink,
        signals: &mut StopSignals,
        processes: &SupervisedHost,
    ) -> Verdict {
        let opened = tokio::select! {
            biased;
            signal = signals.next() => return Verdict::Signalled(signal),
            opened = sessions::open(&mut link, &job.session, &job.work_dir, self) => opened,
        };
        let session = match opened {
            Ok(session) => session,
            Err(failure) => return Verdict::Failed(failure),
        };
        self.session = Some(session.clone());
        if Path::new(&session.cwd) != job.work_dir.path {
            self.screen.notice(&format!("this session works in {}", session.cwd)).await;
        }
        self.screen.begin(&session).await;
        let verdict = self.prompt(job, &session, &mut link, signals, processes).await;
        self.close(&session, &mut link, signals).await;
        verdict
    }

    async fn prompt(
        &mut self,
        job: &PrintJob,
        session: &SessionMeta,
        link: &mut AgentLink,
        signals: &mut StopSignals,
        processes: &SupervisedHost,
    ) -> Verdict {
        let content = vec![ContentBlock::Text(TextContent::new(job.prompt.clone()))];
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

    fn cancel(&self, session: &SessionMeta, link: &AgentLink, stopping: &mut Stopping, signal: Option<StopSignal>) {
        // Where the connection is gone the answer says so.
        drop(link.connection.send_notification(CancelNotification::new(session.session_id.clone())));
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

    async fn end(mut self, verdict: Verdict) -> Exit {
        let told = self.screen.end(&self.summary, &verdict, &self.denials, self.session.as_ref());
        match &verdict {
            // A reader that is stuck must not hold what a signal wants to end.
            Verdict::Signalled(_) => drop(timeout(STUCK_OUTPUT_LIMIT, told).await),
            _ => told.await,
        }
        if let Some(failure) = self.screen.output_failure() {
            self.screen.failure(&failure).await;
        }
        match (verdict.exit(), self.screen.is_watched()) {
            // Answered, and nobody got it.
            (Exit::Success, false) => Exit::Failure,
            (exit, _) => exit,
        }
    }
}

/// The verdict of a turn that was cancelled and is not waited for any longer.
fn given_up(stopping: &Stopping) -> Verdict {
    match stopping.signal() {
        Some(signal) => Verdict::Signalled(signal),
        None => Verdict::Failed(Failure::run("the turn was cancelled and did not end in time")),
    }
}
