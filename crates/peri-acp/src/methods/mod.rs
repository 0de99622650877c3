//! The method table: what a client may ask, and who answers it. Every method that is not here is -32601.
//!
//! Handlers hold the connection's dispatch loop, so each only starts the work and returns; only `initialize` waits, for
//! settings to be read. Invariant: work is started in the order in which requests came.

mod handshake;
mod opening;
mod prompt;
mod session;

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::v1::{Builder, ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, Error, HandleDispatchFrom, JsonRpcResponse, UntypedMessage, on_receive_notification,
    on_receive_request,
};

use crate::connection::Connection;
use crate::errors::internal;

/// The way back to the client.
pub(crate) type ToClient = ConnectionTo<Client>;

/// Registers every method.
pub(crate) fn table(connection: &Arc<Connection>) -> Builder<Agent, impl HandleDispatchFrom<Client> + use<>> {
    /// A method whose work goes on beside the loop and then answers.
    macro_rules! answering {
        ($builder:expr, $request:ty, $work:path) => {{
            let connection = connection.clone();
            $builder.on_receive_request(
                async move |request: $request, responder, client| {
                    let work = $work(connection.clone(), request);
                    answer_later(&connection, &client, responder, work)
                },
                on_receive_request!(),
            )
        }};
    }
    /// A method that sees to its answer itself.
    macro_rules! starting {
        ($builder:expr, $request:ty, $start:path) => {{
            let connection = connection.clone();
            $builder.on_receive_request(
                async move |request: $request, responder, client| $start(&connection, &client, request, responder),
                on_receive_request!(),
            )
        }};
    }
    let builder = Agent.v1().name("peri");
    let builder = {
        let connection = connection.clone();
        builder.on_receive_request(
            async move |request: InitializeRequest, responder, _client| {
                handshake::initialize(&connection, request, responder).await
            },
            on_receive_request!(),
        )
    };
    let builder = answering!(builder, AuthenticateRequest, handshake::authenticate);
    let builder = starting!(builder, NewSessionRequest, opening::new);
    let builder = starting!(builder, LoadSessionRequest, opening::load);
    let builder = starting!(builder, ResumeSessionRequest, opening::resume);
    let builder = answering!(builder, ListSessionsRequest, session::list);
    let builder = answering!(builder, SetSessionModeRequest, session::set_mode);
    let builder = answering!(builder, SetSessionConfigOptionRequest, session::set_config_option);
    let builder = answering!(builder, CloseSessionRequest, session::close);
    let builder = answering!(builder, DeleteSessionRequest, session::delete);
    let builder = starting!(builder, PromptRequest, prompt::prompt);
    let connection = connection.clone();
    builder
        .on_receive_notification(
            async move |notification: CancelNotification, client| prompt::cancel(&connection, &client, &notification),
            on_receive_notification!(),
        )
        .on_receive_notification(
            // The protocol crate would keep those that name a session, for a handler that may come.
            async move |_unknown: UntypedMessage, _client| Ok(()),
            on_receive_notification!(),
        )
}

/// Runs the work beside the dispatch loop and answers with what it gives.
fn answer_later<T: JsonRpcResponse>(
    connection: &Arc<Connection>,
    client: &ToClient,
    responder: Responder<T>,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<(), Error> {
    let Some(in_flight) = connection.admit() else { return too_many(responder) };
    beside(client, async move {
        let result = work.await;
        drop(in_flight);
        // A failed answer means that the connection is over.
        let _ = responder.respond_with_result(result);
    })
}

/// Runs the work beside the dispatch loop, for as long as the connection lives.
fn beside(client: &ToClient, work: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    // The error of a spawned task would end the connection: work here answers for itself.
    client.spawn(async move {
        work.await;
        Ok(())
    })
}

fn too_many<T: JsonRpcResponse>(responder: Responder<T>) -> Result<(), Error> {
    responder
        .respond_with_error(internal("too many requests are under way; wait for some answers", "too-many-requests"))
}
