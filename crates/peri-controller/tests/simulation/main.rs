//! A model checker of the session contract: one session on real controller, runtime, agent and middlewares, and a client,
//! a model, tools, a person, a store and a clock that do what chance says, in an order that chance chooses. After every
//! run the contract is checked on what the client was told and what the store holds.
//!
//! `cargo xtask test simulation` runs 2,000 steps; `PERI_SIM_STEPS=100000` more; a run that fails prints its seed, and
//! `PERI_SIM_SEED` replays it.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "tests run natively, on tokio")]

mod checks;
mod client;
mod life;
mod run;

use run::{Outcome, simulate};

/// Steps of one run. Short runs reach more openings and ends.
const STEPS_A_RUN: u64 = 60;
/// Steps in CI.
const STEPS: u64 = 2_000;

#[test]
fn a_simulation_keeps_the_contract_whatever_happens_in_whatever_order() {
    let seeds: Vec<u64> = match number("PERI_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("PERI_SIM_STEPS").unwrap_or(STEPS).div_ceil(STEPS_A_RUN)).collect(),
    };
    let mut sum = Outcome::default();
    for seed in &seeds {
        let run = std::panic::catch_unwind(|| simulate(*seed, STEPS_A_RUN));
        match run {
            Ok(outcome) => sum.add(&outcome),
            Err(panic) => {
                eprintln!("seed {seed} breaks the contract; PERI_SIM_SEED={seed} replays it");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{} runs: {sum:?}", seeds.len());
    // Chance that never does a thing checks nothing of it. A replay is one run, and does what it does.
    if seeds.len() > 1 {
        sum.require_variety();
    }
}

#[test]
fn a_simulation_is_replayed_by_its_seed() {
    for seed in [3, 7, 1_000_003] {
        let (first, second) = (simulate(seed, STEPS_A_RUN), simulate(seed, STEPS_A_RUN));
        assert_eq!(first.log, second.log, "seed {seed}");
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}
