//! Project instructions: which files, in which order, and how much of them.
//!
//! Order: the user's own file, then from the top of the repository down to the working directory, so that the closest
//! comes last. Where there is too much, the farthest yields first.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use peri_acp_types::InstructionFile;

use super::small_file::{self, SmallFile};

/// In each directory, in this order.
const NAMES: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"];
/// Bytes that are taken of one file.
const FILE_LIMIT: u64 = 48 * 1024;
/// Bytes that are taken of all files together.
const TOTAL_LIMIT: u64 = 128 * 1024;

/// Reads the instructions for `cwd`, which lies in or is `top`; both canonical. What is there and cannot be taken is named in
/// `left_out`.
pub(super) fn gather(
    user_file: Option<&Path>,
    top: &Path,
    cwd: &Path,
    left_out: &mut Vec<String>,
) -> Vec<InstructionFile> {
    let mut files = Files { found: Vec::new(), seen: HashSet::new(), left_out };
    if let Some(path) = user_file {
        files.add(path, LinkRule::AnyWhere);
    }
    let mut directories: Vec<&Path> = cwd.ancestors().take_while(|directory| directory.starts_with(top)).collect();
    directories.reverse();
    for directory in directories {
        for name in NAMES {
            files.add(&directory.join(name), LinkRule::Inside(top));
        }
    }
    let Files { found, .. } = files;
    read_closest_first(found, left_out)
}

/// Where a link may lead.
#[derive(Clone, Copy)]
enum LinkRule<'a> {
    /// The user made it.
    AnyWhere,
    /// A repository brought it along: it must not show the user's other files to a model.
    Inside(&'a Path),
}

/// A file and the name under which it was found.
struct Found {
    shown: String,
    file: SmallFile,
}

struct Files<'a> {
    found: Vec<Found>,
    /// A file under two names counts once.
    seen: HashSet<(u64, u64)>,
    left_out: &'a mut Vec<String>,
}

impl Files<'_> {
    fn add(&mut self, path: &Path, links: LinkRule<'_>) {
        match resolve(path, links) {
            Ok(Some(file)) => {
                if self.seen.insert(file.identity) {
                    self.found.push(Found { shown: path.to_string_lossy().into_owned(), file });
                }
            }
            Ok(None) => {}
            Err(reason) => self.left_out.push(format!("{} {reason}; it was left out", path.display())),
        }
    }
}

fn resolve(path: &Path, links: LinkRule<'_>) -> Result<Option<SmallFile>, String> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return small_file::find(path);
    }
    let target = fs::canonicalize(path).map_err(|error| format!("is a link that cannot be followed ({error})"))?;
    if let LinkRule::Inside(top) = links {
        let Ok(inside) = target.strip_prefix(top) else {
            return Err(format!("is a link that leads outside the project, to {}", target.display()));
        };
        // Credentials of remotes may stand there.
        if inside.components().any(|component| component.as_os_str() == ".git") {
            return Err(format!("is a link that leads into git's own files, to {}", target.display()));
        }
    }
    small_file::find(&target)
}

fn read_closest_first(found: Vec<Found>, left_out: &mut Vec<String>) -> Vec<InstructionFile> {
    let mut budget = TOTAL_LIMIT;
    let mut files = Vec::new();
    for Found { shown, file } in found.into_iter().rev() {
        if budget == 0 {
            left_out
                .push(format!("{shown} was left out: the instructions closer to the working directory fill the space"));
            continue;
        }
        let limit = FILE_LIMIT.min(budget);
        match small_file::read(&file, limit) {
            Ok(bytes) => {
                let taken = bytes.len() as u64;
                budget -= taken.min(budget);
                let text = as_text(&bytes, file.size, &shown);
                if !text.trim().is_empty() {
                    files.push(InstructionFile { path: shown, text });
                }
            }
            Err(error) => left_out.push(format!("{shown}: {error}; it was left out")),
        }
    }
    files.reverse();
    files
}

/// Bytes that are no UTF-8 become replacement characters; a character that the limit cut in two is dropped.
fn as_text(bytes: &[u8], size: u64, shown: &str) -> String {
    let taken = bytes.len() as u64;
    let is_cut = size > taken;
    let mut text = String::with_capacity(bytes.len());
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let is_cut_character = is_cut && chunks.peek().is_none();
        if !chunk.invalid().is_empty() && !is_cut_character {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    let mut text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    if is_cut {
        text.push_str(&format!(
            "\n\n[Cut here by Peri: these are the first {taken} of {size} bytes. The rest is in {shown}.]"
        ));
    }
    text
}
