//! Sessions that are open or stored: listed, changed, closed, deleted.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse, ListSessionsRequest,
    ListSessionsResponse, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse,
};
use peri_acp_types::StoreError;
use peri_acp_types::ports::ThreadQuery;
use peri_controller::{ConfigError, ControllerError, SettingChoice};

use crate::connection::Connection;
use crate::desk::SessionDesk;
use crate::errors::{from_controller, invalid_params};
use crate::map::mcp::path_text;
use crate::map::options::{chosen, chosen_mode, config_options, no_such_model};
use crate::map::session::{list_entry, named_session};

/// How long a close may take before it is answered as incomplete.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);
/// Sessions in one page of a list.
const LIST_PAGE: usize = 50;

pub(super) async fn list(
    connection: Arc<Connection>,
    request: ListSessionsRequest,
) -> Result<ListSessionsResponse, Error> {
    let cwd = request.cwd.map(path_text).transpose()?;
    let query = ThreadQuery { cwd, cursor: request.cursor, limit: LIST_PAGE };
    match connection.controller.list_sessions(query.clone()).await {
        Ok(page) => Ok(ListSessionsResponse::new(page.threads.iter().map(list_entry).collect()).next_cursor(page.next)),
        Err(error) if is_of_cursor(&connection, query, &error).await => Err(invalid_params(&error.to_string())),
        Err(error) => Err(from_controller(&error)),
    }
}

/// Only the store can read its cursors, and its error does not say whether one is at fault. It is if a list from the
/// start can be had.
async fn is_of_cursor(connection: &Connection, query: ThreadQuery, error: &ControllerError) -> bool {
    let may_be = query.cursor.is_some() && matches!(error, ControllerError::Store(StoreError::Failed(_)));
    may_be && connection.controller.list_sessions(ThreadQuery { cursor: None, limit: 1, ..query }).await.is_ok()
}

pub(super) async fn set_mode(
    connection: Arc<Connection>,
    request: SetSessionModeRequest,
) -> Result<SetSessionModeResponse, Error> {
    let desk = connection.named_desk(&request.session_id.0)?;
    let choice = chosen_mode(&request.mode_id.0)?;
    connection.controller.change_session(desk.id, choice).await.map_err(|error| from_controller(&error))?;
    Ok(SetSessionModeResponse::new())
}

pub(super) async fn set_config_option(
    connection: Arc<Connection>,
    request: SetSessionConfigOptionRequest,
) -> Result<SetSessionConfigOptionResponse, Error> {
    let desk = connection.named_desk(&request.session_id.0)?;
    let choice = chosen(&request.config_id.0, &request.value)?;
    match connection.controller.change_session(desk.id, choice.clone()).await {
        Ok(settings) => Ok(SetSessionConfigOptionResponse::new(config_options(&settings, &desk.models))),
        Err(error) => Err(refused_choice(&desk, &choice, &error)),
    }
}

/// Any model of a provider that settings name can be chosen; other text names none.
fn refused_choice(desk: &SessionDesk, choice: &SettingChoice, error: &ControllerError) -> Error {
    match (choice, error) {
        (
            SettingChoice::Model(text),
            ControllerError::ModelName { .. } | ControllerError::Config(ConfigError::UnknownProvider { .. }),
        ) => no_such_model(text, error.suggested_model(), &desk.models),
        _ => from_controller(error),
    }
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
