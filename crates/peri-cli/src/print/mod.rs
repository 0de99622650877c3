//! Print: one prompt and one answer, or several of both, as an ACP client in the same process.
//!
//! Owns: a run's course, from the choice of a session to the exit code. Must not: name the agent, the runtime, the
//! controller or the middlewares; what it knows came over ACP.
//! Invariants: standard output carries the chosen format and nothing else; in the json formats a result object ends it,
//! whatever happened; a signal ends the run in order, even where the reader of the output is stuck.

mod client;
mod denials;
mod happening;
mod hints;
mod intake;
mod lines;
mod partial;
mod progress;
mod prompt;
mod result;
mod run;
mod screen;
mod sessions;
mod stream_json;
mod summary;

pub use intake::Intake;
pub use prompt::find_prompt;
pub use run::{PrintJob, Surroundings, failed_before_session, print};
pub use screen::Format;
pub use sessions::{ChosenBy, SessionChoice, WorkDir};
