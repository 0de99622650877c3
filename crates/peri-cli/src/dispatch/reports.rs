//! From the options of the commands that read files and report, to what each of them needs.

use std::path::Path;

use peri_acp_types::ports::ThreadStore;
use peri_config::{CommandLineOverlay, load};
use peri_resources::MemoryStore;

use super::{out, worse};
use crate::args::{ConfigCommand, CwdArg, DoctorArgs, ManArgs, ModelsArgs, SessionsCommand, SettingsArgs, TrustArgs};
use crate::commands::config::{Lookup, Report};
use crate::commands::question::Consent;
use crate::commands::redaction::Redaction;
use crate::commands::{delete, export, man, models, paths, sessions, trust};
use crate::composition::offered::ModelAccess;
use crate::composition::{Environment, PlaceChoice, Places, existing_store, overlay, sources};
use crate::console::Console;
use crate::doctor::{self, Patient};
use crate::exit::{Exit, Failure};

/// Stored sessions: listed, shown, exported, deleted.
///
/// # Errors
/// A [`Failure`] of the command, or of the store.
pub(super) async fn sessions(action: &SessionsCommand, console: &mut Console) -> Result<Exit, Failure> {
    let (cwd, db_path) = match action {
        SessionsCommand::List { cwd, store, .. } => (cwd.cwd.as_deref(), store.db_path.as_deref()),
        SessionsCommand::Show { store, .. }
        | SessionsCommand::Export { store, .. }
        | SessionsCommand::Delete { store, .. } => (None, store.db_path.as_deref()),
    };
    let places = Places::find(PlaceChoice { cwd, db_path, ..Default::default() }, Environment::Process)?;
    let Some(store) = existing_store(&places)? else {
        // None of these makes a file. An empty store gives the same answers.
        return sessions_in(action, &MemoryStore::new(), &places, console).await;
    };
    let done = sessions_in(action, store.as_ref(), &places, console).await;
    for notice in store.report().await.map(|report| report.notices).unwrap_or_default() {
        console.notice(&notice).await;
    }
    done
}

async fn sessions_in(
    action: &SessionsCommand,
    store: &dyn ThreadStore,
    places: &Places,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let text = match action {
        SessionsCommand::List { all, limit, format, .. } => {
            let cwd = (!all).then(|| places.workspace());
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            sessions::list(store, cwd.as_deref(), limit, format.output_format).await?
        }
        SessionsCommand::Show { id, format, .. } => {
            let thread = sessions::resolve(store, id).await?;
            sessions::show(&thread, format.output_format, &redaction(places, &thread.meta.cwd).await?)
        }
        SessionsCommand::Export { id, output_format, output, .. } => {
            let thread = sessions::resolve(store, id).await?;
            let document = export::document(&thread, *output_format, &redaction(places, &thread.meta.cwd).await?);
            match output {
                None => document,
                Some(file) => return export::write(file, &document).map(|()| Exit::Success),
            }
        }
        SessionsCommand::Delete { ids, yes, .. } => {
            return delete::delete(store, ids, Consent::from_option(*yes), console).await;
        }
    };
    Ok(out(console, &text).await)
}

/// The secrets that the settings of a session's directory know.
///
/// # Errors
/// A usage [`Failure`] where the settings cannot be read: what is secret is not known then.
async fn redaction(places: &Places, workspace: &str) -> Result<Redaction, Failure> {
    let (source, trust) = sources(places);
    // As if it were trusted: its secrets are secrets all the same.
    let overlay = CommandLineOverlay { trust_workspace: true, ..CommandLineOverlay::default() };
    match load(&source, trust.as_ref(), workspace, &overlay).await {
        Ok(resolution) => Ok(Redaction::of(&resolution.settings, |name| places.environment().var(name))),
        Err(error) => {
            Err(Failure::usage(format!("the settings tell which texts are secret, and cannot be read: {error}"))
                .hint("mend them first: peri config check"))
        }
    }
}

/// Manual pages, to standard output or into a directory.
///
/// # Errors
/// A [`Failure`] where there is no such command, or the directory cannot be written.
pub(super) async fn manual(args: &ManArgs, console: &mut Console) -> Result<Exit, Failure> {
    let text = match &args.output_dir {
        None => man::page(&args.command)?,
        Some(directory) => {
            let written = man::write_all(directory)?;
            format!("{} pages in {}: {}\n", written.len(), directory.display(), written.join(", "))
        }
    };
    Ok(out(console, &text).await)
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

/// The models of a provider's endpoint.
///
/// # Errors
/// A usage [`Failure`] of the settings; one in the endpoint's own words.
pub(super) async fn models(args: &ModelsArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (places, overlay) = settings_places(&args.cwd, &args.settings, None)?;
    let (source, trust) = sources(&places);
    let resolution = load(&source, trust.as_ref(), &places.workspace(), &overlay)
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    for diagnostic in &resolution.diagnostics {
        console.notice(&format!("warning: {diagnostic}")).await;
    }
    let format = args.format.output_format;
    let text = models::list(&resolution.settings, args.provider.as_deref(), &ModelAccess::new(), format).await?;
    Ok(out(console, &text).await)
}

/// Every check, and what it found.
///
/// # Errors
/// A usage [`Failure`] where there is no directory to examine, or no home for Peri's files.
pub(super) async fn doctor(args: &DoctorArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (places, overlay) = settings_places(&args.cwd, &args.settings, args.store.db_path.as_deref())?;
    let overlay = CommandLineOverlay { model: args.model.clone(), ..overlay };
    let patient = Patient { places: &places, overlay: &overlay, access: &ModelAccess::new() };
    let findings = doctor::examine(patient).await;
    let (text, exit) = doctor::report(&findings, args.format.output_format);
    Ok(worse(exit, out(console, &text).await))
}

/// Shows what trust would enable in a workspace, and asks.
///
/// # Errors
/// A [`Failure`] where it cannot be asked or recorded.
pub(super) async fn trust_workspace(args: &TrustArgs, console: &mut Console) -> Result<Exit, Failure> {
    let choice = PlaceChoice { cwd: args.dir.as_deref(), ..Default::default() };
    let places = Places::find(choice, Environment::Process)?;
    let (source, store) = sources(&places);
    let consent = Consent::from_option(args.yes);
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
