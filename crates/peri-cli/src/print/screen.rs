//! The run's output: which lines a format writes, and when.
//!
//! Owns: the console during a run. Invariants: once standard output is gone nothing more is written to it; a notice and a
//! failure go to standard error in every format.

use std::io;
use std::sync::Arc;

use peri_acp::extension::SessionMeta;
use peri_acp_types::ports::IdSource;
use serde_json::Value;

use super::denials::{Denials, refusals};
use super::happening::Happening;
use super::hints::without_session;
use super::progress::Progress;
use super::result::result;
use super::stream_json::{Pieces, StreamJson, control_response};
use super::summary::{Summary, Verdict};
use crate::console::Console;
use crate::exit::Failure;

/// The format of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Text,
    Json,
    StreamJson,
    /// With pieces of the answer as they arrive.
    StreamJsonWithPieces,
}

/// Shows a run.
pub struct Screen<'a> {
    console: &'a mut Console,
    ids: Arc<dyn IdSource>,
    format: Format,
    lines: Option<StreamJson>,
    progress: Progress,
    output: Output,
}

/// The state of standard output.
enum Output {
    Open,
    /// Its reader has gone: nobody's fault, and nothing to say.
    Closed,
    /// It cannot be written for another reason.
    Broken(io::Error),
    /// Its reader is stuck, and a signal wants the run to end.
    GivenUp,
}

impl<'a> Screen<'a> {
    pub fn new(console: &'a mut Console, ids: Arc<dyn IdSource>, format: Format) -> Screen<'a> {
        let lines = match format {
            Format::Text | Format::Json => None,
            Format::StreamJson => Some(StreamJson::new(ids.clone(), Pieces::LeftOut)),
            Format::StreamJsonWithPieces => Some(StreamJson::new(ids.clone(), Pieces::Included)),
        };
        Screen { console, ids, format, lines, progress: Progress::default(), output: Output::Open }
    }

    /// The session is there.
    pub async fn begin(&mut self, session: &SessionMeta) {
        if let Some(lines) = &mut self.lines {
            let line = lines.begin(session);
            self.write_line(&line).await;
        }
    }

    pub async fn show(&mut self, happening: &Happening) {
        if let Happening::Notice { text, .. } = happening {
            self.console.notice(text).await;
        }
        for refusal in refusals(happening) {
            self.console.notice(refusal).await;
        }
        if let Some((tone, line)) = self.progress.line(happening) {
            self.console.progress(tone, &line).await;
        }
        if let Some(lines) = &mut self.lines {
            for line in lines.happened(happening) {
                self.write_line(&line).await;
            }
        }
    }

    /// The end: the answer or the result object, and what went wrong.
    pub async fn end(
        &mut self,
        summary: &Summary,
        verdict: &Verdict,
        denials: &Denials,
        session: Option<&SessionMeta>,
    ) {
        let failure = match session {
            Some(session) if session.persistent => verdict.failure(),
            Some(_) | None => verdict.failure().map(without_session),
        };
        let session_id = session.map(|session| session.session_id.as_str());
        match self.format {
            Format::Text => self.write_answer(summary).await,
            Format::Json | Format::StreamJson | Format::StreamJsonWithPieces => {
                let line = result(summary, verdict, failure.as_ref(), denials.all(), session_id, self.ids.uuid());
                self.write_line(&line).await;
            }
        }
        // A turn that was cancelled because nobody reads it is no news.
        if let Some(failure) = failure
            && (self.is_watched() || *verdict != Verdict::Cancelled)
        {
            self.console.failure(&failure).await;
        }
    }

    /// Answers a control request of the client: done, or why not.
    pub async fn answer_control(&mut self, request_id: &str, outcome: Result<(), String>) {
        let line = control_response(request_id, outcome);
        self.write_line(&line).await;
    }

    /// An answer that was cut off or refused is shown too: it is what there is, and standard error says what it is.
    async fn write_answer(&mut self, summary: &Summary) {
        if self.can_write() && summary.has_answer() {
            let written = self.console.text(summary.last_text()).await;
            self.note(written);
        }
    }

    async fn write_line(&mut self, line: &Value) {
        if self.can_write() {
            let written = self.console.line(&line.to_string()).await;
            self.note(written);
        }
    }

    fn note(&mut self, written: io::Result<()>) {
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.output = Output::Closed,
            Err(error) => self.output = Output::Broken(error),
        }
    }

    fn can_write(&self) -> bool {
        matches!(self.output, Output::Open)
    }

    /// Stops writing to standard output: its reader does not read, and the run must end.
    pub fn give_up_output(&mut self) {
        if self.can_write() {
            self.output = Output::GivenUp;
        }
    }

    /// False once the output has nowhere to go, so that the work behind it is for nobody.
    pub fn is_watched(&self) -> bool {
        matches!(self.output, Output::Open | Output::GivenUp)
    }

    /// Why the answer did not get out, where that must be told.
    pub fn output_failure(&self) -> Option<Failure> {
        match &self.output {
            Output::Broken(error) => Some(Failure::run(format!("standard output cannot be written: {error}"))),
            Output::Open | Output::Closed | Output::GivenUp => None,
        }
    }

    /// Tells the user something that no agent said.
    pub async fn notice(&mut self, text: &str) {
        self.console.notice(text).await;
    }

    pub async fn failure(&mut self, failure: &Failure) {
        self.console.failure(failure).await;
    }
}
