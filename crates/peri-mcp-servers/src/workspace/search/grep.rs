//! Grep: lines by regular expression.
//!
//! Must not search what [`super::walk`] leaves out, unless the caller names that very file. Invariant: memory is bounded
//! by the buffer of each thread and by the hits that are kept.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use globset::GlobSet;
use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::DirEntry;
use ignore::types::{Types, TypesBuilder};
use peri_acp_types::{CancellationToken, ToolDetails, ToolLocation, ToolOutput};

use super::excerpt::excerpt;
use super::hits::{FileHits, HitLine, Hits, LineRole};
use super::walk::{PathGlob, file_below, visit, walk};
use crate::workspace::arguments::{GrepArguments, OutputMode};
use crate::workspace::failure::Failure;
use crate::workspace::paths::{Grants, Intent, OpenError, open_file, open_listed_file};
use crate::workspace::session::Session;

/// Lines or files shown unless the call says otherwise, and the most that it may ask for.
const DEFAULT_LIMIT: u64 = 250;
const MAX_LIMIT: u64 = 2000;
/// Bytes of a result.
const MAX_BYTES: usize = 40_000;
/// Lines of context on either side.
const MAX_CONTEXT: u64 = 100;
/// What a thread may hold of a file: its longest line, or with `multiline` all of it.
const MAX_HELD_BYTES: usize = 32 << 20;
/// What a compiled expression may take.
const MAX_REGEX_BYTES: usize = 16 << 20;
const MAX_DFA_BYTES: usize = 64 << 20;
/// Places handed to the client for display.
const MAX_LOCATIONS: usize = 50;

/// Runs a Grep call. Blocks; gives up when `stop` is cancelled.
pub(crate) fn grep(
    session: &Session,
    arguments: &GrepArguments,
    grants: &Grants,
    stop: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let search = Search::new(arguments, stop.clone())?;
    let place = session.territory.locate(arguments.path.as_deref().unwrap_or("."), grants, Intent::Read)?;
    let base = place.path();
    let shown = session.territory.show(&base);
    if !place.exists() {
        return Err(Failure::new(format!("{shown} does not exist.")));
    }
    let found = if base.is_dir() {
        search.below(&base, session.territory.root_of(&base), &grants.hidden)
    } else {
        search.one(&base).map_err(|reason| Failure::new(format!("Cannot search {shown}: {reason}.")))?
    };
    if stop.is_cancelled() {
        return Err(Failure::new("Grep was cancelled."));
    }
    Ok(search.report(session, &session.territory.name_directory(&base), &found))
}

/// A search as it was asked for.
struct Search {
    matcher: RegexMatcher,
    searcher: SearcherBuilder,
    glob: Option<PathGlob>,
    types: Option<Types>,
    mode: OutputMode,
    line_numbers: bool,
    context: bool,
    limit: usize,
    stop: CancellationToken,
}

/// What came of it.
struct Found {
    hits: Hits,
    unreadable: u64,
    too_long: u64,
}

/// Why a file was left out.
#[derive(Debug, thiserror::Error)]
enum Unsearched {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0}")]
    Read(io::Error),
    #[error("a line of it (or with multiline the file) is longer than 32 MiB")]
    TooLong,
    #[error("it is a binary file")]
    Binary,
}

impl Search {
    fn new(arguments: &GrepArguments, stop: CancellationToken) -> Result<Search, Failure> {
        let mode = arguments.output_mode.unwrap_or(OutputMode::FilesWithMatches);
        let lines_of = |asked: Option<u64>| asked.or(arguments.around).unwrap_or(0).min(MAX_CONTEXT) as usize;
        let (before, after) = match mode {
            OutputMode::Content => (lines_of(arguments.before), lines_of(arguments.after)),
            OutputMode::FilesWithMatches | OutputMode::Count => (0, 0),
        };
        let mut searcher = SearcherBuilder::new();
        searcher
            .line_number(mode == OutputMode::Content)
            .before_context(before)
            .after_context(after)
            .multi_line(arguments.multiline)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HELD_BYTES));
        if !arguments.multiline {
            searcher.line_terminator(LineTerminator::crlf());
        }
        let limit = match arguments.head_limit.unwrap_or(DEFAULT_LIMIT) {
            0 => MAX_LIMIT,
            asked => asked.min(MAX_LIMIT),
        };
        Ok(Search {
            matcher: compile(arguments)?,
            searcher,
            glob: arguments.glob.as_deref().map(PathGlob::new).transpose()?,
            types: arguments.file_type.as_deref().map(types).transpose()?,
            mode,
            line_numbers: arguments.line_numbers.unwrap_or(true),
            context: before + after > 0,
            limit: limit as usize,
            stop,
        })
    }

    /// Searches a single file, whatever it is called and whether it is ignored.
    fn one(&self, path: &Path) -> Result<Found, Unsearched> {
        let file = open_file(path)?.file;
        let mut hits = Hits::new(self.limit);
        if let Some(found) = self.file(&self.matcher, &mut self.searcher.build(), file)? {
            hits.add(path.to_owned(), found);
        }
        Ok(Found { hits, unreadable: 0, too_long: 0 })
    }

    /// Searches the files below a directory, on several threads.
    fn below(&self, base: &Path, root: Option<&Path>, hidden: &GlobSet) -> Found {
        let gathering = Gathering {
            search: self,
            base,
            hits: Mutex::new(Hits::new(self.limit)),
            unreadable: AtomicU64::new(0),
            too_long: AtomicU64::new(0),
        };
        visit(walk(base, root, hidden).build(), || {
            // A matcher of its own for each thread: its scratch memory is shared only at the price of a lock.
            let (matcher, mut searcher) = (self.matcher.clone(), self.searcher.build());
            let gathering = &gathering;
            move |entry| gathering.visit(&matcher, &mut searcher, entry)
        });
        Found {
            hits: gathering.hits.into_inner().unwrap_or_else(PoisonError::into_inner),
            unreadable: gathering.unreadable.into_inner(),
            too_long: gathering.too_long.into_inner(),
        }
    }

    fn selects(&self, path: &Path, base: &Path) -> bool {
        let relative = path.strip_prefix(base).unwrap_or(path);
        self.glob.as_ref().is_none_or(|glob| glob.matches(relative))
            && self.types.as_ref().is_none_or(|types| !types.matched(path, false).is_ignore())
    }

    /// The hits of one file; None where there are none.
    fn file(
        &self,
        matcher: &RegexMatcher,
        searcher: &mut Searcher,
        file: File,
    ) -> Result<Option<FileHits>, Unsearched> {
        let mut sink = HitSink { search: self, matcher, hits: FileHits::default(), binary: false };
        let reader = StoppableReader { file, stop: &self.stop };
        match searcher.search_reader(matcher, reader, &mut sink) {
            Ok(()) if sink.binary => Err(Unsearched::Binary),
            Ok(()) => Ok((sink.hits.matches > 0).then_some(sink.hits)),
            Err(error) if is_heap_limit(&error) => Err(Unsearched::TooLong),
            Err(error) => Err(Unsearched::Read(error)),
        }
    }

    fn report(&self, session: &Session, base: &str, found: &Found) -> ToolOutput {
        let mut report = Report { text: String::new(), lines: 0, limit: self.limit, full: false };
        for (path, hits) in found.hits.iter() {
            let path = session.territory.show(path);
            match self.mode {
                OutputMode::FilesWithMatches => report.line(&path),
                OutputMode::Count => report.line(&format!("{path}:{}", hits.matches)),
                OutputMode::Content => self.report_lines(&mut report, &path, hits),
            }
        }
        let mut text = report.text;
        let mut note = |words: String| text = format!("{}\n[{words}]", text.trim_end_matches('\n'));
        if found.hits.is_empty() {
            note(format!("No matches in {base}."));
        } else if report.full || found.hits.overflows() {
            note("There is more than is shown here. Narrow the search, or raise head_limit.".to_owned());
        }
        if found.unreadable > 0 {
            note(format!("{} files or directories could not be read.", found.unreadable));
        }
        if found.too_long > 0 {
            note(format!("{} files were left out: {}.", found.too_long, Unsearched::TooLong));
        }
        ToolOutput { details: details(found), ..ToolOutput::text(text.trim_matches('\n')) }
    }

    fn report_lines(&self, report: &mut Report, path: &str, hits: &FileHits) {
        if self.context && report.lines > 0 {
            report.line("--");
        }
        for line in &hits.lines {
            let separator = match line.role {
                LineRole::Match => ':',
                LineRole::Context => '-',
                LineRole::Gap => {
                    report.line("--");
                    continue;
                }
            };
            match line.number.filter(|_| self.line_numbers) {
                Some(number) => report.line(&format!("{path}{separator}{number}{separator}{}", line.text)),
                None => report.line(&format!("{path}{separator}{}", line.text)),
            }
        }
    }
}

/// A search under way on several threads.
struct Gathering<'a> {
    search: &'a Search,
    base: &'a Path,
    hits: Mutex<Hits>,
    unreadable: AtomicU64,
    too_long: AtomicU64,
}

impl Gathering<'_> {
    fn visit(
        &self,
        matcher: &RegexMatcher,
        searcher: &mut Searcher,
        entry: Result<DirEntry, ignore::Error>,
    ) -> ControlFlow<()> {
        if self.search.stop.is_cancelled() {
            return ControlFlow::Break(());
        }
        let Ok(entry) = entry else {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            return ControlFlow::Continue(());
        };
        let file = file_below(&entry, self.base).filter(|path| self.search.selects(path, self.base));
        let Some(path) = file.filter(|path| self.hits().wants(path)) else { return ControlFlow::Continue(()) };
        let searched = open_listed_file(path)
            .map_err(Unsearched::from)
            .and_then(|opened| self.search.file(matcher, searcher, opened.file));
        let left_out = match searched {
            Ok(Some(found)) => {
                self.hits().add(path.to_owned(), found);
                return ControlFlow::Continue(());
            }
            // A file that went away meanwhile is not there.
            Ok(None) | Err(Unsearched::Binary | Unsearched::Open(OpenError::NotFound)) => {
                return ControlFlow::Continue(());
            }
            Err(Unsearched::TooLong) => &self.too_long,
            Err(Unsearched::Open(_) | Unsearched::Read(_)) => &self.unreadable,
        };
        left_out.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    }

    fn hits(&self) -> MutexGuard<'_, Hits> {
        self.hits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a result, bounded in lines and bytes.
struct Report {
    text: String,
    lines: usize,
    limit: usize,
    full: bool,
}

impl Report {
    fn line(&mut self, line: &str) {
        self.full |= self.lines >= self.limit || self.text.len() + line.len() > MAX_BYTES;
        if !self.full {
            self.lines += 1;
            self.text.push_str(line);
            self.text.push('\n');
        }
    }
}

/// Collects the hits of one file.
struct HitSink<'a> {
    search: &'a Search,
    matcher: &'a RegexMatcher,
    hits: FileHits,
    binary: bool,
}

impl HitSink<'_> {
    /// Adds a line; false when one more than can be shown is there.
    fn add(&mut self, number: Option<u64>, role: LineRole, text: String) -> bool {
        self.hits.lines.push(HitLine { number, role, text });
        self.hits.lines.len() <= self.search.limit
    }
}

impl Sink for HitSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        match self.search.mode {
            OutputMode::FilesWithMatches => {
                self.hits.matches += 1;
                return Ok(false);
            }
            OutputMode::Count => {
                self.hits.matches += found.lines().count() as u64;
                return Ok(true);
            }
            OutputMode::Content => {}
        }
        for (number, line) in (found.line_number().unwrap_or(1)..).zip(found.lines()) {
            self.hits.matches += 1;
            let place = self.matcher.find(line).ok().flatten();
            let text = excerpt(line, place.map(|place| place.start()..place.end()));
            if !self.add(Some(number), LineRole::Match, text) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.add(context.line_number(), LineRole::Context, excerpt(context.bytes(), None)))
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool, io::Error> {
        Ok(self.add(None, LineRole::Gap, String::new()))
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A file whose reading ends when the call is cancelled: one without a match gives no other chance to stop.
struct StoppableReader<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl io::Read for StoppableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() { Err(io::Error::other("cancelled")) } else { self.file.read(buffer) }
    }
}

fn compile(arguments: &GrepArguments) -> Result<RegexMatcher, Failure> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(arguments.ignore_case)
        .multi_line(true)
        .dot_matches_new_line(arguments.multiline)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_DFA_BYTES);
    if !arguments.multiline {
        // Also tells the searcher that no match spans lines. `$` then matches before `\r\n` too.
        builder.crlf(true);
    }
    builder.build(&arguments.pattern).map_err(|error| {
        let hint = match error.kind() {
            grep_regex::ErrorKind::NotAllowed(_) => "To match across lines, set multiline to true.",
            _ => "The syntax is that of Rust's regex crate: no look-around, no back-references; put a backslash before ( ) [ ] { } . * + ? | ^ $ and \\ that are meant literally.",
        };
        Failure::new(format!("The pattern cannot be used: {error}\n{hint}"))
    })
}

fn types(name: &str) -> Result<Types, Failure> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| {
        Failure::new(format!(
            "There is no file type `{name}`. Types are named as in ripgrep: rust, js, ts, py, go, java, c, cpp, md, json, … For anything else use glob."
        ))
    })
}

/// grep-searcher has no error kind for it.
fn is_heap_limit(error: &io::Error) -> bool {
    error.to_string().contains("allocation limit")
}

fn details(found: &Found) -> ToolDetails {
    let location = |(path, hits): (&Path, &FileHits)| ToolLocation {
        path: path.to_string_lossy().into_owned(),
        line: hits
            .lines
            .iter()
            .find(|line| line.role == LineRole::Match)
            .and_then(|line| u32::try_from(line.number?).ok()),
    };
    ToolDetails { locations: found.hits.iter().take(MAX_LOCATIONS).map(location).collect(), diffs: Vec::new() }
}
