//! Telling a client what was said in a session before it was opened: page by page, only while the client keeps up.
//!
//! Must not: hold more of a conversation than a page. Invariant: a call is told with its result.

use peri_acp_types::{Message, MessageBody};
use peri_controller::{Controller, ControllerError, SessionFacts};

use crate::forward::send_update;
use crate::map::replay::replay;
use crate::transport::{ClientGone, Outlet};

/// Messages in a page.
const PAGE: usize = 200;

/// Why a history was not told to its end.
pub(crate) enum HistoryCutShort {
    ClientGone,
    Unreadable(ControllerError),
}

impl From<ClientGone> for HistoryCutShort {
    fn from(_: ClientGone) -> HistoryCutShort {
        HistoryCutShort::ClientGone
    }
}

/// Tells the first `count` messages of the conversation; what came later is told by events.
///
/// # Errors
/// [`HistoryCutShort`]; the client has been told the messages before.
pub(crate) async fn tell_history(
    controller: &Controller,
    outlet: &Outlet,
    facts: &SessionFacts,
    mut count: u64,
) -> Result<(), HistoryCutShort> {
    let mut from = Some(0);
    let mut untold: Vec<Message> = Vec::new();
    while let Some(place) = from.filter(|_| count > 0) {
        let limit = usize::try_from(count).unwrap_or(PAGE).min(PAGE);
        let page = controller.history(facts.session_id, place, limit).await.map_err(HistoryCutShort::Unreadable)?;
        count = count.saturating_sub(page.messages.len() as u64);
        from = page.next;
        untold.extend(page.messages);
        let waiting = untold.pop_if(|last| count > 0 && from.is_some() && awaits_results(last));
        for updates in replay(&untold, &facts.tools) {
            outlet.room().await?;
            updates.into_iter().try_for_each(|update| send_update(outlet, facts.session_id, update))?;
        }
        untold = waiting.into_iter().collect();
    }
    Ok(())
}

fn awaits_results(message: &Message) -> bool {
    matches!(&message.body, MessageBody::Assistant(assistant) if assistant.calls().next().is_some())
}
