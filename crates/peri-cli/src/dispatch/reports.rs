//! From the options of the commands that read files and report, to what each of them needs.

use std::path::Path;
use std::sync::Arc;

use peri_acp_types::ports::ThreadStore;
use peri_config::CommandLineOverlay;
use peri_mcp_servers::config::{FileConfigSource, FileTrustStore};
use peri_resources::MemoryStore;

use crate::args::{ConfigCommand, CwdArg, SessionsCommand, SettingsArgs, TrustArgs};
use crate::commands::config::{Lookup, Report};
use crate::commands::trust::Consent;
use crate::commands::{paths, sessions, trust};
use crate::composition::{Environment, PlaceChoice, Places, existing_store, overlay};
use crate::console::Console;
use crate::exit::{Exit, Failure};

pub(super) async fn sessions(action: &SessionsCommand, console: &mut Console) -> Result<String, Failure> {
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

pub(super) async fn config(action: &ConfigCommand) -> Result<Report, Failure> {
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

pub(super) async fn trust_workspace(args: &TrustArgs, console: &mut Console) -> Result<Exit, Failure> {
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
