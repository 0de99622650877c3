//! Which session a run is for.
//!
//! Owns: finding a stored session by what was said on the command line. Must not: read a store; sessions are listed and
//! opened over ACP.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    ListSessionsRequest, Meta, NewSessionRequest, ResumeSessionRequest, SessionInfo,
};
use peri_acp::extension::{self, NewSessionRequestMeta, SessionMeta};
use uuid::Uuid;

use super::client::{AgentLink, Listener};
use super::hints::refused_request;
use crate::exit::Failure;

/// How many candidates an ambiguous id names.
const SHOWN_CANDIDATES: usize = 5;

/// The session that a run is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionChoice {
    /// A new one, with that id if there is one.
    New(Option<Uuid>),
    /// The last one of the working directory.
    Last,
    /// The one whose id begins so.
    ById(String),
}

/// The working directory of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkDir {
    /// Absolute, links resolved.
    pub path: PathBuf,
    pub chosen: ChosenBy,
}

/// How a working directory was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChosenBy {
    /// It is where Peri was started.
    Circumstance,
    /// `--cwd`.
    Option,
}

/// Opens the session. A stored one goes on in its own directory, wherever Peri was started.
///
/// # Errors
/// A [`Failure`] where there is no such session, or it cannot be opened.
pub async fn open(
    link: &mut AgentLink,
    choice: &SessionChoice,
    work_dir: &WorkDir,
    listener: &mut impl Listener,
) -> Result<SessionMeta, Failure> {
    let stored = match choice {
        SessionChoice::New(id) => return create(link, *id, &work_dir.path, listener).await,
        SessionChoice::Last => last(link, &work_dir.path, listener).await?,
        SessionChoice::ById(id) => find(link, id, listener).await?,
    };
    if work_dir.chosen == ChosenBy::Option && stored.cwd != work_dir.path {
        let (its, other) = (stored.cwd.display(), work_dir.path.display());
        return Err(Failure::usage(format!("session {} works in {its}, not in {other}", stored.session_id))
            .hint("leave --cwd out, or start a new session there"));
    }
    if !stored.cwd.is_dir() {
        return Err(Failure::usage(format!(
            "session {} worked in {}, which is no directory any more",
            stored.session_id,
            stored.cwd.display()
        ))
        .hint("peri sessions show prints what was said; start a new session to go on"));
    }
    let request = ResumeSessionRequest::new(stored.session_id.clone(), stored.cwd.clone());
    let answer = link.request(request, listener).await.map_err(|error| refused_request(&error))?;
    facts(answer.meta.as_ref())
}

async fn create(
    link: &mut AgentLink,
    id: Option<Uuid>,
    cwd: &Path,
    listener: &mut impl Listener,
) -> Result<SessionMeta, Failure> {
    let meta = NewSessionRequestMeta { session_id: id.map(|id| id.to_string()) };
    let request = NewSessionRequest::new(cwd).meta(extension::to_meta(&meta));
    let answer = link.request(request, listener).await.map_err(|error| refused_request(&error))?;
    facts(answer.meta.as_ref())
}

fn facts(meta: Option<&Meta>) -> Result<SessionMeta, Failure> {
    match extension::from_meta(meta) {
        Ok(Some(facts)) => Ok(facts),
        Ok(None) => Err(Failure::run("the agent opened a session and did not say which")),
        Err(error) => Err(Failure::run(format!("the agent opened a session and described it badly: {error}"))),
    }
}

async fn last(link: &mut AgentLink, cwd: &Path, listener: &mut impl Listener) -> Result<SessionInfo, Failure> {
    let request = ListSessionsRequest::new().cwd(cwd.to_owned());
    let page = link.request(request, listener).await.map_err(|error| refused_request(&error))?;
    page.sessions.into_iter().next().ok_or_else(|| {
        Failure::usage(format!("there is no session of {} to go on in", cwd.display()))
            .hint("leave -c out to start one; peri sessions list --all shows those of other directories")
    })
}

/// The one session whose id begins so.
///
/// # Errors
/// A usage [`Failure`] where there is none, or more than one.
async fn find(link: &mut AgentLink, id: &str, listener: &mut impl Listener) -> Result<SessionInfo, Failure> {
    let wanted = id.trim().to_ascii_lowercase();
    let mut found: Vec<SessionInfo> = all(link, listener)
        .await?
        .into_iter()
        .filter(|session| session.session_id.to_string().starts_with(&wanted))
        .collect();
    match (found.pop(), found.len()) {
        (Some(session), 0) => Ok(session),
        (Some(session), more) => {
            found.push(session);
            let ids: Vec<String> =
                found.iter().take(SHOWN_CANDIDATES).map(|session| session.session_id.to_string()).collect();
            Err(Failure::usage(format!("{} sessions have an id that begins with {id}: {}", more + 1, ids.join(", ")))
                .hint("give more of the id"))
        }
        (None, _) => {
            Err(Failure::usage(format!("there is no session {id}"))
                .hint("peri sessions list --all shows those there are"))
        }
    }
}

/// Every stored session, newest first, page by page.
///
/// # Errors
/// A [`Failure`] where the list cannot be had.
async fn all(link: &mut AgentLink, listener: &mut impl Listener) -> Result<Vec<SessionInfo>, Failure> {
    let mut sessions = Vec::new();
    let mut cursor = None;
    loop {
        let request = ListSessionsRequest::new().cursor(cursor);
        let page = link.request(request, listener).await.map_err(|error| refused_request(&error))?;
        sessions.extend(page.sessions);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(sessions),
        }
    }
}
