//! A gate at which something of ours waits until the test lets it through.

use std::sync::Arc;

use crate::watched::Watched;

/// Shut until it is opened, and open from then on. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Watched<GateState>>);

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    arrivals: usize,
}

impl Gate {
    /// A gate that is shut.
    pub fn shut() -> Gate {
        Gate::default()
    }

    /// Lets everyone through who waits, and everyone who comes later.
    pub fn open(&self) {
        self.0.update(|state| state.open = true);
    }

    /// Resolves once somebody has come to the gate.
    pub async fn reached(&self) {
        self.0.until(|state| (state.arrivals > 0).then_some(())).await;
    }

    /// Blocks the thread until somebody has come to the gate.
    ///
    /// # Panics
    /// Where nobody comes for a minute.
    #[track_caller]
    pub fn block_until_reached(&self) {
        self.0.block_until("somebody at the gate", |state| (state.arrivals > 0).then_some(()));
    }

    /// Waits at the gate.
    pub async fn pass(&self) {
        self.0.update(|state| state.arrivals += 1);
        self.0.until(|state| state.open.then_some(())).await;
    }
}
