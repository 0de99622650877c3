//! One run: steps that chance chooses, then everything is settled, and the contract is checked.

use std::sync::Arc;
use std::time::Duration;

use peri_acp_types::{
    CommandId, Content, Delivery, PermissionMode, PromptInput, RewindScope, SessionId, StoreError, TakeBack, TurnKey,
};
use peri_controller::{CancelAnswer, CancelTarget, ControllerError, QueueOnCancel, Rewind, SettingChoice};
use peri_testkit::fake_store::{FakeStore, StoreOperation};
use peri_testkit::runtime::FakeIds;
use peri_testkit::simulation::Chance;

use crate::checks::check;
use crate::client::{Input, Ledger, Reply};
use crate::life::{Counts, Life, Outside};

/// How long a close may take, on the fake clock.
const DEADLINE: Duration = Duration::from_secs(10);
/// Rounds after which a session that does not settle is taken to hang.
const PATIENCE: usize = 2_000;

/// What happened in a run, or in several.
#[derive(Default)]
pub struct Outcome {
    pub counts: Counts,
    pub log: Vec<String>,
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.counts.fmt(f)
    }
}

impl Outcome {
    pub fn add(&mut self, other: &Outcome) {
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }

    /// Everything that chance can do was done.
    pub fn require_variety(&self) {
        let must = [
            "turn completed",
            "turn cancelled",
            "turn failed at the model",
            "input delivered",
            "input withdrawn",
            "taken back",
            "steered",
            "cancel hit",
            "cancel stale",
            "closed",
            "close incomplete",
            "killed",
            "client gone",
            "fenced",
            "rewound",
            "rewind undone",
            "answered",
            "opened",
            "store failed",
        ];
        let missing: Vec<&str> = must.into_iter().filter(|what| !self.counts.contains_key(what)).collect();
        assert!(missing.is_empty(), "chance never did this: {missing:?}");
    }
}

struct Run {
    outside: Outside,
    life: Life,
    ledger: Ledger,
    session: Option<SessionId>,
    stalled: bool,
    /// This opening of the session may have ended, or end soon.
    disturbed: bool,
    /// A request that opens the session is under way.
    opening: bool,
}

pub fn simulate(seed: u64, steps: u64) -> Outcome {
    let outside = Outside {
        chance: Chance::of_seed(seed),
        store: Arc::new(FakeStore::new()),
        ids: Arc::new(FakeIds::default()),
        calls: Arc::default(),
    };
    let life = Life::begin(&outside);
    let mut run = Run {
        outside,
        life,
        ledger: Ledger::default(),
        session: None,
        stalled: false,
        disturbed: false,
        opening: false,
    };
    run.open();
    run.settle_opening();
    for _ in 0..steps {
        run.step();
        let rounds = run.outside.chance.below(12);
        run.life.turn_over(rounds);
        run.hear(rounds / 2 + 1);
    }
    run.settle();
    run.go_on();
    Outcome { counts: run.ledger.counts, log: run.ledger.log }
}

impl Run {
    fn step(&mut self) {
        let weights = [16, 4, 4, 3, 4, 4, 4, 20, 10, 8, 3, 2, 2, 1, 1, 3, 8, 2, 2];
        match self.outside.chance.weighted(&weights) {
            0 => self.prompt(),
            1 => self.take_back(),
            2 => self.steer(),
            3 => self.look_at_queue(),
            4 => self.cancel_current(),
            5 => self.cancel_triple(),
            6 => self.close(),
            7 => self.life.gates.open_one(&self.outside.chance),
            8 => self.answer(),
            9 => self.life.let_time_pass(&self.outside.chance),
            10 => self.kill(),
            11 => self.leave(),
            12 => self.take_over(),
            13 => self.stall_or_resume(),
            14 => self.fail_or_heal(),
            15 => self.rename(),
            16 => self.rewind(),
            17 => self.change_mode(),
            _ => self.open(),
        }
    }

    fn open(&mut self) {
        let (controller, params) = (self.life.controller.clone(), self.life.params());
        match self.session {
            None => {
                self.opening = true;
                self.life.ask(async move { Reply::Opened(controller.new_session(params, None).await) });
            }
            // Also while it is open or closing, where it must be refused.
            Some(id) => {
                self.opening = true;
                self.life.ask(async move { Reply::Loaded(controller.load_session(params, id).await) });
            }
        }
    }

    fn prompt(&mut self) {
        let Some(id) = self.session else { return };
        let chance = &self.outside.chance;
        let delivery = if chance.percent(25) { Delivery::Steer } else { Delivery::OwnTurn };
        let life = self.ledger.life;
        // What an opening of the session remembers of commands ends with it.
        let repeat = !self.disturbed && chance.percent(10);
        let repeated = self.ledger.inputs.iter().rposition(|input| input.life == life).filter(|_| repeat);
        let input = repeated.unwrap_or_else(|| {
            let number = self.ledger.inputs.len();
            self.ledger.inputs.push(Input {
                text: format!("input {number}"),
                command_id: CommandId::new(format!("command-{number}")).expect("a name"),
                life,
                accepted: None,
                state: None,
                taken_back: false,
            });
            number
        });
        let known = &self.ledger.inputs[input];
        let prompt = PromptInput {
            content: vec![Content::Text(known.text.clone())],
            command_id: Some(known.command_id.clone()),
            delivery,
        };
        let controller = self.life.controller.clone();
        self.life.ask(async move { Reply::Prompted { input, answer: controller.prompt(id, prompt).await } });
    }

    fn some_input(&self) -> Option<(SessionId, usize, CommandId)> {
        let (life, chance) = (self.ledger.life, &self.outside.chance);
        let mine: Vec<usize> = (0..self.ledger.inputs.len()).filter(|n| self.ledger.inputs[*n].life == life).collect();
        let input = *chance.one_of(&mine)?;
        Some((self.session?, input, self.ledger.inputs[input].command_id.clone()))
    }

    fn take_back(&mut self) {
        let Some((id, input, command)) = self.some_input() else { return };
        let controller = self.life.controller.clone();
        self.life.ask(async move { Reply::TakenBack { input, answer: controller.take_back(id, command).await } });
    }

    fn steer(&mut self) {
        let Some((id, _, command)) = self.some_input() else { return };
        let controller = self.life.controller.clone();
        self.life.ask(async move { Reply::Steered { answer: controller.steer(id, command).await } });
    }

    fn look_at_queue(&mut self) {
        let Some(id) = self.session else { return };
        let controller = self.life.controller.clone();
        self.life.ask(async move { Reply::Queue(controller.queue(id).await) });
    }

    fn cancel_current(&mut self) {
        let Some(id) = self.session else { return };
        let queue = if self.outside.chance.percent(30) { QueueOnCancel::Clear } else { QueueOnCancel::Keep };
        self.ledger.cancelled_any = true;
        let controller = self.life.controller.clone();
        let cancel = async move { controller.cancel(id, CancelTarget::Current, queue).await };
        self.life.ask(async move { Reply::Cancelled { key: None, answer: cancel.await } });
    }

    /// The triple may be the current one, one that is over, or none that ever was.
    fn cancel_triple(&mut self) {
        let (Some(id), chance) = (self.session, &self.outside.chance) else { return };
        let Some(known) = self.ledger.keys.last().copied() else { return };
        let key = match chance.below(3) {
            0 => chance.one_of(&self.ledger.keys).copied().unwrap_or(known),
            1 => self.ledger.no_attempt(&known),
            _ => known,
        };
        self.ledger.cancelled.insert(key.turn_id);
        let TurnKey { turn_id, attempt_id, .. } = key;
        let controller = self.life.controller.clone();
        self.life.ask(async move {
            let target = CancelTarget::Attempt { turn_id, attempt_id };
            Reply::Cancelled { key: Some(key), answer: controller.cancel(id, target, QueueOnCancel::Keep).await }
        });
    }

    fn close(&mut self) {
        let Some(id) = self.session else { return };
        self.disturbed = true;
        let controller = self.life.controller.clone();
        self.life.ask(async move { Reply::Closed(controller.close_session(id, DEADLINE).await) });
    }

    fn answer(&mut self) {
        assert!(self.life.person.waiting() <= 1, "a person is asked two things at once");
        if self.life.person.waiting() > 0 {
            self.ledger.count("answered");
        }
        self.life.person.answer_one(&self.outside.chance);
    }

    /// `kill -9`, and a new process.
    fn kill(&mut self) {
        self.ledger.count("killed");
        self.begin_life();
        self.open();
    }

    fn begin_life(&mut self) {
        self.note_stored();
        self.life = Life::begin(&self.outside);
        self.ledger.life += 1;
        self.ledger.cancelled_any = false;
        self.disturbed = false;
        self.opening = false;
        self.ledger.log.push("another process".to_owned());
    }

    /// The client goes away; its edge ends the session.
    fn leave(&mut self) {
        let (Some(id), Some(opened)) = (self.session, self.life.opened.as_mut()) else { return };
        self.ledger.counts.entry("client gone").and_modify(|count| *count += 1).or_insert(1);
        opened.events = None;
        self.disturbed = true;
        self.ledger.cancelled_any = true;
        let controller = self.life.controller.clone();
        self.life.ask(async move {
            controller.end_sessions(&[id], DEADLINE).await;
            Reply::Ended
        });
    }

    fn take_over(&mut self) {
        let Some(id) = self.session else { return };
        self.ledger.count("fenced");
        self.outside.store.take_over(id);
        self.disturbed = true;
    }

    fn stall_or_resume(&mut self) {
        self.stalled = !self.stalled;
        if self.stalled { self.outside.store.stall() } else { self.outside.store.resume() }
    }

    fn fail_or_heal(&mut self) {
        if self.outside.chance.percent(40) {
            return self.outside.store.heal();
        }
        self.ledger.count("store failed");
        self.disturbed = true;
        let operations = [StoreOperation::Commit, StoreOperation::PutCloseIntent, StoreOperation::SettleClose];
        let operation = *self.outside.chance.one_of(&operations).expect("an operation");
        let words = "scripted".to_owned();
        let unknown = self.outside.chance.percent(50);
        let error = if unknown { StoreError::Unknown(words) } else { StoreError::Failed(words) };
        self.outside.store.fail(operation, error);
    }

    fn rename(&mut self) {
        let Some(id) = self.session else { return };
        let (controller, title) = (self.life.controller.clone(), format!("title {}", self.life.now_ms()));
        self.life.ask(async move {
            let _ = controller.rename(id, title).await;
            Reply::Renamed
        });
    }

    fn rewind(&mut self) {
        let Some(id) = self.session else { return };
        if self.outside.chance.percent(20) {
            return self.undo_rewind();
        }
        let controller = self.life.controller.clone();
        let turns: Vec<_> = self.ledger.turns.keys().copied().collect();
        let Some(to_before) = self.outside.chance.one_of(&turns).copied() else { return };
        let preview = async move { controller.preview_rewind(id, to_before).await };
        self.life.ask(async move { Reply::Previewed { to_before, answer: preview.await } });
    }

    fn undo_rewind(&mut self) {
        let Some(id) = self.session else { return };
        let controller = self.life.controller.clone();
        let undo = async move { controller.undo_rewind(id, RewindScope::Conversation).await };
        self.life.ask(async move { Reply::Undone(undo.await) });
    }

    fn change_mode(&mut self) {
        let Some(id) = self.session else { return };
        let mode = *self.outside.chance.one_of(&PermissionMode::ALL).expect("a mode");
        let controller = self.life.controller.clone();
        self.life.ask(async move {
            let _ = controller.change_session(id, SettingChoice::PermissionMode(mode)).await;
            Reply::Changed
        });
    }

    /// Takes note of what was answered, and of so many events.
    fn hear(&mut self, events: usize) {
        for _ in 0..events {
            let Some(envelope) = self.life.event() else { break };
            self.ledger.note_event(&envelope);
        }
        while let Some(reply) = self.life.reply() {
            self.note_reply(reply);
        }
        let over = self.life.opened.as_ref().is_some_and(|opened| opened.ended);
        if !over {
            return;
        }
        if let (Some(id), Some(opened)) = (self.session, self.life.opened.take()) {
            // What the edge does when the events are over.
            self.life.controller.events_ended(id, opened.epoch);
        }
    }

    fn note_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Opened(answer) => {
                self.opening = false;
                if let Ok(opened) = answer {
                    self.session = Some(opened.facts.session_id);
                    self.life.take_up(opened);
                    self.ledger.count("opened");
                }
            }
            Reply::Loaded(answer) => {
                self.opening = false;
                match answer {
                    Ok(loaded) => {
                        self.ledger.log.push(format!("opened, epoch {}", loaded.opened.facts.session_epoch.0));
                        assert!(self.life.opened.as_ref().is_none_or(|opened| opened.ended || opened.events.is_none()));
                        self.life.take_up(loaded.opened);
                        self.ledger.life += 1;
                        self.disturbed = false;
                        self.ledger.count("opened");
                    }
                    Err(ControllerError::Close(incomplete)) => {
                        assert!(!incomplete.reasons.is_empty());
                        self.ledger.log.push(format!("opening refused: {incomplete}"));
                        self.ledger.count("opening while closing");
                    }
                    Err(error) => {
                        self.ledger.log.push(format!("opening refused: {error}"));
                        self.ledger.count("opening refused");
                    }
                }
            }
            Reply::Prompted { input, answer: Ok(accepted) } => {
                let known = &mut self.ledger.inputs[input];
                if let Some(before) = &known.accepted {
                    assert_eq!(*before, accepted, "the same command, another input");
                }
                known.accepted = Some(accepted);
            }
            Reply::TakenBack { input, answer: Ok(TakeBack::Withdrawn(content)) } => {
                assert_eq!(content, [Content::Text(self.ledger.inputs[input].text.clone())]);
                self.ledger.inputs[input].taken_back = true;
                self.ledger.count("taken back");
            }
            Reply::Steered { answer: Ok(peri_acp_types::SteerAnswer::Steering) } => self.ledger.count("steered"),
            Reply::Queue(Ok(snapshot)) => self.ledger.note_queue(&snapshot),
            Reply::Cancelled { key, answer: Ok(answer) } => self.note_cancel(key, &answer),
            Reply::Closed(Ok(())) => {
                self.ledger.count("closed");
                // Whatever was told had been told before.
                assert!(self.life.event().is_none(), "an event after the close");
            }
            Reply::Closed(Err(ControllerError::Close(incomplete))) => {
                assert!(!incomplete.reasons.is_empty());
                self.ledger.count("close incomplete");
            }
            Reply::Previewed { to_before, answer: Ok(preview) } => {
                let Some(id) = self.session else { return };
                let controller = self.life.controller.clone();
                let rewind = Rewind { to_before, scope: RewindScope::Conversation, fingerprint: preview.fingerprint };
                self.life.ask(async move { Reply::Rewound(controller.rewind(id, rewind).await) });
            }
            Reply::Rewound(Ok(_)) => {
                self.ledger.count("rewound");
                // Whatever comes in between makes it final.
                if self.outside.chance.percent(50) {
                    self.undo_rewind();
                }
            }
            Reply::Undone(Ok(_)) => self.ledger.count("rewind undone"),
            Reply::Prompted { .. }
            | Reply::TakenBack { .. }
            | Reply::Steered { .. }
            | Reply::Queue(_)
            | Reply::Cancelled { .. }
            | Reply::Closed(_)
            | Reply::Ended
            | Reply::Renamed
            | Reply::Previewed { .. }
            | Reply::Rewound(_)
            | Reply::Undone(_)
            | Reply::Changed => {}
        }
    }

    fn note_cancel(&mut self, key: Option<TurnKey>, answer: &CancelAnswer) {
        self.ledger.log.push(format!("{answer:?}"));
        match (key, answer) {
            (Some(asked), CancelAnswer::Cancelling(cancelling)) => {
                assert_eq!(asked, cancelling.key, "a cancel hit another attempt");
                self.ledger.count("cancel hit");
            }
            (None, CancelAnswer::Cancelling(_)) => self.ledger.count("cancel hit"),
            (Some(asked), CancelAnswer::Stale { current }) => {
                assert_ne!(*current, Some(asked), "the current attempt is said to be stale");
                self.ledger.count("cancel stale");
            }
            (None, CancelAnswer::Stale { .. }) => panic!("the current turn cannot be stale"),
            (_, CancelAnswer::Idle) => {}
        }
    }

    fn note_stored(&mut self) {
        let Some(thread) = self.session.and_then(|id| self.outside.store.thread(id)) else { return };
        check(&self.ledger, &thread, false);
        let rewound = thread.rewound.iter().flat_map(|rewound| &rewound.messages);
        self.ledger.stored.extend(thread.messages.iter().chain(rewound).map(|message| message.id));
    }

    fn settle_opening(&mut self) {
        self.until("the opening", |run| !run.opening);
    }

    /// Nothing stands in anybody's way any more, and the session is closed.
    fn settle(&mut self) {
        if std::mem::take(&mut self.stalled) {
            self.outside.store.resume();
        }
        self.outside.store.heal();
        self.set_tame();
        self.until("answers", |run| run.life.unanswered == 0);
        self.ledger.cancelled_any = true;
        let Some(id) = self.session else { return };
        let controller = self.life.controller.clone();
        self.life.ask(async move {
            controller.end_sessions(&[id], DEADLINE).await;
            Reply::Ended
        });
        self.until("the end", |run| {
            run.life.unanswered == 0 && run.life.opened.as_ref().is_none_or(|o| o.events.is_none())
        });
        self.note_stored();
    }

    /// The next process loads what is there and goes on.
    fn go_on(&mut self) {
        let Some(id) = self.session else { return };
        self.begin_life();
        self.set_tame();
        self.open();
        self.settle_opening();
        assert!(self.life.opened.is_some(), "the session cannot be opened again\n{}", self.ledger.log.join("\n"));
        self.prompt();
        self.until("an answer", |run| run.life.unanswered == 0);
        let last = self.ledger.inputs.last().expect("an input");
        let turn_id = last.accepted.as_ref().expect("an accepted input").turn_id;
        self.until("the turn's end", |run| run.ledger.turns.get(&turn_id).is_some_and(|turn| turn.ended));
        self.close();
        self.until("the close", |run| run.life.unanswered == 0 && run.life.opened.is_none());
        self.life.model.check_invariants();
        let thread = self.outside.store.thread(id).expect("a stored session");
        check(&self.ledger, &thread, true);
    }

    fn set_tame(&mut self) {
        self.life.behaviour.set_tame();
    }

    fn until(&mut self, what: &str, done: impl Fn(&Run) -> bool) {
        for _ in 0..PATIENCE {
            if done(self) {
                return;
            }
            self.life.gates.open_all();
            self.life.person.allow_all();
            self.life.turn_over(10);
            self.life.let_time_pass(&self.outside.chance);
            self.hear(100);
        }
        let log = self.ledger.log.join("\n");
        panic!("waited in vain for {what}: {} answers are missing\n{log}", self.life.unanswered);
    }
}
