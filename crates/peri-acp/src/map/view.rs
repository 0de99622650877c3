//! Events as a client sees them: the one exhaustive map, with the little that it must remember from event to event.
//!
//! Owns: which calls the client has been shown without their end, and the numbering of messages.
//! Invariant: every call that was shown gets its end, and every business event leaves by one path: as ACP's own update
//! where it has one, else as an extension event, if that was negotiated.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    ConfigOptionUpdate, ContentChunk, CurrentModeUpdate, Notice, NoticeSeverity, SessionInfoUpdate, SessionUpdate,
    ToolCallUpdateFields, UsageUpdate,
};
use peri_acp_types::{
    AgentEvent, Envelope, NoticeKind, PermissionMode, SessionEvent, SessionSettings, ToolCallId, ToolOutput,
    ToolResult, TurnId, as_millis,
};
use peri_controller::{ModelChoice, SessionFacts};

use super::content::text_block;
use super::options::config_options;
use super::session::iso_time;
use super::{extension, tool};
use crate::extension::{Event, EventBody};
use crate::negotiation::{Gate, Negotiated};

/// What a client is told.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Told {
    Update(Box<SessionUpdate>),
    Event(Box<Event>),
}

/// What one client has been told of one session.
pub(crate) struct SessionView {
    negotiated: Negotiated,
    /// Calls without an end, and the tool's name, in the order of their ids.
    open_calls: BTreeMap<ToolCallId, String>,
    /// Messages of the model that began; each has an id of its own for the client.
    messages: u64,
    /// Told last.
    mode: PermissionMode,
    /// What can be chosen.
    models: Vec<ModelChoice>,
}

impl SessionView {
    /// The view of a client that has been told these facts.
    pub(crate) fn new(negotiated: Negotiated, facts: &SessionFacts) -> SessionView {
        SessionView {
            negotiated,
            open_calls: BTreeMap::new(),
            messages: 0,
            mode: facts.settings.permission_mode,
            models: facts.models.clone(),
        }
    }

    /// What the client is told of this event, which happened at this Unix time in milliseconds, in this order.
    pub(crate) fn tell(&mut self, envelope: &Envelope, at_ms: i64) -> Vec<Told> {
        let AgentEvent { turn_id, event, .. } = &envelope.event;
        let (updates, body) = self.map(*turn_id, event, at_ms);
        let mut told: Vec<Told> = updates.into_iter().map(|update| Told::Update(Box::new(update))).collect();
        if self.negotiated.events.is_open() {
            told.extend(body.map(|body| Told::Event(Box::new(addressed(envelope, body)))));
        }
        told
    }

    fn map(
        &mut self,
        turn_id: Option<TurnId>,
        event: &SessionEvent,
        at_ms: i64,
    ) -> (Vec<SessionUpdate>, Option<EventBody>) {
        match event {
            SessionEvent::TurnStarted => (Vec::new(), Some(EventBody::TurnStarted)),
            SessionEvent::AttemptStarted => {
                self.messages += 1;
                (Vec::new(), Some(EventBody::AttemptStarted))
            }
            SessionEvent::AttemptFailed { failure, retry_in } => {
                let given_up = self.give_up_calls("Not run: the model's answer broke off.");
                let failure = extension::failure(failure);
                (given_up, Some(EventBody::AttemptFailed { failure, retry_in_ms: retry_in.map(as_millis) }))
            }
            SessionEvent::TextDelta(text) => (vec![SessionUpdate::AgentMessageChunk(self.chunk(turn_id, text))], None),
            SessionEvent::ThoughtDelta(text) => {
                (vec![SessionUpdate::AgentThoughtChunk(self.chunk(turn_id, text))], None)
            }
            SessionEvent::ToolCallAnnounced { id, name, kind } => {
                self.open_calls.insert(id.clone(), name.clone());
                (vec![SessionUpdate::ToolCall(tool::announced(&id.0, name, *kind))], None)
            }
            SessionEvent::ToolCallStarted { call, kind, title, locations } => {
                let fields = tool::started_fields(call, *kind, title, locations);
                let is_new = self.open_calls.insert(call.id.clone(), call.name.clone()).is_none();
                (vec![shown(is_new, &call.id, &call.name, fields)], None)
            }
            SessionEvent::ToolCallFinished { id, output } => (vec![self.finished(id, output)], None),
            SessionEvent::LlmCallEnd { model, usage } => {
                let body = EventBody::LlmCallEnd { model: model.clone(), usage: extension::usage(usage) };
                (Vec::new(), Some(body))
            }
            SessionEvent::UsageUpdate { used_tokens, window_tokens } => {
                (vec![SessionUpdate::UsageUpdate(UsageUpdate::new(*used_tokens, *window_tokens))], None)
            }
            SessionEvent::StepCommitted { message_id, message, results } => {
                let ends = self.ends_of_calls(results);
                self.messages += 1;
                let body = EventBody::StepCommitted {
                    message_id: message_id.to_string(),
                    message: extension::step_message(message),
                    results: results.iter().map(extension::step_result).collect(),
                };
                (ends, Some(body))
            }
            SessionEvent::TitleChanged { title } => {
                let update = SessionInfoUpdate::new().title(title.clone()).updated_at(iso_time(at_ms));
                (vec![SessionUpdate::SessionInfoUpdate(update)], None)
            }
            SessionEvent::SettingsChanged(settings) => (self.changed(settings), None),
            SessionEvent::InputSteered { .. }
            | SessionEvent::QueueChanged(_)
            | SessionEvent::CompactionStarted { .. }
            | SessionEvent::CompactionDelta { .. }
            | SessionEvent::CompactionEnded { .. }
            | SessionEvent::Rewound { .. } => (Vec::new(), None),
            SessionEvent::Notice { kind, text } => {
                let body = EventBody::Notice { kind: extension::notice_kind(*kind), text: text.clone() };
                (self.notice(*kind, text), Some(body))
            }
            SessionEvent::TurnEnded(end) => {
                let mut updates = self.give_up_calls("Not run: the turn ended before.");
                let touched = SessionInfoUpdate::new().updated_at(iso_time(at_ms));
                updates.push(SessionUpdate::SessionInfoUpdate(touched));
                (updates, Some(EventBody::TurnEnded(extension::turn_ended(end))))
            }
        }
    }

    /// Both forms, since it is not known which of them the client looks at.
    fn changed(&mut self, settings: &SessionSettings) -> Vec<SessionUpdate> {
        let options = ConfigOptionUpdate::new(config_options(settings, &self.models));
        let mut updates = vec![SessionUpdate::ConfigOptionUpdate(options)];
        if self.mode != settings.permission_mode {
            self.mode = settings.permission_mode;
            let mode = CurrentModeUpdate::new(settings.permission_mode.as_str());
            updates.push(SessionUpdate::CurrentModeUpdate(mode));
        }
        updates
    }

    fn chunk(&self, turn_id: Option<TurnId>, text: &str) -> ContentChunk {
        let message_id = turn_id.map(|turn_id| format!("{turn_id}.{}", self.messages).into());
        ContentChunk::new(text_block(text)).message_id(message_id)
    }

    fn finished(&mut self, id: &ToolCallId, output: &ToolOutput) -> SessionUpdate {
        let name = self.open_calls.remove(id);
        shown(name.is_none(), id, name.as_deref().unwrap_or("tool"), tool::finished_fields(output))
    }

    /// Results of calls whose end was not told yet: the answer was cut off, say.
    fn ends_of_calls(&mut self, results: &[ToolResult]) -> Vec<SessionUpdate> {
        let open: Vec<&ToolResult> =
            results.iter().filter(|result| self.open_calls.contains_key(&result.call_id)).collect();
        open.into_iter().map(|result| self.finished(&result.call_id, &result.output)).collect()
    }

    fn give_up_calls(&mut self, words: &str) -> Vec<SessionUpdate> {
        let calls = std::mem::take(&mut self.open_calls);
        let end = |id: ToolCallId| SessionUpdate::ToolCallUpdate(tool::update(&id.0, tool::given_up_fields(words)));
        calls.into_keys().map(end).collect()
    }

    /// A notice for a client that takes no extension events.
    fn notice(&self, kind: NoticeKind, text: &str) -> Vec<SessionUpdate> {
        if self.negotiated.events.is_open() {
            return Vec::new();
        }
        match (self.negotiated.notices, kind) {
            (Gate::Open, _) => vec![SessionUpdate::Notice(Notice::new(severity(kind), text))],
            // What changes how far the session can be trusted must reach the user in any client.
            (Gate::Shut, NoticeKind::Configuration | NoticeKind::Interrupted | NoticeKind::Store) => {
                vec![SessionUpdate::AgentMessageChunk(said_by_peri(text))]
            }
            (Gate::Shut, NoticeKind::LoopGuard | NoticeKind::Capability) => Vec::new(),
        }
    }
}

/// A word of ours where ACP has only the model's.
pub(crate) fn said_by_peri(text: &str) -> ContentChunk {
    ContentChunk::new(text_block(&format!("Peri: {text}\n\n")))
}

fn shown(is_new: bool, id: &ToolCallId, name: &str, fields: ToolCallUpdateFields) -> SessionUpdate {
    match is_new {
        true => SessionUpdate::ToolCall(tool::unannounced(&id.0, name, fields)),
        false => SessionUpdate::ToolCallUpdate(tool::update(&id.0, fields)),
    }
}

fn severity(kind: NoticeKind) -> NoticeSeverity {
    match kind {
        NoticeKind::Configuration | NoticeKind::LoopGuard | NoticeKind::Interrupted | NoticeKind::Store => {
            NoticeSeverity::Warning
        }
        NoticeKind::Capability => NoticeSeverity::Info,
    }
}

fn addressed(envelope: &Envelope, body: EventBody) -> Event {
    let AgentEvent { agent_id, turn_id, attempt_id, event: _ } = &envelope.event;
    Event {
        session_id: envelope.session_id.to_string(),
        epoch: envelope.session_epoch.0,
        seq: envelope.session_seq.0,
        agent_id: agent_id.0.clone(),
        turn_id: turn_id.map(|id| id.to_string()),
        attempt_id: attempt_id.map(|id| id.to_string()),
        body,
    }
}

#[cfg(test)]
mod tests;
