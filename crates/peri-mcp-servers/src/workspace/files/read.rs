//! Read: a file as numbered lines, or as an image.
//!
//! Must not change anything. Invariant: memory is bounded by [`WHOLE_FILE_BYTES`], whatever the size of the file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};

use base64::Engine as _;
use peri_acp_types::{CancellationToken, Content, Image, ToolDetails, ToolLocation, ToolOutput};

use super::image::{MAX_IMAGE_BYTES, image_type};
use super::page::{DEFAULT_LINES, LineCount, LinePage, MAX_LINE_CHARS};
use super::text::{Encoding, LineEndings, decode, line_endings, looks_binary};
use super::{WHOLE_FILE_BYTES, unopened};
use crate::workspace::arguments::ReadArguments;
use crate::workspace::failure::Failure;
use crate::workspace::paths::{Grants, Intent, OpenedFile, open_file};
use crate::workspace::session::Session;

/// Where a very large file's lines are no longer counted.
const MAX_COUNTED_BYTES: u64 = 1 << 30;
const CHUNK_BYTES: usize = 64 * 1024;

/// Runs a Read call. Blocks; gives up when `stop` is cancelled.
pub(crate) fn read(
    session: &Session,
    arguments: &ReadArguments,
    grants: &Grants,
    stop: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let place = session.territory.locate(&arguments.file_path, grants, Intent::Read)?;
    let path = place.path();
    let shown = session.territory.show(&path);
    let OpenedFile { mut file, .. } =
        open_file(&path).map_err(|error| unopened("read", &session.territory, &place, &error))?;
    let unreadable = |error: io::Error| Failure::new(format!("Cannot read {shown}: {error}."));

    let first = arguments.offset.unwrap_or(1).max(1);
    let page = LinePage::new(first, arguments.limit.unwrap_or(DEFAULT_LINES).max(1));
    let mut bytes = Vec::new();
    file.by_ref().take(WHOLE_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if let Some(mime_type) = image_type(&bytes) {
        return show_image(&shown, mime_type, &bytes);
    }
    let refused = |reason: &dyn std::fmt::Display| Failure::new(format!("Cannot show {shown}: {reason}."));
    let text = if bytes.len() as u64 > WHOLE_FILE_BYTES {
        if matches!(Encoding::of_mark(&bytes), Some(Encoding::Utf16Le | Encoding::Utf16Be)) {
            return Err(refused(&"it is UTF-16 and larger than 16 MiB; convert it with iconv first"));
        }
        if looks_binary(&bytes) {
            return Err(refused(&"it is a binary file"));
        }
        drop(bytes);
        let lines = page_of_large_file(&mut file, page, stop).map_err(unreadable)?;
        let note = "The file is larger than 16 MiB: Edit and Write cannot change it.";
        with_notes(lines.map_err(|error| refused(&error))?, [note])
    } else {
        let decoded = decode(&bytes).map_err(|error| refused(&error))?;
        session.seen.record(&path, &bytes);
        let lines = page_of_text(&decoded.text, page).map_err(|error| refused(&error))?;
        with_notes(lines, decoded.encoding.note().into_iter().chain(line_ending_note(&decoded.text)))
    };
    let location = ToolLocation { path: path.to_string_lossy().into_owned(), line: u32::try_from(first).ok() };
    Ok(ToolOutput { details: ToolDetails { locations: vec![location], diffs: Vec::new() }, ..ToolOutput::text(text) })
}

fn show_image(shown: &str, mime_type: &str, bytes: &[u8]) -> Result<ToolOutput, Failure> {
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(Failure::new(format!(
            "Cannot show {shown}: the image is larger than {MAX_IMAGE_BYTES} bytes. Make a smaller copy and read that."
        )));
    }
    let image =
        Image { mime_type: mime_type.to_owned(), base64: base64::engine::general_purpose::STANDARD.encode(bytes) };
    Ok(ToolOutput { content: vec![Content::Image(image)], ..ToolOutput::default() })
}

fn page_of_text(text: &str, mut page: LinePage) -> Result<String, super::page::PastTheEnd> {
    for line in text.split_terminator('\n') {
        page.offer(line.strip_suffix('\r').unwrap_or(line), 0);
    }
    let lines = page.offered();
    page.finish(LineCount::Exactly(lines))
}

/// Goes through the file in chunks and keeps no more of it than the page shows.
fn page_of_large_file(
    file: &mut File,
    mut page: LinePage,
    stop: &CancellationToken,
) -> io::Result<Result<String, super::page::PastTheEnd>> {
    /// Enough for [`MAX_LINE_CHARS`] characters and one more, of four bytes each.
    const KEPT_BYTES: usize = (MAX_LINE_CHARS + 1) * 4;
    file.rewind()?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut line = Vec::new();
    let (mut line_bytes, mut counted_bytes) = (0_u64, 0_u64);
    let count = loop {
        if stop.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        if counted_bytes > MAX_COUNTED_BYTES && page.is_done() {
            break LineCount::MoreThan(page.offered());
        }
        let length = file.read(&mut chunk)?;
        let Some(read) = chunk.get(..length).filter(|read| !read.is_empty()) else {
            if line_bytes > 0 {
                offer(&mut page, &line, line_bytes);
            }
            break LineCount::Exactly(page.offered());
        };
        counted_bytes += read.len() as u64;
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            line_bytes += piece.len() as u64;
            if page.wants_next() {
                line.extend_from_slice(piece.get(..KEPT_BYTES.saturating_sub(line.len())).unwrap_or(piece));
            }
            if piece.ends_with(b"\n") {
                offer(&mut page, &line, line_bytes);
                line.clear();
                line_bytes = 0;
            }
        }
    };
    Ok(page.finish(count))
}

/// Offers a line of which only the beginning was kept.
fn offer(page: &mut LinePage, kept: &[u8], line_bytes: u64) {
    let more = line_bytes - kept.len() as u64;
    let kept = kept.strip_suffix(b"\n").unwrap_or(kept);
    let kept = kept.strip_suffix(b"\r").unwrap_or(kept);
    page.offer(&String::from_utf8_lossy(kept), more);
}

fn line_ending_note(text: &str) -> Option<&'static str> {
    match line_endings(text) {
        LineEndings::None | LineEndings::Lf => None,
        LineEndings::CrLf => Some("Lines end in CRLF; Edit and Write keep that, send plain line breaks."),
        LineEndings::Mixed => Some("Some lines end in CRLF and some in LF; Edit leaves each as it is."),
    }
}

fn with_notes<'a>(mut text: String, notes: impl IntoIterator<Item = &'a str>) -> String {
    for note in notes {
        text.push_str("\n[");
        text.push_str(note);
        text.push(']');
    }
    text
}
