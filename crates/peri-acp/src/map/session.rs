//! A session's facts and entries in a list, as ACP says them.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, Meta, SessionInfo, SessionUpdate,
    UnstructuredCommandInput,
};
use peri_acp_types::{CommandSpec, Effort, SessionId, ThreadMeta};
use peri_controller::{Persistence, SessionFacts};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::errors::session_not_found;
use crate::extension::{SessionMeta, to_meta};

/// The id of a session that a request speaks of. Any other text names no session of ours.
///
/// # Errors
/// -32002.
pub(crate) fn named_session(text: &str) -> Result<SessionId, Error> {
    text.parse().map_err(|_| session_not_found(text, &format!("there is no session `{text}`: ids are UUIDs")))
}

pub(crate) fn facts_meta(facts: &SessionFacts) -> Meta {
    to_meta(&SessionMeta {
        session_id: facts.session_id.to_string(),
        epoch: facts.session_epoch.0,
        cwd: facts.cwd.clone(),
        model: facts.settings.model.clone(),
        permission_mode: facts.settings.permission_mode.as_str().to_owned(),
        effort: facts.settings.effort.map(Effort::as_str).map(str::to_owned),
        tools: facts.tools.iter().map(|tool| tool.name.clone()).collect(),
        persistent: match facts.persistence {
            Persistence::Kept => true,
            Persistence::GoneWithTheProcess => false,
        },
    })
}

pub(crate) fn list_entry(thread: &ThreadMeta) -> SessionInfo {
    SessionInfo::new(thread.id.to_string(), thread.cwd.as_str())
        .title(thread.title.clone())
        .updated_at(iso_time(thread.updated_at_ms))
}

/// The commands, where there are any.
pub(crate) fn commands_update(commands: &[CommandSpec]) -> Option<SessionUpdate> {
    let shown = |command: &CommandSpec| {
        let input = command.input_hint.as_ref().map(|hint| UnstructuredCommandInput::new(hint.clone()));
        AvailableCommand::new(command.name.clone(), command.description.clone())
            .input(input.map(AvailableCommandInput::Unstructured))
    };
    let shown: Vec<AvailableCommand> = commands.iter().map(shown).collect();
    (!shown.is_empty()).then(|| SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(shown)))
}

/// None for a time that no calendar has.
pub(crate) fn iso_time(unix_ms: i64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000).ok()?;
    time.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso_8601() {
        assert_eq!(iso_time(1_700_000_000_123).as_deref(), Some("2023-11-14T22:13:20.123Z"));
        assert_eq!(iso_time(i64::MAX), None);
    }
}
