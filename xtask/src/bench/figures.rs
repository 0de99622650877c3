//! Figures of several runs, as they are shown.

use std::fmt;
use std::time::Duration;

use anyhow::Context;

use super::median;

/// The middle of several runs, and how far they spread.
pub struct Figures {
    pub median: f64,
    low: f64,
    high: f64,
    unit: &'static str,
}

impl Figures {
    pub fn new(values: &[f64], unit: &'static str) -> anyhow::Result<Figures> {
        Ok(Figures {
            median: median(values).context("no runs")?,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(0.0, f64::max),
            unit,
        })
    }

    pub fn millis(times: &[Duration]) -> anyhow::Result<Figures> {
        let millis: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
        Figures::new(&millis, "ms")
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} {} ({:.1} to {:.1})", self.median, self.unit, self.low, self.high)
    }
}
