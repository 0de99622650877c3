//! From a command line to what it asks for.
//!
//! Owns: which parts of the composition a command needs. Invariant: a command starts no more than it needs: only a print
//! run starts an agent.

use std::path::Path;
use std::sync::Arc;

use peri_acp_types::ports::{IdSource, ThreadStore};
use peri_config::CommandLineOverlay;
use peri_mcp_servers::config::{FileConfigSource, FileTrustStore};
use peri_resources::MemoryStore;

use crate::args::{
    Cli, Command, ConfigCommand, CwdArg, OutputFormat, PrintArgs, SessionsCommand, SettingsArgs, TrustArgs,
};
use crate::commands::config::{Lookup, Report};
use crate::commands::trust::Consent;
use crate::commands::{completions, paths, sessions, trust};
use crate::composition::{
    Environment, Host, HostPlan, Persistence, PlaceChoice, Places, existing_store, overlay, system_ids,
};
use crate::console::{Console, Look, Verbosity};
use crate::demo::{self, Afterwards};
use crate::exit::{Exit, Failure};
use crate::print::{self, ChosenBy, Format, PrintJob, SessionChoice, Surroundings, WorkDir};
use crate::signals::{StopSignals, leave_at_once};

/// What `peri` alone says.
const WELCOME: &str = "\
Peri reads, edits and runs things in a repository, with a model of your choice.

  peri demo                     watch it work on a sample project; needs no key
  peri -p \"what to do\"          run one prompt in this directory
  peri -p -c \"and then?\"        go on in the last session of this directory
  peri sessions list            what was said before
  peri config check             is everything set up?
  peri --help                   options, examples, files, exit codes

There is no terminal UI yet.
";

/// Whether there was anything on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    Nothing,
    Something,
}

/// Does what was asked and says how the process should exit.
pub async fn dispatch(cli: Cli, asked: Asked) -> Exit {
    let verbosity = if cli.print.verbose { Verbosity::Verbose } else { Verbosity::Usual };
    let mut console = Console::new(Look::detect(verbosity, |name| Environment::Process.var(name)));
    let checked = cli.check();
    match cli.command {
        None if asked == Asked::Nothing => out(&mut console, WELCOME).await,
        None => run_print(&cli.print, checked, &mut console).await,
        Some(Command::Demo(args)) => {
            let afterwards = if args.keep { Afterwards::Keep } else { Afterwards::Remove };
            demo::run(afterwards, &mut console.with_progress_on_stdout()).await
        }
        Some(Command::Completions { shell }) => out(&mut console, &completions::script(shell)).await,
        Some(command) => match report(command, &mut console).await {
            Ok(exit) => exit,
            Err(failure) => told(&mut console, failure).await,
        },
    }
}

async fn run_print(args: &PrintArgs, checked: Result<(), Failure>, console: &mut Console) -> Exit {
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

/// Ends the run's host, and tells what the user should know of it.
async fn end(host: Host, console: &mut Console) {
    for notice in host.store_notices().await {
        console.notice(&notice).await;
    }
    for trouble in host.end().await {
        console.notice(&trouble).await;
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
    let overlay = overlay::of_print(args, places.start_dir())?;
    let prompt = print::find_prompt(args.prompt_argument())?;
    let signals = StopSignals::listen().map_err(|error| Failure::run(format!("signals cannot be taken: {error}")))?;
    let persistence = match args.no_session_persistence {
        true => Persistence::GoneWithTheProcess,
        false => Persistence::Kept,
    };
    let chosen = if args.cwd.cwd.is_some() { ChosenBy::Option } else { ChosenBy::Circumstance };
    let work_dir = WorkDir { path: places.cwd().to_owned(), chosen };
    let job = PrintJob { prompt, session: session_of(args), work_dir, format: format_of(args) };
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

/// The commands that read files and report.
async fn report(command: Command, console: &mut Console) -> Result<Exit, Failure> {
    match command {
        Command::Sessions { action } => {
            let text = sessions_report(&action, console).await?;
            Ok(out(console, &text).await)
        }
        Command::Config { action } => {
            let report = config_report(&action).await?;
            for notice in &report.notices {
                console.notice(notice).await;
            }
            match report.text.is_empty() {
                true => Ok(report.exit),
                false => Ok(worse(report.exit, out(console, &report.text).await)),
            }
        }
        Command::Trust(args) => trust_workspace(&args, console).await,
        Command::Demo(_) | Command::Completions { .. } => Ok(Exit::Success),
    }
}

async fn sessions_report(action: &SessionsCommand, console: &mut Console) -> Result<String, Failure> {
    let (cwd, db_path) = match action {
        SessionsCommand::List { cwd, store, .. } => (cwd.cwd.as_deref(), store.db_path.as_deref()),
        SessionsCommand::Show { store, .. } => (None, store.db_path.as_deref()),
    };
    let places = Places::find(PlaceChoice { cwd, db_path, ..Default::default() }, Environment::Process)?;
    let Some(store) = existing_store(&places)? else {
        // A list makes no file. An empty store gives the same answers.
        return sessions_text(action, &MemoryStore::new(), &places).await;
    };
    let text = sessions_text(action, store.as_ref(), &places).await;
    for notice in store.report().await.map(|report| report.notices).unwrap_or_default() {
        console.notice(&notice).await;
    }
    text
}

async fn sessions_text(action: &SessionsCommand, store: &dyn ThreadStore, places: &Places) -> Result<String, Failure> {
    match action {
        SessionsCommand::List { all, limit, format, .. } => {
            let cwd = (!all).then(|| places.workspace());
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            sessions::list(store, cwd.as_deref(), limit, format.output_format).await
        }
        SessionsCommand::Show { id, format, .. } => sessions::show(store, id, format.output_format).await,
    }
}

async fn config_report(action: &ConfigCommand) -> Result<Report, Failure> {
    match action {
        ConfigCommand::Path { cwd, settings, store } => {
            let (places, overlay) = settings_places(cwd, settings, store.db_path.as_deref())?;
            Ok(paths::report(&places, &overlay))
        }
        ConfigCommand::Show { trust_workspace, cwd, settings } => {
            let (places, overlay) = settings_places(cwd, settings, None)?;
            let overlay = CommandLineOverlay { trust_workspace: *trust_workspace, ..overlay };
            let (source, trust) = sources(&places);
            let workspace = places.workspace();
            Lookup { source: &source, trust: trust.as_ref(), workspace: &workspace, overlay: &overlay }.show().await
        }
        ConfigCommand::Check { cwd, settings } => {
            let (places, overlay) = settings_places(cwd, settings, None)?;
            let (source, trust) = sources(&places);
            let workspace = places.workspace();
            Ok(Lookup { source: &source, trust: trust.as_ref(), workspace: &workspace, overlay: &overlay }
                .check()
                .await)
        }
    }
}

async fn trust_workspace(args: &TrustArgs, console: &mut Console) -> Result<Exit, Failure> {
    let choice = PlaceChoice { cwd: args.dir.as_deref(), ..Default::default() };
    let places = Places::find(choice, Environment::Process)?;
    let (source, store) = sources(&places);
    let consent = if args.yes { Consent::Given } else { Consent::Ask };
    trust::trust(&source, store.as_ref(), &places.workspace(), consent, console).await
}

fn settings_places(
    cwd: &CwdArg,
    settings: &SettingsArgs,
    db_path: Option<&Path>,
) -> Result<(Places, CommandLineOverlay), Failure> {
    let choice = PlaceChoice { cwd: cwd.cwd.as_deref(), config_file: settings.config_file.as_deref(), db_path };
    let places = Places::find(choice, Environment::Process)?;
    let overlay = overlay::of_settings(settings, places.start_dir())?;
    Ok((places, overlay))
}

fn sources(places: &Places) -> (FileConfigSource, Arc<FileTrustStore>) {
    let trust = Arc::new(FileTrustStore::new(places.dirs()));
    let source = FileConfigSource::new(places.settings_file().to_owned(), trust.clone(), places.variables());
    (source, trust)
}

/// Writes a report. A reader that went away has had enough of it.
async fn out(console: &mut Console, text: &str) -> Exit {
    match console.text(text).await {
        Ok(()) => Exit::Success,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => told(console, Failure::run(format!("standard output cannot be written: {error}"))).await,
    }
}

async fn told(console: &mut Console, failure: Failure) -> Exit {
    console.failure(&failure).await;
    failure.exit
}

/// What was found counts unless it could not be told.
fn worse(found: Exit, written: Exit) -> Exit {
    if written == Exit::Success { found } else { written }
}
