//! A command's output on its way from bytes to what a result shows.
//!
//! Must not block or wait. Invariant: memory is bounded however much comes, and everything that comes is either shown,
//! in the spill file, or counted as omitted.

use std::path::PathBuf;

use super::clean::Cleaner;
use super::excerpt::{Ends, Excerpt};
use super::spill::{Spill, SpillOutcome, SpillWrite, Whereabouts};
use crate::workspace::paths::printable;

/// Output since the last reading, and the way to all of it.
pub(crate) struct Capture {
    cleaner: Cleaner,
    unread: Excerpt,
    spill: Spill,
    has_output: bool,
}

impl Capture {
    /// `name` names the spill file, should there be one.
    pub(crate) fn new(spill_dir: PathBuf, name: String) -> Capture {
        Capture {
            cleaner: Cleaner::default(),
            unread: Excerpt::default(),
            spill: Spill::new(spill_dir, name),
            has_output: false,
        }
    }

    /// Takes output of the command. What must be written for it is asked for with [`Capture::due_write`].
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.keep(|cleaner, out| cleaner.push(bytes, out));
    }

    /// There is no more output.
    pub(crate) fn finish(&mut self) {
        self.keep(Cleaner::finish);
        self.spill.finish();
    }

    pub(crate) fn due_write(&mut self) -> Option<SpillWrite> {
        self.spill.due()
    }

    pub(crate) fn wrote(&mut self, outcome: SpillOutcome) {
        self.spill.wrote(outcome);
    }

    /// What came since the last reading, in words for the model; None where nothing came.
    pub(crate) fn read(&mut self) -> Option<String> {
        self.keep(Cleaner::flush);
        if !std::mem::take(&mut self.has_output) {
            return None;
        }
        let Ends { head, omitted, tail } = self.unread.take();
        let Some(omitted) = omitted else { return Some(head) };
        let whole = match self.spill.whereabouts() {
            Whereabouts::File(path) => format!("; all of the output is in {}", printable(&path)),
            Whereabouts::Beginning(path) => format!("; the first 64 MiB of the output are in {}", printable(&path)),
            Whereabouts::Lost(reason) => format!("; they could not be saved: {reason}"),
            Whereabouts::Nowhere | Whereabouts::Soon => String::new(),
        };
        Some(format!("{head}\n[… {} bytes ({} lines) left out here{whole} …]\n{tail}", omitted.bytes, omitted.lines))
    }

    fn keep(&mut self, clean: impl FnOnce(&mut Cleaner, &mut String)) {
        let mut text = String::new();
        clean(&mut self.cleaner, &mut text);
        self.has_output |= !text.is_empty();
        self.unread.push(&text);
        self.spill.push(&text);
    }
}
