//! Where this run finds and keeps things.
//!
//! Owns: the working directory, and the files that options and variables choose. Must not: create anything.
//! Invariants: every path here is absolute; the working directory exists, links resolved, and its path is text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use peri_mcp_servers::config::{PeriDirs, Variables};

use super::environment::Environment;
use crate::exit::Failure;

/// The name of the file of sessions in the data directory.
const STORE_FILE: &str = "peri.db";

/// What options choose. Relative paths start at the directory in which Peri was started.
#[derive(Clone, Copy, Default)]
pub struct PlaceChoice<'a> {
    pub cwd: Option<&'a Path>,
    pub config_file: Option<&'a Path>,
    pub db_path: Option<&'a Path>,
}

/// Where everything is.
#[derive(Clone)]
pub struct Places {
    environment: Environment,
    start_dir: PathBuf,
    cwd: PathBuf,
    dirs: PeriDirs,
    settings_file: PathBuf,
    store_file: PathBuf,
}

impl Places {
    /// The places that these options and variables choose.
    ///
    /// # Errors
    /// A usage [`Failure`] where the working directory is none, there is no home for Peri's files, or a file that was named
    /// is not what it was named for.
    pub fn find(choice: PlaceChoice<'_>, environment: Environment) -> Result<Places, Failure> {
        let start_dir = std::env::current_dir().map_err(|error| {
            Failure::usage(format!("the current directory cannot be used: {error}")).hint("cd to another one")
        })?;
        let cwd = match choice.cwd {
            Some(cwd) => start_dir.join(cwd),
            None => start_dir.clone(),
        };
        let mut places = Places::of(start_dir, &cwd, environment)?;
        if let Some(file) = choice.config_file {
            places.settings_file = existing(places.start_dir.join(file))?;
        }
        if let Some(file) = choice.db_path {
            places.store_file = no_foreign_file(places.start_dir.join(file))?;
        }
        Ok(places)
    }

    /// Work in that directory, with nothing chosen by options.
    ///
    /// # Errors
    /// As [`Places::find`].
    pub fn of_directory(cwd: &Path, environment: Environment) -> Result<Places, Failure> {
        Places::of(cwd.to_owned(), cwd, environment)
    }

    fn of(start_dir: PathBuf, cwd: &Path, environment: Environment) -> Result<Places, Failure> {
        let dirs = PeriDirs::of(|name| environment.var(name)).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Places {
            start_dir,
            cwd: directory(cwd)?,
            settings_file: dirs.settings_file(),
            store_file: dirs.data.join(STORE_FILE),
            dirs,
            environment,
        })
    }

    /// Where relative paths of options start.
    pub fn start_dir(&self) -> &Path {
        &self.start_dir
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The working directory as text.
    pub fn workspace(&self) -> String {
        self.cwd.display().to_string()
    }

    pub fn dirs(&self) -> &PeriDirs {
        &self.dirs
    }

    /// The user's settings.
    pub fn settings_file(&self) -> &Path {
        &self.settings_file
    }

    /// The file of sessions.
    pub fn store_file(&self) -> &Path {
        &self.store_file
    }

    /// Where output goes that is too long to be shown.
    pub fn output_dir(&self) -> PathBuf {
        self.dirs.state.join("output")
    }

    /// What `~` stands for.
    pub fn home(&self) -> Option<PathBuf> {
        self.environment.var("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The variables, as peri-mcp-servers takes them.
    pub fn variables(&self) -> Variables {
        let environment = self.environment.clone();
        Arc::new(move |name| environment.var(name))
    }
}

fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let unusable =
        |reason: String| Failure::usage(format!("{} {reason}", path.display())).hint("--cwd DIR chooses another");
    let resolved = path.canonicalize().map_err(|error| unusable(format!("cannot be worked in: {error}")))?;
    if !resolved.is_dir() {
        return Err(unusable("is no directory".to_owned()));
    }
    match resolved.to_str() {
        Some(_) => Ok(resolved),
        None => Err(unusable("has a name that is not UTF-8".to_owned())),
    }
}

/// A file that was named must be there; the usual one need not.
fn existing(file: PathBuf) -> Result<PathBuf, Failure> {
    match file.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::usage(format!("--config-file {}: there is no such file", file.display())))
        }
        _ => Ok(file),
    }
}

/// What every database of SQLite begins with.
const SQLITE_HEADER: &[u8; 16] = b"SQLite format 3\0";

/// A damaged store of Peri's own is moved aside and mended. A file that was named and is something else is left alone.
fn no_foreign_file(file: PathBuf) -> Result<PathBuf, Failure> {
    let mut start = Vec::new();
    let read = File::open(&file).and_then(|found| found.take(SQLITE_HEADER.len() as u64).read_to_end(&mut start));
    match read {
        Ok(_) if !start.is_empty() && start != SQLITE_HEADER => Err(Failure::usage(format!(
            "--db-path {}: this is no SQLite database; it was left as it is",
            file.display()
        ))
        .hint("name another file; one that is not there is made")),
        // What cannot be read is for the store to report.
        Ok(_) | Err(_) => Ok(file),
    }
}
