//! Creating and opening sessions: everything that happens before the actor runs.

use std::sync::Arc;

use peri_acp_types::{
    FrozenBlob, Message, MessageBody, MessageId, NoticeKind, StoreError, StoredTurnEnd, Thread, ThreadChange,
    ThreadMeta, TurnId,
};

use crate::actor;
use crate::change::Changeable;
use crate::core::SessionCore;
use crate::frozen::FrozenContext;
use crate::{
    Contribution, EventReceiver, Past, SessionConfig, SessionHandle, SessionOpenError, SessionPorts, SessionScope,
    event_lane,
};

/// Creates a session: stores an empty thread, freezes its context, takes the first epoch and starts the actor.
///
/// # Errors
/// [`SessionOpenError`]; nothing runs then.
pub async fn create_session(
    config: SessionConfig,
    ports: SessionPorts,
) -> Result<(SessionHandle, EventReceiver), SessionOpenError> {
    let now_ms = ports.clock.now_ms();
    let meta = ThreadMeta {
        id: config.session_id,
        parent_thread_id: config.parent,
        cwd: config.cwd.clone(),
        title: None,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
    };
    ports.store.create(&meta).await?;
    open_session(Thread::new(meta), config, ports).await
}

/// Opens a stored session for writing: takes the next epoch, marks a turn that was found without an end as interrupted,
/// settles a close that an earlier process left, and starts the actor. The thread must be the one that was just loaded.
///
/// # Errors
/// [`SessionOpenError`]; nothing runs then.
pub async fn open_session(
    mut thread: Thread,
    mut config: SessionConfig,
    ports: SessionPorts,
) -> Result<(SessionHandle, EventReceiver), SessionOpenError> {
    let stored_context = thread.frozen.as_ref().map(FrozenContext::from_blob).transpose()?;
    let epoch = ports.store.take_epoch(config.session_id, thread.epoch).await?;
    thread.epoch = epoch;
    let scope = SessionScope {
        session_id: config.session_id,
        session_epoch: epoch,
        cwd: config.cwd.clone(),
        roots: config.roots.clone(),
    };
    let mut notices = std::mem::take(&mut config.notices);
    settle_the_past(&mut thread, config.past, &ports, &mut notices).await?;

    let contribution = open_middlewares(&config, &scope).await;
    notices.extend(contribution.notices);
    let context = match stored_context {
        Some(context) => context,
        None => {
            let (facts, left_out) = ports.context.pull(&config.cwd).await;
            notices.extend(left_out.into_iter().map(|line| (NoticeKind::Configuration, line)));
            let context = FrozenContext::compose(&config.definition, &scope, &facts, contribution.prompt_parts);
            let blob = frozen_blob(&context)?;
            ports.store.freeze(config.session_id, epoch, &blob).await?;
            thread.frozen = Some(blob);
            context
        }
    };

    let (events, receiver) = event_lane();
    let changeable = Changeable::new(config.model, config.permission_mode, config.effort, config.limits.thinking);
    let core = Arc::new(SessionCore {
        scope,
        limits: config.limits,
        middlewares: config.middlewares,
        tools: contribution.tools,
        commands: contribution.commands,
        system: context.system,
        ports,
        events,
        _hold: config.hold,
    });
    Ok((actor::start(core, changeable, thread, notices), receiver))
}

/// What an earlier process left undone: a turn without an end, a close without a settlement.
async fn settle_the_past(
    thread: &mut Thread,
    past: Past,
    ports: &SessionPorts,
    notices: &mut Vec<(NoticeKind, String)>,
) -> Result<(), SessionOpenError> {
    let (id, epoch) = (thread.meta.id, thread.epoch);
    if let Some(turn_id) = thread.open_turn {
        let words = unended(past);
        let now_ms = ports.clock.now_ms();
        let changes = [
            ThreadChange::NoticeAdded { message: notice_message(ports, turn_id, words.to_model) },
            ThreadChange::TurnEnded { turn_id, end: StoredTurnEnd::Interrupted(words.end.to_owned()) },
        ];
        ports.store.commit(id, epoch, &changes, now_ms).await?;
        thread.apply_all(&changes).map_err(StoreError::Rule)?;
        notices.push((NoticeKind::Interrupted, words.to_user.to_owned()));
    }
    if thread.close_intent.is_some() {
        ports.store.settle_close(id, epoch).await?;
        thread.close_intent = None;
    }
    Ok(())
}

/// What is said of a turn that was found without an end.
struct Unended {
    to_model: &'static str,
    to_user: &'static str,
    end: &'static str,
}

fn unended(past: Past) -> Unended {
    match past {
        Past::Own => Unended {
            to_model: "The turn above was interrupted when Peri stopped: it has no end. What its tool calls did after the \
                       last recorded result is unknown; check before you rely on it.",
            to_user: "the last turn of this session was interrupted when Peri stopped; its effects are unknown",
            end: "Peri stopped while the turn ran; its effects are unknown",
        },
        Past::Forked => Unended {
            to_model: "This session was copied from another one while the turn above ran there. What that turn did after \
                       the last recorded result is unknown here; check before you rely on it.",
            to_user: "this session was copied while a turn ran in the other one; here that turn ends with what was recorded",
            end: "the session was copied while the turn ran; what it did then is unknown",
        },
    }
}

/// Opens the chain in its order.
async fn open_middlewares(config: &SessionConfig, scope: &SessionScope) -> Contribution {
    let mut whole = Contribution::default();
    for middleware in &config.middlewares {
        let part = middleware.open(scope).await;
        for tool in part.tools {
            match whole.tools.iter().any(|known| known.name == tool.name) {
                false => whole.tools.push(tool),
                true => whole.notices.push((
                    NoticeKind::Capability,
                    format!("a second tool named {} from {} is left out", tool.name, middleware.name()),
                )),
            }
        }
        for command in part.commands {
            match whole.commands.iter().any(|known| known.name == command.name) {
                false => whole.commands.push(command),
                true => whole.notices.push((
                    NoticeKind::Capability,
                    format!("a second command named /{} from {} is left out", command.name, middleware.name()),
                )),
            }
        }
        whole.prompt_parts.extend(part.prompt_parts);
        whole.notices.extend(part.notices);
    }
    whole
}

/// A word of ours, as a message of that turn.
pub(crate) fn notice_message(ports: &SessionPorts, turn_id: TurnId, text: &str) -> Message {
    Message {
        id: MessageId(ports.ids.uuid()),
        turn_id,
        created_at_ms: ports.clock.now_ms(),
        body: MessageBody::Notice(text.to_owned()),
    }
}

fn frozen_blob(context: &FrozenContext) -> Result<FrozenBlob, SessionOpenError> {
    context.to_blob().map_err(|error| SessionOpenError::Store(StoreError::Failed(error.to_string())))
}
