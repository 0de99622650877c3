//! `peri sessions export`: a whole session as a document.
//!
//! Owns: the document's form (docs/guide/command-line.md). Must not: change the store, or let out a secret that the settings
//! know. Invariant: a file is written whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use peri_acp_types::Thread;
use serde_json::{Value, json};

use super::redaction::Redaction;
use super::{markdown, sessions};
use crate::args::ExportFormat;
use crate::exit::Failure;

/// The form of the JSON document: it grows by new members only; anything else gets a new number.
const FORM: u32 = 1;

/// The document of a thread.
pub fn document(thread: &Thread, format: ExportFormat, redaction: &Redaction) -> String {
    match format {
        ExportFormat::Json => {
            let mut document =
                json!({"format": "peri-session", "version": FORM, "peri_version": env!("CARGO_PKG_VERSION")});
            if let (Value::Object(document), Value::Object(session)) = (&mut document, sessions::whole(thread)) {
                document.extend(session);
            }
            let text = serde_json::to_string_pretty(&redaction.value(document)).unwrap_or_default();
            format!("{text}\n")
        }
        ExportFormat::Markdown => redaction.text(&markdown::of(thread)),
    }
}

/// Writes a document to a file, readable by its owner alone. A regular file that is there is replaced.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn write(path: &Path, document: &str) -> Result<(), Failure> {
    write_whole(path, document).map_err(|error| {
        Failure::run(format!("{} cannot be written: {error}", path.display())).hint("-o names another file")
    })
}

fn write_whole(path: &Path, document: &str) -> std::io::Result<()> {
    // A device or a pipe is written to; it must not be replaced by a file.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(document.as_bytes());
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(PathBuf::from("."), Path::to_owned);
    let mut file = tempfile::Builder::new().prefix(".peri-export-").tempfile_in(folder)?;
    file.write_all(document.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
