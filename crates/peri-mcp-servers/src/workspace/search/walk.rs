//! Which files Glob and Grep look at.
//!
//! Must not open a file. Decided: hidden files are looked at (`.github` matters), `.git` and its like are not, ignore
//! files hold outside a repository too, links are not followed. Invariant: what a caller names itself is looked at,
//! ignored or not.

use std::ffi::OsStr;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use globset::{GlobBuilder, GlobMatcher, GlobSet};
use ignore::{DirEntry, Walk, WalkBuilder};

use crate::workspace::failure::Failure;

/// The folders that version control keeps for itself.
const VERSION_CONTROL: [&str; 4] = [".git", ".jj", ".hg", ".svn"];

/// A file name that no ignore rule is about.
const NO_NAME: &str = "7b0c8f3e-no-such-name";

/// A walk over the files below `base`. `root` is the workspace root it lies in, whose ignore files apply as well.
/// `hidden` is left out, ignored or not.
pub(crate) fn walk(base: &Path, root: Option<&Path>, hidden: &GlobSet) -> WalkBuilder {
    let towards_base = |builder| only_towards(builder, base.to_owned(), hidden.clone());
    let Some(root) = root.filter(|root| *root != base) else { return towards_base(rules(base)) };
    let whole = rules(root);
    let below_root = base.strip_prefix(root).unwrap_or(base);
    let ignored = whole.build_matchers().iter_mut().any(|matcher| {
        // `build/**` ignores not the directory but whatever is in it, which a name that no rule means will tell.
        matcher.matched(below_root, true).is_ignore() || matcher.matched(below_root.join(NO_NAME), false).is_ignore()
    });
    if ignored {
        // Named by the caller nevertheless: only the rules inside it count.
        let mut inside = WalkBuilder::new(base);
        with_rules(&mut inside, false);
        return towards_base(inside);
    }
    towards_base(whole)
}

/// A walk from a directory by all the rules that hold there.
fn rules(start: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    let in_repository =
        start.ancestors().any(|directory| directory.join(".git").exists() || directory.join(".jj").exists());
    with_rules(&mut builder, in_repository);
    only_towards(builder, start.to_owned(), GlobSet::empty())
}

/// In a repository, git's own rules: ignore files up to its top and no further. Elsewhere those from the start downwards,
/// or else a `.gitignore` in a home directory would hide whole workspaces.
fn with_rules(builder: &mut WalkBuilder, in_repository: bool) {
    builder.hidden(false).git_global(false).require_git(in_repository).parents(in_repository).follow_links(false);
}

/// Keeps to what leads to `base` and what lies below it, version control's folders and what is hidden aside.
fn only_towards(mut builder: WalkBuilder, base: PathBuf, hidden: GlobSet) -> WalkBuilder {
    builder.filter_entry(move |entry| {
        let path = entry.path();
        base.starts_with(path)
            || (path.starts_with(&base) && !is_version_control(entry.file_name()) && !hidden.is_match(path))
    });
    builder
}

/// More threads than this only wait for each other.
const MAX_THREADS: usize = 12;
/// What a thread takes from the walk at once, in a large tree: one by one they would wait for each other at every file.
const MAX_TAKEN: usize = 16;

/// Shows what a walk comes upon to visitors on several threads, until one of them wants to quit. Each thread makes a
/// visitor of its own. There are as many threads as the system gives: the calling one at least, which is why the
/// walk's own threads are not used: they panic where one cannot be had.
pub(crate) fn visit<V>(walk: Walk, visitor: impl Fn() -> V + Sync)
where
    V: FnMut(Result<DirEntry, ignore::Error>) -> ControlFlow<()>,
{
    let (walk, quit) = (Mutex::new(walk), AtomicBool::new(false));
    let take = |count| -> Vec<Result<DirEntry, ignore::Error>> {
        walk.lock().unwrap_or_else(PoisonError::into_inner).by_ref().take(count).collect()
    };
    let work = || {
        let mut visitor = visitor();
        // Few at first: in a small tree every thread should get some.
        let mut count = 1;
        loop {
            let entries = take(count);
            count = (count * 2).min(MAX_TAKEN);
            if entries.is_empty() {
                return;
            }
            for entry in entries {
                if quit.load(Ordering::Relaxed) {
                    return;
                }
                if visitor(entry).is_break() {
                    quit.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    thread::scope(|scope| {
        for _ in 1..threads {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

fn is_version_control(name: &OsStr) -> bool {
    VERSION_CONTROL.iter().any(|known| name == *known)
}

/// A regular file that lies below `base`.
pub(crate) fn file_below<'a>(entry: &'a DirEntry, base: &Path) -> Option<&'a Path> {
    let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
    (is_file && entry.path().starts_with(base)).then(|| entry.path())
}

/// A glob on paths relative to the directory that is looked in.
pub(crate) struct PathGlob {
    matcher: GlobMatcher,
    /// A pattern without a slash is about the file's name, wherever the file lies. One that begins with a slash is
    /// about the directory that is looked in.
    names_only: bool,
}

impl PathGlob {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// In words for the model, which wrote the pattern.
    pub(crate) fn new(pattern: &str) -> Result<PathGlob, Failure> {
        let anchored = pattern.strip_prefix("./").unwrap_or(pattern);
        let relative = anchored.trim_start_matches('/');
        if relative.is_empty() {
            return Err(Failure::new("The glob pattern is empty. To find every file, use `**`."));
        }
        if relative.split('/').any(|part| part == "..") {
            return Err(Failure::new(format!(
                "The glob pattern `{pattern}` holds `..`, which matches nothing. Name the directory in path."
            )));
        }
        let glob = GlobBuilder::new(relative)
            .literal_separator(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| Failure::new(format!("`{pattern}` is not a glob pattern: {}.", error.kind())))?;
        Ok(PathGlob { matcher: glob.compile_matcher(), names_only: !anchored.contains('/') })
    }

    /// Whether it matches a path relative to the directory that is looked in.
    pub(crate) fn matches(&self, relative: &Path) -> bool {
        let subject = if self.names_only { relative.file_name().map_or(relative, Path::new) } else { relative };
        self.matcher.is_match(subject)
    }
}
