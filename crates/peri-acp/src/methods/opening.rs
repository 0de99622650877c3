//! Opening sessions: new ones, and stored ones with or without their history told.
//!
//! Invariant: a client has the answer before it hears of the session, except for the history, which the protocol puts
//! before it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse, ResumeSessionRequest,
    ResumeSessionResponse, SystemPrompt,
};
use agent_client_protocol::{Error, JsonRpcResponse};
use peri_acp_types::SessionId;
use peri_controller::{ControllerError, LiteParams, LoadedSession, OpenedSession, SessionFacts, TakeOver};

use super::{ToClient, beside, too_many};
use crate::broker::AcpBroker;
use crate::connection::{Connection, InFlight};
use crate::errors::{from_controller, invalid_params};
use crate::extension::{NewSessionRequestMeta, from_meta};
use crate::forward::{forward, send_update};
use crate::history::{HistoryCutShort, tell_history};
use crate::map::mcp::{offered_server, path_text};
use crate::map::options::{config_options, mode_state};
use crate::map::session::{commands_update, facts_meta, named_session};
use crate::map::view::SessionView;
use crate::transport::{ClientGone, Outlet};

/// How long a session may take to end whose history could not be told.
const END_DEADLINE: Duration = Duration::from_secs(10);

pub(super) fn new(
    connection: &Arc<Connection>,
    client: &ToClient,
    request: NewSessionRequest,
    responder: Responder<NewSessionResponse>,
) -> Result<(), Error> {
    let id = wanted_id(&request)?;
    let NewSessionRequest { cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let params = Setup { cwd, additional_directories, mcp_servers, system_prompt }.params(connection, client)?;
    let Some(opening) = Opening::admit(connection, client, responder)? else { return Ok(()) };
    beside(client, async move {
        match opening.connection.controller.new_session(params, id).await {
            Err(error) => opening.give_up(&error),
            Ok(opened) => opening.take_up(opened, 0).await,
        }
    })
}

pub(super) fn load(
    connection: &Arc<Connection>,
    client: &ToClient,
    request: LoadSessionRequest,
    responder: Responder<LoadSessionResponse>,
) -> Result<(), Error> {
    let LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let setup = Setup { cwd, additional_directories, mcp_servers, system_prompt };
    open_stored(connection, client, (named_session(&session_id.0)?, setup), History::Told, responder)
}

pub(super) fn resume(
    connection: &Arc<Connection>,
    client: &ToClient,
    request: ResumeSessionRequest,
    responder: Responder<ResumeSessionResponse>,
) -> Result<(), Error> {
    let ResumeSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let setup = Setup { cwd, additional_directories, mcp_servers, system_prompt };
    open_stored(connection, client, (named_session(&session_id.0)?, setup), History::Untold, responder)
}

/// Whether a client that opens a stored session is told what was said in it.
enum History {
    Told,
    Untold,
}

fn open_stored<T: OpeningAnswer>(
    connection: &Arc<Connection>,
    client: &ToClient,
    (id, setup): (SessionId, Setup),
    history: History,
    responder: Responder<T>,
) -> Result<(), Error> {
    let params = setup.params(connection, client)?;
    let Some(opening) = Opening::admit(connection, client, responder)? else { return Ok(()) };
    beside(client, async move {
        match opening.connection.controller.load_session(params, id).await {
            Err(error) => opening.give_up(&error),
            Ok(LoadedSession { opened, messages }) => {
                let told = match history {
                    History::Told => messages,
                    History::Untold => 0,
                };
                opening.take_up(opened, told).await;
            }
        }
    })
}

/// What the three ways to open a session have in common.
struct Setup {
    cwd: PathBuf,
    additional_directories: Vec<PathBuf>,
    mcp_servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
}

impl Setup {
    fn params(self, connection: &Arc<Connection>, client: &ToClient) -> Result<LiteParams, Error> {
        if !self.additional_directories.is_empty() {
            return Err(invalid_params(
                "additionalDirectories is not offered; set `permissions.additionalDirectories` in settings instead",
            ));
        }
        if self.system_prompt.is_some() {
            return Err(invalid_params("systemPrompt is not offered; set `appendSystemPrompt` in settings instead"));
        }
        let broker = AcpBroker::new(connection, client.clone());
        Ok(LiteParams {
            agent: "main".to_owned(),
            cwd: path_text(self.cwd)?,
            offered_servers: self.mcp_servers.into_iter().map(offered_server).collect::<Result<_, Error>>()?,
            broker: Arc::new(broker),
            take_over: TakeOver::No,
        })
    }
}

/// The answer to a request that opens a session.
trait OpeningAnswer: JsonRpcResponse {
    fn of(facts: &SessionFacts) -> Self;
}

/// What every such answer says beside the id.
macro_rules! with_facts {
    ($answer:expr, $facts:expr) => {
        $answer
            .modes(mode_state($facts.settings.permission_mode))
            .config_options(config_options(&$facts.settings, &$facts.models))
            .meta(facts_meta($facts))
    };
}

impl OpeningAnswer for NewSessionResponse {
    fn of(facts: &SessionFacts) -> NewSessionResponse {
        with_facts!(NewSessionResponse::new(facts.session_id.to_string()), facts)
    }
}

impl OpeningAnswer for LoadSessionResponse {
    fn of(facts: &SessionFacts) -> LoadSessionResponse {
        with_facts!(LoadSessionResponse::new(), facts)
    }
}

impl OpeningAnswer for ResumeSessionResponse {
    fn of(facts: &SessionFacts) -> ResumeSessionResponse {
        with_facts!(ResumeSessionResponse::new(), facts)
    }
}

/// An opening under way, and whom to answer.
struct Opening<T: OpeningAnswer> {
    connection: Arc<Connection>,
    client: ToClient,
    responder: Responder<T>,
    in_flight: InFlight,
}

impl<T: OpeningAnswer> Opening<T> {
    /// None where there are too many requests; that has been answered.
    fn admit(
        connection: &Arc<Connection>,
        client: &ToClient,
        responder: Responder<T>,
    ) -> Result<Option<Opening<T>>, Error> {
        let Some(in_flight) = connection.admit() else { return too_many(responder).map(|()| None) };
        Ok(Some(Opening { connection: connection.clone(), client: client.clone(), responder, in_flight }))
    }

    fn give_up(self, error: &ControllerError) {
        // A failed answer means that the connection is over.
        let _ = self.responder.respond_with_error(from_controller(error));
    }

    /// Tells so many messages of the history, answers, says which commands there are, and then forwards the session's
    /// events until they end: in this order, so that the client knows a session before it hears of it.
    async fn take_up(self, opened: OpenedSession, history: u64) {
        let OpenedSession { facts, events } = opened;
        let desk = self.connection.add_desk(&facts);
        let outlet = Outlet::new(self.client, self.connection.backlog.clone());
        let told = match tell_history(&self.connection.controller, &outlet, &facts, history).await {
            Ok(()) => Ok(()),
            Err(HistoryCutShort::ClientGone) => Err(ClientGone),
            Err(HistoryCutShort::Unreadable(error)) => {
                let _ = self.responder.respond_with_error(from_controller(&error));
                desk.end();
                drop(events);
                self.connection.controller.end_sessions(&[desk.id], END_DEADLINE).await;
                return self.connection.remove_desk(&desk);
            }
        };
        let _ = self.responder.respond(T::of(&facts));
        drop(self.in_flight);
        let view = SessionView::new(self.connection.negotiated(), &facts);
        let forwarded = match told.and_then(|()| show_commands(&outlet, &facts)) {
            Ok(()) => forward(&desk, view, &outlet, self.connection.clock.as_ref(), events).await,
            Err(gone) => Err(gone),
        };
        desk.end();
        // Where the client is gone the session may still run: its desk stays, so that the connection's end ends it.
        if forwarded.is_ok() {
            self.connection.remove_desk(&desk);
            self.connection.controller.events_ended(desk.id, desk.epoch);
        }
    }
}

fn show_commands(outlet: &Outlet, facts: &SessionFacts) -> Result<(), ClientGone> {
    match commands_update(&facts.commands) {
        Some(update) => send_update(outlet, facts.session_id, update),
        None => Ok(()),
    }
}

/// The id that the client wants for a new session.
fn wanted_id(request: &NewSessionRequest) -> Result<Option<SessionId>, Error> {
    let ours: Option<NewSessionRequestMeta> =
        from_meta(request.meta.as_ref()).map_err(|error| invalid_params(&format!("_meta.peri: {error}")))?;
    let Some(text) = ours.and_then(|meta| meta.session_id) else { return Ok(None) };
    match text.parse() {
        Ok(id) => Ok(Some(id)),
        Err(_) => Err(invalid_params(&format!("_meta.peri.sessionId: `{text}` is not a UUID"))),
    }
}
