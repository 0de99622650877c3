//! The method table: what a client may ask, and who answers it. Every method that is not here is -32601.
//!
//! Handlers hold the connection's dispatch loop, so each only starts the work and returns; nothing here waits.
//! Invariant: work is started in the order in which requests came.

mod prompt;
mod session;

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest,
};
use agent_client_protocol::v1::{Builder, ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, Error, HandleDispatchFrom, JsonRpcResponse, on_receive_notification, on_receive_request,
};

use crate::connection::Connection;
use crate::errors::{internal, invalid_params};
use crate::negotiation::negotiate;

/// The way back to the client.
pub(crate) type ToClient = ConnectionTo<Client>;

/// Registers every method.
pub(crate) fn table(connection: &Arc<Connection>) -> Builder<Agent, impl HandleDispatchFrom<Client> + use<>> {
    let own = || connection.clone();
    Agent
        .v1()
        .name("peri")
        .on_receive_request(
            {
                let connection = own();
                async move |request: InitializeRequest, responder, _client| initialize(&connection, &request, responder)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_request: AuthenticateRequest, responder, _client| {
                let words = "Peri offers no authentication methods and needs none; go on with session/new";
                responder.respond_with_error(invalid_params(words))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: NewSessionRequest, responder, client| {
                    session::new(&connection, client, request, responder)
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: LoadSessionRequest, responder, client| {
                    session::load(&connection, client, request, responder)
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: ResumeSessionRequest, responder, client| {
                    session::resume(&connection, client, request, responder)
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: ListSessionsRequest, responder, client| {
                    let work = session::list(connection.clone(), request);
                    answer_later(&connection, &client, responder, work)
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: CloseSessionRequest, responder, client| {
                    let work = session::close(connection.clone(), request);
                    answer_later(&connection, &client, responder, work)
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: DeleteSessionRequest, responder, client| {
                    let work = session::delete(connection.clone(), request);
                    answer_later(&connection, &client, responder, work)
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            {
                let connection = own();
                async move |request: PromptRequest, responder, client| {
                    prompt::prompt(&connection, &client, request, responder)
                }
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            {
                let connection = own();
                async move |notification: CancelNotification, client| {
                    prompt::cancel(&connection, &client, &notification)
                }
            },
            on_receive_notification!(),
        )
}

fn initialize(
    connection: &Arc<Connection>,
    request: &InitializeRequest,
    responder: Responder<agent_client_protocol::v1::schema::InitializeResponse>,
) -> Result<(), Error> {
    match negotiate(request) {
        Ok((negotiated, response)) => {
            connection.set_negotiated(negotiated);
            responder.respond(response)
        }
        Err(error) => responder.respond_with_error(invalid_params(&format!("_meta.peri: {error}"))),
    }
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
