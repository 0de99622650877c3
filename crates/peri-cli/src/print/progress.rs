//! Progress: one line for each thing that people want to see go by.
//!
//! Must not: tell what the answer tells, or draw anything that moves.

use std::collections::HashMap;

use super::happening::{Happening, ToolEnd};
use crate::console::Tone;

/// Turns what happens into lines.
#[derive(Default)]
pub struct Progress {
    /// What the calls under way are called, by their ids.
    titles: HashMap<String, String>,
    /// Text of the answer under way; shown once it turns out not to be the last.
    text: String,
}

impl Progress {
    /// The line of something that happened, if it is worth one.
    pub fn line(&mut self, happening: &Happening) -> Option<(Tone, String)> {
        match happening {
            Happening::AttemptStarted => {
                self.text.clear();
                None
            }
            Happening::Text(text) => {
                self.text.push_str(text);
                None
            }
            Happening::ToolStarted { id, title } => {
                self.titles.insert(id.clone(), title.clone());
                Some((Tone::Quiet, format!("→ {title}")))
            }
            Happening::ToolFinished { id, result: ToolEnd::Failed } => {
                let title = self.titles.remove(id).unwrap_or_default();
                Some((Tone::Warning, format!("✗ {title}")))
            }
            Happening::ToolFinished { id, result: ToolEnd::Completed } => {
                self.titles.remove(id);
                None
            }
            // The model said something before it called a tool: it is no part of the answer, but good to know.
            Happening::ToolAnnounced { .. } => {
                let said = std::mem::take(&mut self.text);
                let said = said.trim();
                (!said.is_empty()).then(|| (Tone::Quiet, said.to_owned()))
            }
            Happening::AttemptFailed { failure, retry_in_ms: Some(delay) } => {
                let seconds = *delay as f64 / 1000.0;
                Some((Tone::Warning, format!("retry in {seconds:.1} s: {}", failure.message)))
            }
            _ => None,
        }
    }
}
