//! The file tools: Read, Edit, Write.
//!
//! Must not open a path that [`super::paths`] has not cleared. Invariant: a file is changed only by [`replace`], whole
//! and in one step, so that nobody ever sees half of it.

mod edit;
mod image;
mod likeness;
mod page;
mod read;
mod replace;
mod seen;
mod splice;
mod text;
mod write;

use std::path::Path;

pub(super) use edit::edit;
pub(super) use read::read;
pub(super) use seen::SeenFiles;
pub(super) use write::write;

use super::failure::Failure;
use super::paths::{OpenError, Place, Territory, printable};
use likeness::likeness;

/// The largest file that is held in memory as a whole, and so the largest that can be changed: 16 MiB.
const WHOLE_FILE_BYTES: u64 = 16 << 20;

/// Directory entries looked at for a suggestion or shown instead of a file.
const MAX_ENTRIES: usize = 5000;
const MAX_SUGGESTIONS: usize = 3;
const MIN_LIKENESS: f32 = 0.5;
const MAX_LISTED: usize = 50;

/// Why a file cannot be opened, with what the model can do about it.
fn unopened(verb: &str, territory: &Territory, place: &Place, error: &OpenError) -> Failure {
    let shown = territory.show(&place.path());
    match error {
        OpenError::NotFound => Failure::new(format!("{shown} does not exist.{}", suggestion(territory, place))),
        OpenError::Directory => Failure::new(format!("{shown} is a directory.{}", listing(&place.path()))),
        other => Failure::cannot(verb, &shown, other),
    }
}

/// Names near the one that is missing.
fn suggestion(territory: &Territory, place: &Place) -> String {
    let resolved = place.resolved();
    let Some(missing) = resolved.missing.first().map(|name| name.to_string_lossy()) else { return String::new() };
    let mut near: Vec<(f32, String)> = entries(&resolved.existing)
        .map(|entry| (likeness(&missing, &entry.to_string_lossy()), territory.show(&resolved.existing.join(entry))))
        .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
        .collect();
    near.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    near.truncate(MAX_SUGGESTIONS);
    match near.as_slice() {
        [] => format!(" There is no `{missing}` in {}.", territory.name_directory(&resolved.existing)),
        near => {
            let names: Vec<&str> = near.iter().map(|(_, name)| name.as_str()).collect();
            format!(" Did you mean {}?", names.join(" or "))
        }
    }
}

/// What a directory holds, briefly.
fn listing(directory: &Path) -> String {
    let mut names: Vec<String> = entries(directory).map(|name| printable(Path::new(&name))).collect();
    names.sort();
    let total = names.len();
    names.truncate(MAX_LISTED);
    match total {
        0 => " It is empty.".to_owned(),
        total if total > names.len() => format!(" It holds {total} entries, among them: {}.", names.join(", ")),
        _ => format!(" It holds: {}.", names.join(", ")),
    }
}

/// Names in a directory; none where it cannot be listed. Only used for hints.
fn entries(directory: &Path) -> impl Iterator<Item = std::ffi::OsString> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .take(MAX_ENTRIES)
        .map(|entry| entry.file_name())
}
