//! `peri sessions delete`.
//!
//! Invariants: nothing is deleted before all that was named has been found, shown and agreed to. A session that another
//! process runs is deleted too: the store refuses what that process writes from then on, and its turn ends with that.

use peri_acp_types::SessionId;
use peri_acp_types::ports::ThreadStore;

use super::question::{Consent, Question, is_agreed};
use super::sessions::{list_line, resolve, store_failure};
use crate::console::Console;
use crate::exit::{Exit, Failure};

const QUESTION: Question = Question {
    words: "Delete them? They cannot be brought back.",
    deed: "delete them",
    hint: "peri sessions delete --yes deletes without asking",
};

/// Deletes the sessions whose ids begin so.
///
/// # Errors
/// A [`Failure`] where one of them is not there, its id is not clear, nobody can be asked, or the store fails.
pub async fn delete(
    store: &dyn ThreadStore,
    ids: &[String],
    consent: Consent,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let mut found: Vec<SessionId> = Vec::new();
    let mut shown = String::new();
    for id in ids {
        let thread = resolve(store, id).await?;
        if found.contains(&thread.meta.id) {
            continue;
        }
        found.push(thread.meta.id);
        shown.push_str(&list_line(&thread.meta, true));
        if thread.open_turn.is_some() {
            shown.push_str("  a turn of it has no end: it runs elsewhere, or Peri was killed in it\n");
        }
    }
    if consent == Consent::Ask {
        say(console, &shown).await;
    }
    if !is_agreed(consent, QUESTION, console).await? {
        say(console, "nothing was deleted").await;
        return Ok(Exit::Failure);
    }
    for id in found {
        store.delete(id).await.map_err(|error| store_failure(&error))?;
        say(console, &format!("deleted {id}")).await;
    }
    Ok(Exit::Success)
}

/// A report that nobody reads any more needs no error.
async fn say(console: &mut Console, text: &str) {
    drop(console.text(text).await);
}
