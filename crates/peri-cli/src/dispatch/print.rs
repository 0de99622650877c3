//! From the options of a print run to the run.

use std::sync::Arc;

use peri_acp_types::ports::IdSource;

use super::{end, persistence, told};
use crate::args::{InputFormat, OutputFormat, PrintArgs};
use crate::composition::overlay::{self, RunOptions};
use crate::composition::{Environment, Host, HostPlan, PlaceChoice, Places, system_ids};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::print::{self, ChosenBy, Format, Intake, PrintJob, SessionChoice, Surroundings, WorkDir};
use crate::signals::{StopSignals, leave_at_once};

/// Runs one prompt.
pub(super) async fn run(args: &PrintArgs, checked: Result<(), Failure>, console: &mut Console) -> Exit {
    let format = format_of(args);
    let ids = match system_ids() {
        Ok(ids) => ids,
        Err(failure) => return told(console, failure).await,
    };
    let prepared = checked.and_then(|()| prepare(args, ids.clone()));
    let (job, host, mut signals) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return print::failed_before_session(failure, format, console, ids).await,
    };
    let around = Surroundings { console, signals: &mut signals, ids, processes: host.processes() };
    let exit = print::print(job, host.connect(), around).await;
    tokio::select! {
        biased;
        signal = signals.next() => leave_at_once(signal),
        () = end(host, console) => exit,
    }
}

/// Everything up to the first await of the run: a prompt that is piped in is read while a signal still just ends the
/// process.
fn prepare(args: &PrintArgs, ids: Arc<dyn IdSource>) -> Result<(PrintJob, Host, StopSignals), Failure> {
    let choice = PlaceChoice {
        cwd: args.cwd.cwd.as_deref(),
        config_file: args.settings.config_file.as_deref(),
        db_path: args.store.db_path.as_deref(),
    };
    let places = Places::find(choice, Environment::Process)?;
    let overlay = overlay::of_run(options_of(args), places.start_dir())?;
    let input = match args.input_format {
        InputFormat::Text => Intake::of_prompt(print::find_prompt(args.prompt_argument())?),
        InputFormat::StreamJson => Intake::of_lines(tokio::io::stdin()),
    };
    let signals = StopSignals::listen().map_err(|error| Failure::run(format!("signals cannot be taken: {error}")))?;
    let persistence = persistence(args.no_session_persistence);
    let chosen = if args.cwd.cwd.is_some() { ChosenBy::Option } else { ChosenBy::Circumstance };
    let work_dir = WorkDir { path: places.cwd().to_owned(), chosen };
    let job = PrintJob { input, session: session_of(args), work_dir, format: format_of(args) };
    let host = Host::start(HostPlan { places, overlay, persistence, ids })?;
    Ok((job, host, signals))
}

fn session_of(args: &PrintArgs) -> SessionChoice {
    match (&args.resume, args.continue_last) {
        (Some(id), _) => SessionChoice::ById(id.clone()),
        (None, true) => SessionChoice::Last,
        (None, false) => SessionChoice::New(args.session_id),
    }
}

fn format_of(args: &PrintArgs) -> Format {
    match (args.output_format, args.include_partial_messages) {
        (OutputFormat::Text, _) => Format::Text,
        (OutputFormat::Json, _) => Format::Json,
        (OutputFormat::StreamJson, false) => Format::StreamJson,
        (OutputFormat::StreamJson, true) => Format::StreamJsonWithPieces,
    }
}

fn options_of(args: &PrintArgs) -> RunOptions<'_> {
    RunOptions {
        model: &args.model,
        permission: &args.permission,
        trust_workspace: args.trust_workspace,
        settings: &args.settings,
    }
}
