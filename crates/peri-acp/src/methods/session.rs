//! Opening, listing, closing and deleting sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse, HttpHeader,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpServer, McpServerHttp,
    McpServerStdio, NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse, SystemPrompt,
};
use agent_client_protocol::{Error, JsonRpcResponse};
use peri_acp_types::ports::{HeaderValue, McpTransport, Secret, ThreadQuery};
use peri_acp_types::{SessionId, Thread};
use peri_controller::{ControllerError, LiteParams, LoadedSession, OfferedServer, OpenedSession, SessionFacts};

use super::{ToClient, beside, too_many};
use crate::broker::AcpBroker;
use crate::connection::{Connection, InFlight};
use crate::errors::{from_controller, invalid_params};
use crate::extension::{NewSessionRequestMeta, from_meta};
use crate::forward::{forward, send_update};
use crate::map::replay::replay;
use crate::map::session::{facts_meta, list_entry, named_session};
use crate::map::view::SessionView;
use crate::transport::{ClientGone, Outlet};

/// How long a close may take before it is answered as incomplete.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);
/// Sessions in one page of a list.
const LIST_PAGE: usize = 50;

pub(super) fn new(
    connection: &Arc<Connection>,
    client: ToClient,
    request: NewSessionRequest,
    responder: Responder<NewSessionResponse>,
) -> Result<(), Error> {
    let id = wanted_id(&request)?;
    let NewSessionRequest { cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let setup = Setup { cwd, additional_directories, mcp_servers, system_prompt };
    let params = setup.params(connection, &client)?;
    let Some(opening) = Opening::admit(connection, &client, responder)? else { return Ok(()) };
    beside(&client, async move {
        match opening.connection.controller.new_session(params, id).await {
            Err(error) => opening.give_up(&error),
            Ok(opened) => {
                let answer = |facts: &SessionFacts| {
                    NewSessionResponse::new(facts.session_id.to_string()).meta(facts_meta(facts))
                };
                opening.take_up(opened, None, answer).await;
            }
        }
    })
}

pub(super) fn load(
    connection: &Arc<Connection>,
    client: ToClient,
    request: LoadSessionRequest,
    responder: Responder<LoadSessionResponse>,
) -> Result<(), Error> {
    let LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let id = named_session(&session_id.0)?;
    let setup = Setup { cwd, additional_directories, mcp_servers, system_prompt };
    let params = setup.params(connection, &client)?;
    let Some(opening) = Opening::admit(connection, &client, responder)? else { return Ok(()) };
    beside(&client, async move {
        match opening.connection.controller.load_session(params, id).await {
            Err(error) => opening.give_up(&error),
            Ok(LoadedSession { opened, thread }) => {
                let answer = |facts: &SessionFacts| LoadSessionResponse::new().meta(facts_meta(facts));
                opening.take_up(opened, Some(thread), answer).await;
            }
        }
    })
}

pub(super) fn resume(
    connection: &Arc<Connection>,
    client: ToClient,
    request: ResumeSessionRequest,
    responder: Responder<ResumeSessionResponse>,
) -> Result<(), Error> {
    let ResumeSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let id = named_session(&session_id.0)?;
    let setup = Setup { cwd, additional_directories, mcp_servers, system_prompt };
    let params = setup.params(connection, &client)?;
    let Some(opening) = Opening::admit(connection, &client, responder)? else { return Ok(()) };
    beside(&client, async move {
        match opening.connection.controller.load_session(params, id).await {
            Err(error) => opening.give_up(&error),
            Ok(LoadedSession { opened, .. }) => {
                let answer = |facts: &SessionFacts| ResumeSessionResponse::new().meta(facts_meta(facts));
                opening.take_up(opened, None, answer).await;
            }
        }
    })
}

pub(super) async fn list(
    connection: Arc<Connection>,
    request: ListSessionsRequest,
) -> Result<ListSessionsResponse, Error> {
    let cwd = request.cwd.map(path_text).transpose()?;
    let query = ThreadQuery { cwd, cursor: request.cursor, limit: LIST_PAGE };
    let page = connection.controller.list_sessions(query).await.map_err(|error| from_controller(&error))?;
    Ok(ListSessionsResponse::new(page.threads.iter().map(list_entry).collect()).next_cursor(page.next))
}

pub(super) async fn close(
    connection: Arc<Connection>,
    request: CloseSessionRequest,
) -> Result<CloseSessionResponse, Error> {
    let id = named_session(&request.session_id.0)?;
    match connection.controller.close_session(id, CLOSE_DEADLINE).await {
        Ok(()) => Ok(CloseSessionResponse::new()),
        Err(error) => Err(from_controller(&error)),
    }
}

pub(super) async fn delete(
    connection: Arc<Connection>,
    request: DeleteSessionRequest,
) -> Result<DeleteSessionResponse, Error> {
    let id = named_session(&request.session_id.0)?;
    if connection.desk(id).is_some() {
        connection.controller.close_session(id, CLOSE_DEADLINE).await.map_err(|error| from_controller(&error))?;
    }
    connection.controller.delete_session(id).await.map_err(|error| from_controller(&error))?;
    Ok(DeleteSessionResponse::new())
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
        let broker = AcpBroker { connection: Arc::downgrade(connection), client: client.clone() };
        Ok(LiteParams {
            agent: "main".to_owned(),
            cwd: path_text(self.cwd)?,
            offered_servers: self.mcp_servers.into_iter().map(offered_server).collect::<Result<_, Error>>()?,
            broker: Arc::new(broker),
        })
    }
}

/// An opening under way, and whom to answer.
struct Opening<T: JsonRpcResponse> {
    connection: Arc<Connection>,
    client: ToClient,
    responder: Responder<T>,
    in_flight: InFlight,
}

impl<T: JsonRpcResponse> Opening<T> {
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

    /// Tells the history if there is one to tell, answers, and then forwards the session's events until they end: in
    /// this order, so that the client knows a session before it hears of it.
    async fn take_up(self, opened: OpenedSession, history: Option<Thread>, answer: impl FnOnce(&SessionFacts) -> T) {
        let OpenedSession { facts, events } = opened;
        let desk = self.connection.add_desk(&facts);
        let outlet = Outlet::new(self.client, self.connection.backlog.clone());
        let told = match history {
            None => Ok(()),
            Some(thread) => show_history(&outlet, desk.id, &thread).await,
        };
        let _ = self.responder.respond(answer(&facts));
        drop(self.in_flight);
        let view = SessionView::new(self.connection.negotiated());
        let forwarded = match told {
            Ok(()) => forward(&desk, view, &outlet, events).await,
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

async fn show_history(outlet: &Outlet, id: SessionId, thread: &Thread) -> Result<(), ClientGone> {
    for updates in replay(thread) {
        outlet.room().await?;
        updates.into_iter().try_for_each(|update| send_update(outlet, id, update))?;
    }
    Ok(())
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

/// JSON is text, so every path that came is.
fn path_text(path: PathBuf) -> Result<String, Error> {
    path.into_os_string().into_string().map_err(|_| invalid_params("a path must be UTF-8"))
}

/// A server of the client's, as the controller knows it.
///
/// # Errors
/// -32602 where it is of a kind that is not offered.
fn offered_server(server: McpServer) -> Result<OfferedServer, Error> {
    match server {
        McpServer::Stdio(McpServerStdio { name, command, args, env, .. }) => {
            let env = env.into_iter().map(|variable| (variable.name, Secret::new(variable.value))).collect();
            let transport = McpTransport::Stdio { command: path_text(command)?, args, env };
            Ok(OfferedServer { name, transport })
        }
        McpServer::Http(McpServerHttp { name, url, headers, .. }) => {
            let secret = |header: HttpHeader| (header.name, HeaderValue::Secret(Secret::new(header.value)));
            let transport = McpTransport::Http { url, headers: headers.into_iter().map(secret).collect() };
            Ok(OfferedServer { name, transport })
        }
        McpServer::Sse(server) => Err(invalid_params(&format!(
            "MCP server `{}`: the SSE transport is not offered; use streamable HTTP or stdio",
            server.name
        ))),
        _ => Err(invalid_params("an MCP server has a transport that is not known here")),
    }
}
