//! One life of the process: a runtime, a controller, and the session while it is open there. Dropping it is `kill -9`:
//! whatever ran stops where it stood.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use peri_acp_types::ports::{Clock, NoFileHistory};
use peri_acp_types::{Envelope, SessionEpoch};
use peri_controller::{
    CommandLineOverlay, Controller, ControllerPorts, LiteParams, ModelConnector, OpenedSession, Persistence,
    StampedEvents, TakeOver,
};
use peri_model::{LanguageModel, ModelEndpoint};
use peri_testkit::fake_model::FakeModel;
use peri_testkit::fake_store::FakeStore;
use peri_testkit::runtime::{FakeClock, FakeIds, TokioSpawner};
use peri_testkit::simulation::{CWD, Chance, Gates, Person, PlainPorts, SimulatedModel, Tools};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::client::Reply;

/// What outlives a process.
pub struct Outside {
    pub chance: Chance,
    pub store: Arc<FakeStore>,
    /// Ids are never used twice, whatever process gives them.
    pub ids: Arc<FakeIds>,
    pub calls: Arc<Mutex<u64>>,
}

pub struct Life {
    runtime: Runtime,
    pub clock: FakeClock,
    pub controller: Controller,
    pub gates: Gates,
    pub person: Person,
    pub model: FakeModel,
    pub behaviour: SimulatedModel,
    pub opened: Option<Opened>,
    /// Requests that were sent and not answered yet.
    pub unanswered: usize,
    replies: (mpsc::UnboundedSender<Reply>, mpsc::UnboundedReceiver<Reply>),
}

/// The session while it is open.
pub struct Opened {
    pub epoch: SessionEpoch,
    /// None once the client went away.
    pub events: Option<StampedEvents>,
    pub ended: bool,
    pub last_seq: u64,
}

impl Life {
    pub fn begin(outside: &Outside) -> Life {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (gates, person) = (Gates::default(), Person::default());
        let clock = FakeClock::manual();
        let tools = Tools { chance: outside.chance.clone(), gates: gates.clone(), ran: Arc::default() };
        let behaviour = SimulatedModel::new(&outside.chance, &gates, &outside.calls);
        let model = behaviour.model();
        let ports = ControllerPorts {
            clock: Arc::new(clock.clone()),
            ids: outside.ids.clone(),
            spawner: Arc::new(TokioSpawner),
            store: outside.store.clone(),
            persistence: Persistence::Kept,
            context: Arc::new(PlainPorts),
            config: Arc::new(PlainPorts),
            trust: Arc::new(PlainPorts),
            http: Arc::new(PlainPorts),
            mcp: Arc::new(tools),
            paths: Arc::new(PlainPorts),
            files: Arc::new(NoFileHistory),
            overlay: CommandLineOverlay::default(),
        };
        let controller = Controller::new(ports).with_models(Arc::new(OneModel(model.clone())));
        let replies = mpsc::unbounded_channel();
        Life { runtime, clock, controller, gates, person, model, behaviour, opened: None, unanswered: 0, replies }
    }

    pub fn params(&self) -> LiteParams {
        LiteParams {
            agent: "main".to_owned(),
            cwd: CWD.to_owned(),
            offered_servers: Vec::new(),
            broker: Arc::new(self.person.clone()),
            take_over: TakeOver::Yes,
        }
    }

    /// Sends a request beside everything else; the answer is among the replies once it is there.
    pub fn ask(&mut self, request: impl Future<Output = Reply> + Send + 'static) {
        let replies = self.replies.0.clone();
        self.unanswered += 1;
        self.runtime.spawn(async move {
            // The receiver is dropped with the process.
            let _ = replies.send(request.await);
        });
    }

    /// Lets tasks run for so many rounds.
    pub fn turn_over(&mut self, rounds: usize) {
        self.runtime.block_on(async {
            for _ in 0..rounds {
                tokio::task::yield_now().await;
            }
        });
    }

    pub fn reply(&mut self) -> Option<Reply> {
        let reply = self.replies.1.try_recv().ok()?;
        self.unanswered -= 1;
        Some(reply)
    }

    pub fn take_up(&mut self, opened: OpenedSession) {
        let epoch = opened.facts.session_epoch;
        self.opened = Some(Opened { epoch, events: Some(opened.events), ended: false, last_seq: 0 });
    }

    /// The next event, if there is one now.
    pub fn event(&mut self) -> Option<Envelope> {
        let opened = self.opened.as_mut()?;
        let events = opened.events.as_mut()?;
        let next = self.runtime.block_on(async { futures::poll!(std::pin::pin!(events.next())) });
        match next {
            std::task::Poll::Pending => None,
            std::task::Poll::Ready(None) => {
                opened.ended = true;
                None
            }
            std::task::Poll::Ready(Some(envelope)) => {
                assert_eq!(envelope.session_seq.0, opened.last_seq + 1, "the numbers have a gap");
                assert_eq!(envelope.session_epoch, opened.epoch, "an event of another opening");
                opened.last_seq += 1;
                Some(envelope)
            }
        }
    }

    /// Moves the time by what somebody waits for, or a little.
    pub fn let_time_pass(&self, chance: &Chance) {
        let sleeps = self.clock.sleeps();
        let recent: Vec<_> = sleeps.iter().rev().take(4).copied().collect();
        let by = chance.one_of(&recent).copied().unwrap_or_default();
        // Limits of hours are not what retries wait for.
        self.clock.advance(by.min(std::time::Duration::from_secs(30)));
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

/// Every session has the one model.
struct OneModel(FakeModel);

impl ModelConnector for OneModel {
    fn connect(&self, endpoint: ModelEndpoint) -> Arc<dyn LanguageModel> {
        Arc::new(self.0.clone().named(&format!("{}/{}", endpoint.provider, endpoint.model)))
    }
}

/// How often each thing happened, by its name.
pub type Counts = BTreeMap<&'static str, u64>;
