//! The input queue: what waits for its turn, what is on its way into the transcript, and what became of the last ones.
//!
//! Owns every change of an input's state. In memory: a restart forgets it. Two touch it, the actor and its one running
//! turn: the actor takes inputs in and back, the turn claims them where it can take them, at Receive. They share a cell
//! and send no messages, so that a claim and a take-back can never cross: whoever comes first has the input. The turn's
//! future is polled by the actor's own task, so the lock is never waited for; it is held for a look or a change only.
//!
//! Invariant: an input's state never goes back, and only an input that is still queued can be taken back, cleared,
//! steered or claimed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use peri_acp_types::{
    CommandId, Content, Delivery, InputState, QueueSnapshot, QueuedItem, SteerAnswer, TakeBack, TurnId,
};
use tokio::sync::Notify;

use crate::{AcceptedInput, PromptRefused};

/// Inputs that may wait for the running turn.
const MAX_QUEUED_INPUTS: usize = 32;
/// Settled inputs whose names are kept, so that one that is sent again is known.
const MAX_KNOWN_SETTLED: usize = 1024;
/// Settled inputs that a snapshot shows.
const SHOWN_SETTLED: usize = 16;
/// The longest preview, in characters.
const PREVIEW_CHARS: usize = 200;

/// The queue as the actor and its running turn share it. Clones are the same queue.
#[derive(Clone, Default)]
pub(crate) struct InputQueue {
    cell: Arc<Cell>,
}

#[derive(Default)]
struct Cell {
    inputs: Mutex<Inputs>,
    /// Wakes the actor when the turn has changed something.
    changed: Notify,
}

#[derive(Default)]
struct Inputs {
    /// In the order in which they will run; those on their way to the transcript among them.
    waiting: VecDeque<Waiting>,
    /// Oldest first.
    settled: VecDeque<Settled>,
    /// Counts changes.
    version: u64,
}

struct Waiting {
    accepted: AcceptedInput,
    /// Empty once it is claimed.
    content: Vec<Content>,
    delivery: Delivery,
    state: InputState,
    preview: String,
}

struct Settled {
    accepted: AcceptedInput,
    /// The turn that it joined, or its own.
    turn_id: TurnId,
    delivery: Delivery,
    state: InputState,
    /// None once no snapshot shows it any more.
    preview: Option<String>,
}

/// An input that Receive has. It must be settled.
pub(crate) struct ClaimedInput {
    pub accepted: AcceptedInput,
    pub content: Vec<Content>,
}

impl InputQueue {
    /// The input of that name, if it is known: it is not taken a second time.
    pub(crate) fn known(&self, command_id: &CommandId) -> Option<AcceptedInput> {
        let inputs = self.lock();
        let waiting = inputs.waiting.iter().map(|input| &input.accepted);
        let settled = inputs.settled.iter().rev().map(|input| &input.accepted);
        waiting.chain(settled).find(|accepted| accepted.command_id == *command_id).cloned()
    }

    /// Takes an input in, behind those that wait.
    ///
    /// # Errors
    /// [`PromptRefused::QueueFull`].
    pub(crate) fn push(
        &self,
        accepted: AcceptedInput,
        content: Vec<Content>,
        delivery: Delivery,
    ) -> Result<(), PromptRefused> {
        let mut inputs = self.lock();
        let waiting = inputs.waiting.iter().filter(|input| input.state == InputState::Queued).count();
        if waiting >= MAX_QUEUED_INPUTS {
            return Err(PromptRefused::QueueFull { waiting });
        }
        let preview = preview(&content);
        inputs.waiting.push_back(Waiting { accepted, content, delivery, state: InputState::Queued, preview });
        inputs.version += 1;
        Ok(())
    }

    /// Takes an input back that still waits.
    pub(crate) fn take_back(&self, command_id: &CommandId) -> TakeBack {
        let mut inputs = self.lock();
        match inputs.find(command_id) {
            Found::Waiting(index) => match inputs.withdraw(index) {
                Some((_, content)) => TakeBack::Withdrawn(content),
                None => TakeBack::NoSuchInput,
            },
            Found::Beyond(state) => TakeBack::TooLate(state),
            Found::Nowhere => TakeBack::NoSuchInput,
        }
    }

    /// Has an input that waits join the running turn; `can_join` judges by its content. The caller knows that a turn runs.
    pub(crate) fn steer(&self, command_id: &CommandId, can_join: impl FnOnce(&[Content]) -> bool) -> SteerAnswer {
        let mut inputs = self.lock();
        match inputs.find(command_id) {
            Found::Waiting(index) => {
                let Some(input) = inputs.waiting.get_mut(index) else { return SteerAnswer::NoSuchInput };
                if !can_join(&input.content) {
                    return SteerAnswer::TooLate(InputState::Queued);
                }
                input.delivery = Delivery::Steer;
                inputs.version += 1;
                SteerAnswer::Steering
            }
            Found::Beyond(state) => SteerAnswer::TooLate(state),
            Found::Nowhere => SteerAnswer::NoSuchInput,
        }
    }

    /// Where an input is; None where its name is not known.
    pub(crate) fn state(&self, command_id: &CommandId) -> Option<InputState> {
        match self.lock().find(command_id) {
            Found::Waiting(_) => Some(InputState::Queued),
            Found::Beyond(state) => Some(state),
            Found::Nowhere => None,
        }
    }

    /// Withdraws everything that waits and is on its way nowhere yet.
    pub(crate) fn clear(&self) -> Vec<AcceptedInput> {
        let mut inputs = self.lock();
        let mut withdrawn = Vec::new();
        while let Some(index) = inputs.first_queued(|_| true) {
            withdrawn.extend(inputs.withdraw(index).map(|(accepted, _)| accepted));
        }
        withdrawn
    }

    /// Puts the next input on its way to a turn of its own.
    pub(crate) fn dispatch(&self) -> Option<AcceptedInput> {
        let mut inputs = self.lock();
        let index = inputs.first_queued(|_| true)?;
        inputs.version += 1;
        let input = inputs.waiting.get_mut(index)?;
        input.state = InputState::Dispatching;
        Some(input.accepted.clone())
    }

    /// For the turn: its own input. None where it has it already.
    pub(crate) fn claim(&self, turn_id: TurnId) -> Option<ClaimedInput> {
        self.change(|inputs| {
            let own =
                |input: &&mut Waiting| input.accepted.turn_id == turn_id && input.state == InputState::Dispatching;
            inputs.waiting.iter_mut().find(own).map(Waiting::claim)
        })
    }

    /// For the turn: the next input that is to join it.
    pub(crate) fn claim_steered(&self) -> Option<ClaimedInput> {
        self.change(|inputs| {
            let index = inputs.first_queued(|input| input.delivery == Delivery::Steer)?;
            inputs.waiting.get_mut(index).map(Waiting::claim)
        })
    }

    /// What became of an input that was claimed, by the turn that claimed it. Nothing where it is settled already.
    pub(crate) fn settle(&self, command_id: &CommandId, by: TurnId, state: InputState) {
        self.change(|inputs| {
            let index = inputs.waiting.iter().position(|input| input.accepted.command_id == *command_id)?;
            let input = inputs.waiting.remove(index)?;
            let turn_id = if state == InputState::Delivered { by } else { input.accepted.turn_id };
            inputs.settle(input, turn_id, state);
            Some(())
        });
    }

    /// The turn has ended. What was to join it has a turn of its own now; what it had claimed and not settled, since it
    /// broke off, is unknown and comes back.
    pub(crate) fn turn_ended(&self) -> Vec<AcceptedInput> {
        let mut inputs = self.lock();
        let mut changed = false;
        for input in inputs.waiting.iter_mut().filter(|input| input.delivery == Delivery::Steer) {
            input.delivery = Delivery::OwnTurn;
            changed = true;
        }
        inputs.version += u64::from(changed);
        let mut broken_off = Vec::new();
        while let Some(index) = inputs.waiting.iter().position(|input| input.state != InputState::Queued) {
            let Some(input) = inputs.waiting.remove(index) else { break };
            broken_off.push(input.accepted.clone());
            let turn_id = input.accepted.turn_id;
            inputs.settle(input, turn_id, InputState::Unknown);
        }
        broken_off
    }

    pub(crate) fn snapshot(&self) -> QueueSnapshot {
        let inputs = self.lock();
        let waiting = inputs.waiting.iter().map(|input| QueuedItem {
            command_id: input.accepted.command_id.clone(),
            turn_id: input.accepted.turn_id,
            state: input.state,
            delivery: input.delivery,
            preview: input.preview.clone(),
        });
        let unshown = inputs.settled.len().saturating_sub(SHOWN_SETTLED);
        let settled = inputs.settled.iter().skip(unshown).map(|input| QueuedItem {
            command_id: input.accepted.command_id.clone(),
            turn_id: input.turn_id,
            state: input.state,
            delivery: input.delivery,
            preview: input.preview.clone().unwrap_or_default(),
        });
        QueueSnapshot { waiting: waiting.collect(), settled: settled.collect() }
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Resolves once the turn has changed the queue. Dropping the future loses no change.
    pub(crate) async fn changed(&self) {
        self.cell.changed.notified().await;
    }

    /// A change that the turn makes: the actor is to tell it.
    fn change<T>(&self, change: impl FnOnce(&mut Inputs) -> Option<T>) -> Option<T> {
        let mut inputs = self.lock();
        let result = change(&mut inputs)?;
        inputs.version += 1;
        self.cell.changed.notify_one();
        Some(result)
    }

    fn lock(&self) -> MutexGuard<'_, Inputs> {
        // A poisoned queue is still in order: no code between lock and unlock can leave it half changed.
        self.cell.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where an input is.
enum Found {
    /// It is queued, and this is its place.
    Waiting(usize),
    Beyond(InputState),
    Nowhere,
}

impl Inputs {
    fn find(&self, command_id: &CommandId) -> Found {
        let waiting = self.waiting.iter().enumerate().find(|(_, input)| input.accepted.command_id == *command_id);
        let settled = || self.settled.iter().rev().find(|input| input.accepted.command_id == *command_id);
        match (waiting, settled()) {
            (Some((index, input)), _) if input.state == InputState::Queued => Found::Waiting(index),
            (Some((_, input)), _) => Found::Beyond(input.state),
            (None, Some(input)) => Found::Beyond(input.state),
            (None, None) => Found::Nowhere,
        }
    }

    fn first_queued(&self, wanted: impl Fn(&Waiting) -> bool) -> Option<usize> {
        self.waiting.iter().position(|input| input.state == InputState::Queued && wanted(input))
    }

    fn withdraw(&mut self, index: usize) -> Option<(AcceptedInput, Vec<Content>)> {
        let mut input = self.waiting.remove(index)?;
        let (accepted, content) = (input.accepted.clone(), std::mem::take(&mut input.content));
        self.settle(input, accepted.turn_id, InputState::Withdrawn);
        Some((accepted, content))
    }

    fn settle(&mut self, input: Waiting, turn_id: TurnId, state: InputState) {
        let Waiting { accepted, delivery, preview, .. } = input;
        self.settled.push_back(Settled { accepted, turn_id, delivery, state, preview: Some(preview) });
        if self.settled.len() > MAX_KNOWN_SETTLED {
            self.settled.pop_front();
        }
        let no_longer_shown = self.settled.len().checked_sub(SHOWN_SETTLED + 1);
        if let Some(input) = no_longer_shown.and_then(|index| self.settled.get_mut(index)) {
            input.preview = None;
        }
        self.version += 1;
    }
}

impl Waiting {
    fn claim(&mut self) -> ClaimedInput {
        self.state = InputState::Claimed;
        ClaimedInput { accepted: self.accepted.clone(), content: std::mem::take(&mut self.content) }
    }
}

/// The beginning of an input's text in one line; what it is where it has none.
pub(crate) fn preview(content: &[Content]) -> String {
    let text = content.iter().find_map(|content| match content {
        Content::Text(text) if !text.trim().is_empty() => Some(text.as_str()),
        Content::Text(_) | Content::Image(_) | Content::Resource { .. } => None,
    });
    let Some(text) = text else {
        let resource = content.iter().find_map(|content| match content {
            Content::Resource { uri, .. } => Some(one_line(uri)),
            Content::Text(_) | Content::Image(_) => None,
        });
        return resource.unwrap_or_else(|| "(image)".to_owned());
    };
    one_line(text)
}

fn one_line(text: &str) -> String {
    // What is looked at is bounded too: an input may be of any length.
    let beginning: String = text.trim_start().chars().take(PREVIEW_CHARS * 4).collect();
    let words = beginning.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(PREVIEW_CHARS - 1) {
        Some((end, c)) if line.len() > end + c.len_utf8() => format!("{}…", line.get(..end).unwrap_or_default()),
        _ => line,
    }
}
