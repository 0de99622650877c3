//! `session/prompt`, `session/cancel`, and `$/cancel_request` of a prompt.

use std::sync::Arc;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{CancelNotification, PromptRequest, PromptResponse};
use agent_client_protocol::{Error, RequestCancellation};
use futures::future::{Either, select};
use peri_acp_types::{AttemptId, PromptInput, TurnId};
use peri_controller::{AcceptedInput, CancelAnswer, CancelTarget, QueueOnCancel};
use uuid::Uuid;

use super::{ToClient, beside, too_many};
use crate::connection::{Connection, InFlight};
use crate::desk::{SessionDesk, TurnStage};
use crate::errors::from_controller;
use crate::map::content::from_blocks;

/// Hands the input in; the forwarder answers when the turn has ended.
pub(super) fn prompt(
    connection: &Arc<Connection>,
    client: &ToClient,
    request: PromptRequest,
    responder: Responder<PromptResponse>,
) -> Result<(), Error> {
    let desk = connection.named_desk(&request.session_id.0)?;
    let content = from_blocks(request.prompt)?;
    let Some(in_flight) = connection.admit() else { return too_many(responder) };
    let connection = connection.clone();
    beside(client, async move {
        match connection.controller.prompt(desk.id, PromptInput::new(content)).await {
            Ok(AcceptedInput { turn_id, .. }) => {
                let cancellation = responder.cancellation();
                desk.answer_at_end(turn_id, responder);
                see_through(&connection, &desk, turn_id, cancellation, in_flight).await;
            }
            Err(error) => {
                // A failed answer means that the connection is over.
                let _ = responder.respond_with_error(from_controller(&error));
            }
        }
    })
}

/// Cancels the current turn, whatever its attempt. Inputs that wait stay, and start the next turn.
pub(super) fn cancel(
    connection: &Arc<Connection>,
    client: &ToClient,
    notification: &CancelNotification,
) -> Result<(), Error> {
    // A notification has no answer: for a session that is not open there is nothing to do.
    let Ok(desk) = connection.named_desk(&notification.session_id.0) else { return Ok(()) };
    // However many cancels a client sends, one task of its session sees to them.
    if !desk.want_cancel() {
        return Ok(());
    }
    let connection = connection.clone();
    beside(client, async move {
        loop {
            desk.take_up_cancel();
            let _ = connection.controller.cancel(desk.id, CancelTarget::Current, QueueOnCancel::Keep).await;
            if desk.cancel_seen_to() {
                return;
            }
        }
    })
}

/// Waits for the turn's end, or for the client to withdraw the request, and then cancels that turn and no other.
async fn see_through(
    connection: &Connection,
    desk: &SessionDesk,
    turn_id: TurnId,
    cancellation: RequestCancellation,
    _in_flight: InFlight,
) {
    let withdrawn = std::pin::pin!(cancellation.cancelled());
    if let Either::Right(_) = select(withdrawn, std::pin::pin!(desk.turn_over(turn_id))).await {
        return;
    }
    // No attempt has this id: the first verdict is `stale` and names the one that runs.
    let mut attempt_id = AttemptId(Uuid::nil());
    loop {
        let target = CancelTarget::Attempt { turn_id, attempt_id };
        match connection.controller.cancel(desk.id, target, QueueOnCancel::Keep).await {
            Ok(CancelAnswer::Stale { current: Some(key) }) if key.turn_id == turn_id => attempt_id = key.attempt_id,
            // It waits for its turn, or is over.
            Ok(CancelAnswer::Stale { .. } | CancelAnswer::Idle) => match desk.turn_moves(turn_id).await {
                TurnStage::Running => {}
                TurnStage::Over => return,
            },
            Ok(CancelAnswer::Cancelling(_)) | Err(_) => return,
        }
    }
}
