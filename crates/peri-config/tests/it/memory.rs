//! Sources in memory, and the one way in which the tests call `load`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::executor::block_on;
use peri_acp_types::ports::*;
use peri_config::{CommandLineOverlay, ConfigError, Resolution, Severity, load};

pub const WORKSPACE: &str = "/ws";
pub const USER: &str = "/home/u/.config/peri/settings.json";
pub const SHARED: &str = "/ws/.peri/settings.json";
pub const LOCAL: &str = "/ws/.peri/settings.local.json";
pub const MCP: &str = "/ws/.mcp.json";
pub const ARGUMENT: &str = "/extra.json";

/// Files by path and variables by name; also the trust store.
pub struct World {
    pub files: Mutex<BTreeMap<String, Vec<u8>>>,
    pub env: BTreeMap<String, String>,
    /// What the trust store answers, one after the other; the last stands for all further questions.
    pub verdicts: Mutex<Vec<Result<TrustVerdict, String>>>,
    /// Answers this many writes with `Changed`, after another process has added to the file.
    pub rivals: Mutex<Vec<Vec<u8>>>,
    pub overlay: CommandLineOverlay,
}

impl World {
    pub fn new() -> World {
        World {
            files: Mutex::new(BTreeMap::new()),
            env: BTreeMap::new(),
            verdicts: Mutex::new(vec![Ok(verdict(TrustState::Untrusted))]),
            rivals: Mutex::new(Vec::new()),
            overlay: CommandLineOverlay::default(),
        }
    }

    pub fn file(self, path: &str, text: impl AsRef<[u8]>) -> World {
        self.files.lock().unwrap().insert(path.to_owned(), text.as_ref().to_vec());
        self
    }

    pub fn var(mut self, name: &str, value: &str) -> World {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn state(self, state: TrustState) -> World {
        self.verdict_of(Ok(verdict(state)))
    }

    pub fn verdict_of(self, answer: Result<TrustVerdict, String>) -> World {
        *self.verdicts.lock().unwrap() = vec![answer];
        self
    }

    pub fn overlay(mut self, overlay: CommandLineOverlay) -> World {
        self.overlay = overlay;
        self
    }

    pub fn text_of(&self, path: &str) -> Option<String> {
        self.files.lock().unwrap().get(path).map(|bytes| String::from_utf8(bytes.clone()).unwrap())
    }

    pub fn load(&self) -> Result<Resolution, ConfigError> {
        block_on(load(self, self, WORKSPACE, &self.overlay))
    }

    #[track_caller]
    pub fn loaded(&self) -> Resolution {
        self.load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Every finding, a line each, errors and warnings marked.
    pub fn findings(&self) -> Vec<String> {
        let found = match self.load() {
            Ok(resolution) => resolution.diagnostics,
            Err(ConfigError::Invalid(diagnostics)) => diagnostics,
            Err(other) => return vec![other.to_string()],
        };
        let mark = |severity| if severity == Severity::Error { "E" } else { "W" };
        found.iter().map(|finding| format!("{} {finding}", mark(finding.severity))).collect()
    }
}

pub fn verdict(state: TrustState) -> TrustVerdict {
    TrustVerdict { root: WORKSPACE.to_owned(), digest: "d1".to_owned(), files: vec![SHARED.to_owned()], state }
}

fn path_of(place: &ConfigPlace) -> String {
    match place {
        ConfigPlace::User => USER.to_owned(),
        ConfigPlace::Workspace { root } => format!("{root}/.peri/settings.json"),
        ConfigPlace::WorkspaceLocal { root } => format!("{root}/.peri/settings.local.json"),
        ConfigPlace::WorkspaceMcp { root } => format!("{root}/.mcp.json"),
        ConfigPlace::File { path } => path.clone(),
    }
}

fn revision(bytes: &[u8]) -> ConfigRevision {
    ConfigRevision(format!("{bytes:?}"))
}

#[async_trait::async_trait]
impl ConfigSource for World {
    async fn read(&self, place: &ConfigPlace) -> Result<Option<ConfigDocument>, ConfigSourceError> {
        let origin = path_of(place);
        let bytes = self.files.lock().unwrap().get(&origin).cloned();
        match bytes {
            Some(bytes) if bytes == b"<unreadable>" => {
                Err(ConfigSourceError::Unreadable { origin, reason: "permission denied".to_owned() })
            }
            other => Ok(other.map(|bytes| ConfigDocument { origin, revision: revision(&bytes), bytes })),
        }
    }

    async fn write(
        &self,
        place: &ConfigPlace,
        expected: Option<&ConfigRevision>,
        bytes: Vec<u8>,
    ) -> Result<ConfigRevision, ConfigSourceError> {
        let origin = path_of(place);
        let mut files = self.files.lock().unwrap();
        if let Some(rival) = self.rivals.lock().unwrap().pop() {
            files.insert(origin.clone(), rival);
        }
        if files.get(&origin).map(|bytes| revision(bytes)).as_ref() != expected {
            return Err(ConfigSourceError::Changed { origin });
        }
        let revision = revision(&bytes);
        files.insert(origin, bytes);
        Ok(revision)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }
}

#[async_trait::async_trait]
impl TrustStore for World {
    async fn verdict(&self, _root: &str) -> Result<TrustVerdict, String> {
        let mut verdicts = self.verdicts.lock().unwrap();
        if verdicts.len() > 1 { verdicts.remove(0) } else { verdicts[0].clone() }
    }

    async fn grant(&self, _root: &str, _digest: &str) -> Result<(), String> {
        Ok(())
    }
}
