//! Edit: one text for another in a file that the model knows.
//!
//! Must not guess where the place is not certain. Invariant: the file keeps encoding, line endings, mode and every byte
//! outside the replaced text.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use peri_acp_types::{FileDiff, ToolDetails, ToolLocation, ToolOutput};

use super::replace::{Loaded, ReplaceError, load, replace};
use super::seen::Freshness;
use super::splice::{Matched, NotSpliced, Occurrences, Replacement, Spliced, line_of, splice};
use super::text::{decode, encode};
use super::unopened;
use crate::workspace::arguments::EditArguments;
use crate::workspace::failure::Failure;
use crate::workspace::paths::{Grants, Intent, Place};
use crate::workspace::session::Session;

/// Lines shown before and after what changed.
const CONTEXT_LINES: usize = 3;
/// Lines shown of a result, and characters of each.
const MAX_SNIPPET_LINES: usize = 60;
const MAX_SNIPPET_CHARS: usize = 300;
/// Up to this size a diff holds the whole file, above it only the region that changed.
const WHOLE_DIFF_BYTES: usize = 64 * 1024;

/// Runs an Edit call. Blocks.
pub(crate) fn edit(session: &Session, arguments: &EditArguments, grants: &Grants) -> Result<ToolOutput, Failure> {
    if arguments.old_string.is_empty() {
        return Err(Failure::new("old_string is empty. To make a new file or replace a whole one, use Write."));
    }
    if arguments.old_string == arguments.new_string {
        return Err(Failure::new("old_string and new_string are the same: there is nothing to change."));
    }
    let place = session.territory.locate(&arguments.file_path, grants, Intent::Write)?;
    let path = place.path();
    let shown = session.territory.show(&path);
    let _one_change_at_a_time = session.changing();
    let loaded = load_known(session, &place, "edit")?;
    let before = decode(&loaded.bytes).map_err(|error| Failure::new(format!("Cannot edit {shown}: {error}.")))?;

    let occurrences = if arguments.replace_all { Occurrences::Every } else { Occurrences::One };
    let replacement = Replacement { old: &arguments.old_string, new: &arguments.new_string, occurrences };
    let spliced = splice(&before.text, replacement).map_err(|error| not_spliced(&shown, &before.text, &error))?;
    let bytes = encode(&spliced.text, before.encoding)
        .map_err(|error| Failure::new(format!("Cannot edit {shown}: {error}. Nothing was changed.")))?;
    if bytes == loaded.bytes {
        return Err(Failure::new(format!("The edit would leave {shown} as it is.")));
    }
    replace(&path, &loaded, &bytes).map_err(|error| not_replaced(session, &place, "edit", &error))?;
    session.seen.record(&path, &bytes);
    Ok(ToolOutput { details: details(&path, &before.text, &spliced), ..ToolOutput::text(report(&shown, &spliced)) })
}

/// The file's content, provided that the model has read exactly that.
pub(super) fn load_known(session: &Session, place: &Place, verb: &str) -> Result<Loaded, Failure> {
    let path = place.path();
    let loaded = load(&path).map_err(|error| not_replaced(session, place, verb, &error))?;
    let shown = session.territory.show(&path);
    match session.seen.freshness(&path, &loaded.bytes) {
        Freshness::Fresh => Ok(loaded),
        Freshness::NeverRead => {
            Err(Failure::new(format!("{shown} has not been read in this session. Read it first, then {verb} it.")))
        }
        Freshness::ChangedSince => Err(Failure::new(format!(
            "{shown} has changed since it was last read. Read it again, then {verb} what is there now."
        ))),
    }
}

pub(super) fn not_replaced(session: &Session, place: &Place, verb: &str, error: &ReplaceError) -> Failure {
    match error {
        ReplaceError::Open(error) => unopened(verb, &session.territory, place, error),
        other => Failure::new(format!("Cannot {verb} {}: {other}.", session.territory.show(&place.path()))),
    }
}

fn not_spliced(shown: &str, text: &str, error: &NotSpliced) -> Failure {
    match error {
        NotSpliced::NotFound { closest: None } => Failure::new(format!(
            "old_string does not occur in {shown}, nor does anything like it. Read the file and copy the text from there."
        )),
        NotSpliced::NotFound { closest: Some(line) } => Failure::new(format!(
            "old_string does not occur in {shown}. The closest place is at line {line}:\n{}",
            numbered(text, line.saturating_sub(1)..line + 2 * CONTEXT_LINES)
        )),
        NotSpliced::Ambiguous { count, lines, matched } => {
            let how = match matched {
                Matched::Exactly => "occurs",
                Matched::UpToWhiteSpace => "does not occur exactly, and up to white space it occurs",
            };
            let places: Vec<String> = lines.iter().map(usize::to_string).collect();
            let more = if *count > lines.len() { ", …" } else { "" };
            let instead = match matched {
                Matched::Exactly => "Add surrounding lines to make it unique, or set replace_all to change them all.",
                Matched::UpToWhiteSpace => "Copy the text exactly, with surrounding lines to make it unique.",
            };
            Failure::new(format!(
                "old_string {how} {count} times in {shown}, at lines {}{more}. {instead}",
                places.join(", ")
            ))
        }
    }
}

fn report(shown: &str, spliced: &Spliced) -> String {
    let count = spliced.regions.len();
    let mut text = format!("Edited {shown}: {count} replacement{}.", if count == 1 { "" } else { "s" });
    if spliced.matched == Matched::UpToWhiteSpace {
        text.push_str(
            " old_string matched only up to white space; the new lines were indented like those they replace.",
        );
    }
    let mut shown_lines = 0;
    let mut shown_up_to = 0;
    for region in &spliced.regions {
        let lines = lines_around(&spliced.text, region);
        let lines = lines.start.max(shown_up_to)..lines.end;
        if lines.is_empty() {
            continue;
        }
        if shown_lines >= MAX_SNIPPET_LINES {
            text.push_str("\n[The other places are not shown.]");
            break;
        }
        shown_up_to = lines.end;
        let lines = lines.start..lines.end.min(lines.start + MAX_SNIPPET_LINES - shown_lines);
        shown_lines += lines.len();
        text.push('\n');
        text.push_str(numbered(&spliced.text, lines).trim_end_matches('\n'));
        text.push('\n');
    }
    text
}

/// 0-based lines of a region with some context.
fn lines_around(text: &str, region: &Range<usize>) -> Range<usize> {
    let first = line_of(text, region.start) - 1;
    let last = line_of(text, region.end);
    first.saturating_sub(CONTEXT_LINES)..last + CONTEXT_LINES
}

/// 0-based lines as Read shows them.
fn numbered(text: &str, lines: Range<usize>) -> String {
    let mut shown = String::new();
    for (index, line) in text.split_terminator('\n').enumerate().take(lines.end).skip(lines.start) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let cut = line.char_indices().nth(MAX_SNIPPET_CHARS).map_or(line.len(), |(at, _)| at);
        let (line, rest) = line.split_at(cut);
        let _infallible = write!(shown, "{:>6}\t{line}", index + 1);
        shown.push_str(if rest.is_empty() { "\n" } else { "…\n" });
    }
    shown
}

fn details(path: &Path, before: &str, spliced: &Spliced) -> ToolDetails {
    let path = path.to_string_lossy().into_owned();
    let first = spliced.regions.first().map_or(0, |region| region.start);
    let line = u32::try_from(line_of(&spliced.text, first)).ok();
    ToolDetails {
        locations: vec![ToolLocation { path: path.clone(), line }],
        diffs: vec![diff(path, before, &spliced.text)],
    }
}

/// Before and after: whole where that is small, else the lines from the first difference to the last, with context.
pub(super) fn diff(path: String, before: &str, after: &str) -> FileDiff {
    if before.len() + after.len() <= WHOLE_DIFF_BYTES {
        return FileDiff { path, old_text: Some(before.to_owned()), new_text: after.to_owned() };
    }
    let same_start = before.bytes().zip(after.bytes()).take_while(|(before, after)| before == after).count();
    let longest_end = before.len().min(after.len()) - same_start;
    let same_end = before.bytes().rev().zip(after.bytes().rev()).take_while(|(before, after)| before == after).count();
    let same_end = same_end.min(longest_end);
    let start = context_start(before, same_start);
    let end = before.len() - context_end(before, before.len() - same_end);
    FileDiff {
        path,
        old_text: Some(cut(before, start..before.len() - end)),
        new_text: cut(after, start..after.len() - end),
    }
}

/// The start of the line some lines above.
fn context_start(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let breaks = before.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    breaks.map(|(at, _)| at + 1).nth(CONTEXT_LINES).unwrap_or(0)
}

/// The end of the line some lines below.
fn context_end(text: &str, at: usize) -> usize {
    let after = text.as_bytes().get(at..).unwrap_or_default();
    let breaks = after.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    breaks.map(|(offset, _)| at + offset + 1).nth(CONTEXT_LINES).unwrap_or(text.len())
}

/// A region for display, no longer than a whole small file.
pub(super) fn cut(text: &str, region: Range<usize>) -> String {
    let region = text.get(region).unwrap_or_default();
    let end = region.floor_char_boundary(WHOLE_DIFF_BYTES);
    region.get(..end).unwrap_or_default().to_owned()
}
