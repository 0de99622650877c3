//! Where sessions, settings and long outputs go: can it be read and written?
//!
//! Invariant: nothing is left behind; what is made to try is removed.

use std::io::Write;
use std::path::Path;

use peri_acp_types::ports::{ThreadQuery, ThreadStore};

use super::Finding;
use crate::composition::{Places, existing_store};

/// What is written to see that it can be.
const SAMPLE: [u8; 4096] = [0; 4096];

/// The file of sessions.
pub async fn sessions(places: &Places) -> Vec<Finding> {
    let file = places.store_file();
    let elsewhere = "--db-path or PERI_HOME choose another place";
    let store = match existing_store(places) {
        Ok(Some(store)) => store,
        Ok(None) => {
            let missing = format!("{} is not there yet; the first session makes it", file.display());
            return vec![match try_folder(file.parent().unwrap_or(file)) {
                Ok(()) => Finding::ok("sessions", missing),
                Err(reason) => {
                    Finding::fault("sessions", format!("{} cannot be made: {reason}", file.display()), elsewhere)
                }
            }];
        }
        Err(failure) => return vec![Finding::fault("sessions", failure.message, elsewhere)],
    };
    let listed = store.list(&ThreadQuery { cwd: None, cursor: None, limit: 1 }).await;
    let mut findings = vec![match listed.map(drop).map_err(|error| error.to_string()).and_then(|()| try_file(file)) {
        Ok(()) => Finding::ok("sessions", format!("{} can be read and written", file.display())),
        Err(reason) => Finding::fault("sessions", reason, elsewhere),
    }];
    let notices = store.report().await.map(|report| report.notices).unwrap_or_default();
    findings.extend(
        notices
            .into_iter()
            .map(|notice| Finding::warning("sessions", notice, "look at the file that was moved before you remove it")),
    );
    findings
}

/// The folders that are written to.
pub fn writable(places: &Places) -> Vec<Finding> {
    let dirs = places.dirs();
    let chosen_by = "the XDG variables or PERI_HOME choose another";
    let folders = [
        ("settings", dirs.config.clone(), chosen_by),
        ("data", dirs.data.clone(), chosen_by),
        ("outputs", places.output_dir(), chosen_by),
        ("temporary", std::env::temp_dir(), "TMPDIR chooses another"),
    ];
    folders
        .into_iter()
        .map(|(what, folder, mend)| match try_folder(&folder) {
            Ok(()) => Finding::ok("folders", format!("{what}: {}", folder.display())),
            Err(reason) => {
                Finding::fault("folders", format!("{what}: {} cannot be written: {reason}", folder.display()), mend)
            }
        })
        .collect()
}

/// The file opens for writing, and there is room beside it.
fn try_file(file: &Path) -> Result<(), String> {
    let opened = std::fs::OpenOptions::new().write(true).open(file);
    opened.map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    try_folder(file.parent().unwrap_or(file)).map_err(|reason| format!("beside {}: {reason}", file.display()))
}

/// Writes a file into the folder, or into the nearest one above it that is there, and removes it.
fn try_folder(folder: &Path) -> Result<(), String> {
    let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
    let tried = tempfile::Builder::new().prefix(".peri-doctor-").tempfile_in(there).and_then(|mut file| {
        file.write_all(&SAMPLE)?;
        file.flush()
    });
    tried.map_err(|error| format!("{}: {}", there.display(), bare(&error)))
}

/// Without the path of the temporary file, which says nothing to anybody.
fn bare(error: &std::io::Error) -> String {
    let words = error.to_string();
    words.split(" at path ").next().unwrap_or(&words).to_owned()
}
