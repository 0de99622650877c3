//! Glob: files by name, newest first.
//!
//! Must not open them. Invariant: no more than [`MAX_PATHS`] paths are held, however many match.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ignore::DirEntry;
use peri_acp_types::{CancellationToken, ToolDetails, ToolLocation, ToolOutput};

use super::walk::{PathGlob, file_below, visit, walk};
use crate::workspace::arguments::GlobArguments;
use crate::workspace::failure::Failure;
use crate::workspace::paths::{Grants, Intent};
use crate::workspace::session::Session;

/// Paths shown. The tool's description names the number.
const MAX_PATHS: usize = 250;
/// Paths handed to the client for display.
const MAX_LOCATIONS: usize = 50;

/// Runs a Glob call. Blocks; gives up when `stop` is cancelled.
pub(crate) fn glob(
    session: &Session,
    arguments: &GlobArguments,
    grants: &Grants,
    stop: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let (directory, pattern) = split_absolute(arguments)?;
    let glob = PathGlob::new(pattern)?;
    let place = session.territory.locate(directory, grants, Intent::Read)?;
    let base = place.path();
    if !base.is_dir() {
        let what = if place.exists() { "is not a directory" } else { "does not exist" };
        return Err(Failure::new(format!("{} {what}.", session.territory.show(&base))));
    }
    let newest = Mutex::new(Newest::default());
    let walker = walk(&base, session.territory.root_of(&base), &grants.hidden).build();
    visit(walker, || {
        |entry: Result<DirEntry, ignore::Error>| {
            if stop.is_cancelled() {
                return ControlFlow::Break(());
            }
            if let Some(found) = entry.ok().and_then(|entry| found(&entry, &base, &glob)) {
                newest.lock().unwrap_or_else(PoisonError::into_inner).add(found);
            }
            ControlFlow::Continue(())
        }
    });
    if stop.is_cancelled() {
        return Err(Failure::new("Glob was cancelled."));
    }
    Ok(report(session, pattern, &base, newest.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// An absolute pattern names its directory itself: what comes before the first name with a wildcard.
fn split_absolute(arguments: &GlobArguments) -> Result<(&str, &str), Failure> {
    let pattern = arguments.pattern.as_str();
    let directory = arguments.path.as_deref().unwrap_or(".");
    if !pattern.starts_with('/') {
        return Ok((directory, pattern));
    }
    if arguments.path.is_some() {
        return Err(Failure::new("The pattern is absolute, so path must be left out."));
    }
    let wildcard = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let slash = pattern.get(..wildcard).and_then(|fixed| fixed.rfind('/')).unwrap_or(0);
    let (fixed, rest) = pattern.split_at(slash);
    // The rest keeps its slash, so that `/a/*.rs` stays a pattern about the directory itself.
    Ok((if fixed.is_empty() { "/" } else { fixed }, rest))
}

/// A file that matches. The order is "newer first, then by path".
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    modified: Reverse<SystemTime>,
    path: PathBuf,
}

/// The first few by that order, and how many there were.
#[derive(Default)]
struct Newest {
    kept: BinaryHeap<Found>,
    count: usize,
}

impl Newest {
    fn add(&mut self, found: Found) {
        self.count += 1;
        self.kept.push(found);
        if self.kept.len() > MAX_PATHS {
            self.kept.pop();
        }
    }
}

fn found(entry: &DirEntry, base: &Path, glob: &PathGlob) -> Option<Found> {
    let path = file_below(entry, base)?;
    if !glob.matches(path.strip_prefix(base).unwrap_or(path)) {
        return None;
    }
    let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
    Some(Found { modified: Reverse(modified.unwrap_or(SystemTime::UNIX_EPOCH)), path: path.to_owned() })
}

fn report(session: &Session, pattern: &str, base: &Path, newest: Newest) -> ToolOutput {
    if newest.count == 0 {
        let place = session.territory.name_directory(base);
        return ToolOutput::text(format!("No file matches `{pattern}` in {place}."));
    }
    let kept = newest.kept.into_sorted_vec();
    let mut lines: Vec<String> = kept.iter().map(|found| session.territory.show(&found.path)).collect();
    if newest.count > kept.len() {
        lines.push(format!("[{} files match; these are the newest {}. Narrow the pattern.]", newest.count, kept.len()));
    }
    let locations = kept
        .iter()
        .take(MAX_LOCATIONS)
        .map(|found| ToolLocation { path: found.path.to_string_lossy().into_owned(), line: None })
        .collect();
    ToolOutput { details: ToolDetails { locations, diffs: Vec::new() }, ..ToolOutput::text(lines.join("\n")) }
}
