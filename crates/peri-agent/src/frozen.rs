//! The frozen context: what the session's system prompt says, fixed at creation so that it never drifts.
//!
//! Owns the form of the blob's bytes. A form that this version does not know can be stored and copied, not continued.

use peri_acp_types::{ContextFacts, FrozenBlob};
use serde::{Deserialize, Serialize};

use crate::{AgentDefinition, SessionOpenError, SessionScope};

/// The form that this version writes, and the only one that it reads.
const VERSION: u32 = 1;

/// What is frozen: the system prompt as it is sent, and the facts that it was made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FrozenContext {
    /// The agent definition's reference.
    pub definition: String,
    /// The system prompt, in the parts in which it is sent.
    pub system: Vec<String>,
    /// `YYYY-MM-DD`.
    pub date: String,
    pub platform: String,
}

impl FrozenContext {
    /// Composes the system prompt. Its parts, in order: the definition, what middlewares add, the surroundings, the
    /// project's instructions, the user's own addition.
    pub(crate) fn compose(
        definition: &AgentDefinition,
        scope: &SessionScope,
        facts: &ContextFacts,
        prompt_parts: Vec<String>,
    ) -> FrozenContext {
        let mut system = vec![definition.system_prompt.clone()];
        system.extend(prompt_parts);
        system.push(surroundings(scope, facts));
        system.extend(instructions(facts));
        system.extend(definition.append_system_prompt.clone());
        system.retain(|part| !part.trim().is_empty());
        FrozenContext {
            definition: definition.name.clone(),
            system,
            date: facts.date.clone(),
            platform: facts.platform.clone(),
        }
    }

    pub(crate) fn to_blob(&self) -> Result<FrozenBlob, serde_json::Error> {
        Ok(FrozenBlob { version: VERSION, bytes: serde_json::to_vec(self)? })
    }

    pub(crate) fn from_blob(blob: &FrozenBlob) -> Result<FrozenContext, SessionOpenError> {
        let unknown = SessionOpenError::UnknownContext { version: blob.version };
        if blob.version != VERSION {
            return Err(unknown);
        }
        serde_json::from_slice(&blob.bytes).map_err(|_| unknown)
    }
}

fn surroundings(scope: &SessionScope, facts: &ContextFacts) -> String {
    let mut lines = vec!["# Surroundings".to_owned(), format!("Working directory: {}", scope.cwd)];
    lines.extend(scope.roots.iter().skip(1).map(|root| format!("Further workspace root: {root}")));
    match &facts.git {
        Some(git) => lines.push(format!(
            "Git repository: {} (branch at the start: {})",
            git.root,
            git.branch.as_deref().unwrap_or("none, detached")
        )),
        None => lines.push("Git repository: none".to_owned()),
    }
    lines.push(format!("Platform: {}", facts.platform));
    lines.push(format!("Date at the start of the session: {}", facts.date));
    lines.extend(facts.language.iter().map(|language| format!("The user's locale: {language}")));
    lines.join("\n")
}

fn instructions(facts: &ContextFacts) -> Option<String> {
    if facts.instructions.is_empty() {
        return None;
    }
    let mut text = String::from(
        "# Project instructions\nFrom files of the project. A later file is closer to the working directory and wins where two disagree.",
    );
    for file in &facts.instructions {
        text.push_str(&format!("\n\n## {}\n\n{}", file.path, file.text.trim_end()));
    }
    Some(text)
}
