//! The whole output of a command, in a file, once it is too long to be shown.
//!
//! Must not block: a write is handed out as a [`SpillWrite`] and done on a thread that may. Invariant: the file holds
//! the output from its first byte, up to [`MAX_FILE_BYTES`], and says so where it ends early.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::excerpt::{HEAD_BYTES, TAIL_BYTES};

/// Up to here the output is in the result and needs no file.
const SHOWN_BYTES: usize = HEAD_BYTES + TAIL_BYTES;
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// Other names tried where a file of an earlier run has taken the first.
const MAX_NAMES: u32 = 1000;

/// Output that is in memory or in a file.
pub(crate) struct Spill {
    directory: PathBuf,
    /// The task's id, which names the file.
    name: String,
    pending: String,
    state: State,
}

enum State {
    /// All of the output is still in `pending`.
    Small,
    Open {
        file: File,
        path: PathBuf,
        written: u64,
    },
    /// A write is under way.
    Writing,
    Full {
        path: PathBuf,
    },
    Failed {
        reason: String,
    },
}

/// Where the whole output can be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whereabouts {
    /// It was never too long.
    Nowhere,
    File(PathBuf),
    /// The first [`MAX_FILE_BYTES`] of it.
    Beginning(PathBuf),
    /// A write is under way.
    Soon,
    Lost(String),
}

impl Spill {
    pub(crate) fn new(directory: PathBuf, name: String) -> Spill {
        Spill { directory, name, pending: String::new(), state: State::Small }
    }

    pub(crate) fn push(&mut self, text: &str) {
        match self.state {
            State::Small | State::Open { .. } | State::Writing => self.pending.push_str(text),
            State::Full { .. } | State::Failed { .. } => {}
        }
    }

    /// What must be written now, if anything. Give the outcome to [`Spill::wrote`] before asking again.
    pub(crate) fn due(&mut self) -> Option<SpillWrite> {
        let nothing_due = match self.state {
            State::Small => self.pending.len() <= SHOWN_BYTES,
            State::Open { .. } => self.pending.is_empty(),
            State::Writing | State::Full { .. } | State::Failed { .. } => true,
        };
        if nothing_due {
            return None;
        }
        let text = std::mem::take(&mut self.pending);
        match std::mem::replace(&mut self.state, State::Writing) {
            State::Open { file, path, written } => Some(SpillWrite::Append { file, path, written, text }),
            _ => Some(SpillWrite::Create { directory: self.directory.clone(), name: self.name.clone(), text }),
        }
    }

    pub(crate) fn wrote(&mut self, outcome: SpillOutcome) {
        self.state = outcome.0;
    }

    /// There is no more output: what needs no file need not be kept.
    pub(crate) fn finish(&mut self) {
        if matches!(self.state, State::Small) && self.pending.len() <= SHOWN_BYTES {
            self.pending = String::new();
        }
    }

    pub(crate) fn whereabouts(&self) -> Whereabouts {
        match &self.state {
            State::Small => Whereabouts::Nowhere,
            State::Open { path, .. } => Whereabouts::File(path.clone()),
            State::Full { path } => Whereabouts::Beginning(path.clone()),
            State::Failed { reason } => Whereabouts::Lost(reason.clone()),
            State::Writing => Whereabouts::Soon,
        }
    }
}

/// A write that is to be done where blocking is allowed.
pub(crate) enum SpillWrite {
    Create { directory: PathBuf, name: String, text: String },
    Append { file: File, path: PathBuf, written: u64, text: String },
}

/// What became of a [`SpillWrite`].
pub(crate) struct SpillOutcome(State);

impl SpillOutcome {
    /// The thread that was to write is gone.
    pub(crate) fn lost() -> SpillOutcome {
        SpillOutcome(State::Failed { reason: "the write was abandoned".to_owned() })
    }
}

impl SpillWrite {
    /// Blocks on the file system.
    pub(crate) fn run(self) -> SpillOutcome {
        let written = match self {
            SpillWrite::Create { directory, name, text } => {
                create(&directory, &name).and_then(|(file, path)| append(file, path, 0, &text))
            }
            SpillWrite::Append { file, path, written, text } => append(file, path, written, &text),
        };
        SpillOutcome(written.unwrap_or_else(|error| State::Failed { reason: error.to_string() }))
    }
}

/// Output may hold secrets: only the user may read it.
fn create(directory: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    for number in 0..MAX_NAMES {
        let file_name = if number == 0 { format!("{name}.txt") } else { format!("{name}-{number}.txt") };
        let path = directory.join(file_name);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, path)),
        }
    }
    Err(io::Error::other(format!("{} has no free name for {name}", directory.display())))
}

fn append(mut file: File, path: PathBuf, written: u64, text: &str) -> io::Result<State> {
    let room = usize::try_from(MAX_FILE_BYTES.saturating_sub(written)).unwrap_or(usize::MAX);
    let fits = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
    file.write_all(fits.as_bytes())?;
    if fits.len() < text.len() {
        file.write_all(b"\n[The output goes on; this file ends at 64 MiB.]\n")?;
        return Ok(State::Full { path });
    }
    Ok(State::Open { file, path, written: written + fits.len() as u64 })
}
