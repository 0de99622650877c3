//! Write: a whole file, new or known.
//!
//! Must not overwrite what the model has not seen. Invariant: an existing file keeps its encoding, mode and, where all
//! its lines ended in CRLF, that too.

use peri_acp_types::{FileDiff, ToolDetails, ToolLocation, ToolOutput};

use super::WHOLE_FILE_BYTES;
use super::edit::{cut, diff, load_known, not_replaced};
use super::replace::{create, replace};
use super::text::{Encoding, LineEndings, decode, encode, line_endings};
use crate::workspace::arguments::WriteArguments;
use crate::workspace::failure::Failure;
use crate::workspace::paths::{Grants, Intent, Place};
use crate::workspace::session::Session;

/// Runs a Write call. Blocks.
pub(crate) fn write(session: &Session, arguments: &WriteArguments, grants: &Grants) -> Result<ToolOutput, Failure> {
    if arguments.content.len() as u64 > WHOLE_FILE_BYTES {
        return Err(Failure::new("content is larger than 16 MiB, the most that Write takes."));
    }
    let place = session.territory.locate(&arguments.file_path, grants, Intent::Write)?;
    let _one_change_at_a_time = session.changing();
    if place.exists() {
        overwrite(session, &place, &arguments.content)
    } else {
        write_new(session, &place, &arguments.content)
    }
}

fn write_new(session: &Session, place: &Place, content: &str) -> Result<ToolOutput, Failure> {
    create(place.resolved(), content.as_bytes()).map_err(|error| not_replaced(session, place, "write", &error))?;
    let path = place.path();
    session.seen.record(&path, content.as_bytes());
    let text = format!("Created {} ({}).", session.territory.show(&path), lines(content));
    let path = path.to_string_lossy().into_owned();
    let diff = FileDiff { path, old_text: None, new_text: cut(content, 0..content.len()) };
    Ok(output(text, diff))
}

fn overwrite(session: &Session, place: &Place, content: &str) -> Result<ToolOutput, Failure> {
    let path = place.path();
    let shown = session.territory.show(&path);
    let loaded = load_known(session, place, "write")?;
    let mut notes = String::new();
    let before = decode(&loaded.bytes).ok();
    let (before_text, encoding) =
        before.as_ref().map_or(("", Encoding::Utf8), |before| (before.text.as_str(), before.encoding));
    let content = if line_endings(before_text) == LineEndings::CrLf && line_endings(content) == LineEndings::Lf {
        notes.push_str(" Its CRLF line endings were kept.");
        content.replace('\n', "\r\n")
    } else {
        content.to_owned()
    };
    let bytes = encode(&content, encoding).unwrap_or_else(|_| {
        notes.push_str(" It was not UTF-8 before and is now.");
        content.clone().into_bytes()
    });
    if bytes == loaded.bytes {
        return Ok(ToolOutput::text(format!("{shown} holds exactly that already; nothing was written.")));
    }
    replace(&path, &loaded, &bytes).map_err(|error| not_replaced(session, place, "write", &error))?;
    session.seen.record(&path, &bytes);
    let text = format!("Wrote {shown} ({}).{notes}", lines(&content));
    Ok(output(text, diff(path.to_string_lossy().into_owned(), before_text, &content)))
}

fn output(text: String, diff: FileDiff) -> ToolOutput {
    let location = ToolLocation { path: diff.path.clone(), line: None };
    ToolOutput { details: ToolDetails { locations: vec![location], diffs: vec![diff] }, ..ToolOutput::text(text) }
}

fn lines(content: &str) -> String {
    match content.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}
