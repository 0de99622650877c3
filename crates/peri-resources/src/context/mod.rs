//! The surroundings of a session on this machine: project instructions, date, platform, repository, language.
//!
//! Owns where such facts are looked for and how much of them is taken. Must not: run git, follow a link out of a
//! repository, open what is no regular file, or ask the environment (it is handed over). Invariant: what lies in a cloned
//! repository can put its own words before the model, and nobody else's.

#![expect(clippy::disallowed_types, reason = "native only: this is where the frozen context meets the file system")]

mod date;
mod git;
mod instructions;
mod language;
mod small_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::channel::oneshot;
use peri_acp_types::ports::{Clock, ContextSource};
use peri_acp_types::{ContextFacts, GitFacts};

/// What the environment says about the user, as the composition root found it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContextEnvironment {
    pub lc_all: Option<String>,
    pub lc_messages: Option<String>,
    pub lang: Option<String>,
    pub tz: Option<String>,
    /// The user's configuration directory: its `AGENTS.md` comes before the project's.
    pub config_dir: Option<PathBuf>,
}

/// Finds the surroundings in the file system.
pub struct LocalContext {
    environment: Arc<ContextEnvironment>,
    clock: Arc<dyn Clock>,
}

impl LocalContext {
    pub fn new(environment: ContextEnvironment, clock: Arc<dyn Clock>) -> LocalContext {
        LocalContext { environment: Arc::new(environment), clock }
    }
}

#[async_trait::async_trait]
impl ContextSource for LocalContext {
    async fn pull(&self, cwd: &str) -> (ContextFacts, Vec<String>) {
        let (reply, answer) = oneshot::channel();
        let (environment, now_ms, directory) = (self.environment.clone(), self.clock.now_ms(), PathBuf::from(cwd));
        // On a thread of its own: a file system may take its time, and the runtime's threads are not for waiting.
        let started = std::thread::Builder::new().name("peri-context".to_owned()).spawn(move || {
            // Nobody listens where the caller was dropped.
            let _ = reply.send(look_around(&environment, now_ms, &directory));
        });
        match (started, answer.await) {
            (Ok(_), Ok(facts)) => facts,
            (Ok(_), Err(_)) | (Err(_), _) => {
                (ContextFacts::default(), vec![format!("the surroundings of {cwd} could not be looked at")])
            }
        }
    }
}

fn look_around(environment: &ContextEnvironment, now_ms: i64, cwd: &Path) -> (ContextFacts, Vec<String>) {
    let mut left_out = Vec::new();
    let date = date::local_date(now_ms, environment.tz.as_deref(), &mut left_out);
    let mut facts = ContextFacts {
        date,
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        language: language::of_locale(environment),
        ..ContextFacts::default()
    };
    let user_file = environment.config_dir.as_deref().map(|directory| directory.join("AGENTS.md"));
    // Links on the way to the directory are the user's own: they named it.
    match std::fs::canonicalize(cwd) {
        Ok(cwd) => {
            let repository = git::find(&cwd, &mut left_out);
            let top = repository.as_ref().map_or(cwd.as_path(), |repository| &repository.root);
            facts.instructions = instructions::gather(user_file.as_deref(), top, &cwd, &mut left_out);
            facts.git = repository.map(|repository| GitFacts {
                root: repository.root.to_string_lossy().into_owned(),
                branch: repository.branch,
            });
        }
        Err(error) => left_out.push(format!("{}: {error}; it was looked at for nothing", cwd.display())),
    }
    (facts, left_out)
}
