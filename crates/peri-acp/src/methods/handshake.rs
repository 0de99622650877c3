//! `initialize` and `authenticate`: what was agreed on, and whether the models' provider has its key.
//!
//! Must not: keep a key or take one from a client. Invariant: what `authenticate` says is looked up anew each time.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse, InitializeRequest, InitializeResponse,
};
use peri_controller::ControllerError;

use crate::connection::Connection;
use crate::errors::{from_controller, invalid_params};
use crate::negotiation::negotiate;

/// The one way to authenticate: the user gives the provider's key to Peri's environment or settings.
const PROVIDER_KEY: &str = "provider-key";

/// Agrees with the client. Waits for the user's settings to be read, so that requests behind it find it done.
pub(super) async fn initialize(
    connection: &Connection,
    request: InitializeRequest,
    responder: Responder<InitializeResponse>,
) -> Result<(), Error> {
    match negotiate(&request) {
        Ok((negotiated, response)) => {
            connection.set_negotiated(negotiated);
            // What else may be wrong with the settings is told by the request that needs them.
            let missing =
                connection.controller.check_model(None).await.err().filter(ControllerError::wants_authentication);
            responder.respond(response.auth_methods(missing.iter().map(provider_key).collect::<Vec<_>>()))
        }
        Err(error) => responder.respond_with_error(invalid_params(&format!("_meta.peri: {error}"))),
    }
}

/// Looks whether the key is there now.
pub(super) async fn authenticate(
    connection: Arc<Connection>,
    request: AuthenticateRequest,
) -> Result<AuthenticateResponse, Error> {
    if &*request.method_id.0 != PROVIDER_KEY {
        let method: String = request.method_id.0.chars().take(60).collect();
        return Err(invalid_params(&format!(
            "there is no authentication method `{method}`; there is `{PROVIDER_KEY}`"
        )));
    }
    match connection.controller.check_model(None).await {
        Ok(()) => Ok(AuthenticateResponse::new()),
        Err(error) => Err(from_controller(&error)),
    }
}

/// The method, with what is missing and how to mend it.
fn provider_key(missing: &ControllerError) -> AuthMethod {
    let description = format!(
        "{missing}. A key in Peri's settings is found at once; a variable of the environment needs a new start of Peri."
    );
    AuthMethod::Agent(AuthMethodAgent::new(PROVIDER_KEY, "Key of the model provider").description(description))
}
