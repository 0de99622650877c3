//! The agent definitions that come with Peri.

use peri_agent::AgentDefinition;
use peri_config::Settings;

use crate::ControllerError;

/// The definition of that name, with what the user adds to its prompt.
pub(crate) fn definition(name: &str, settings: &Settings) -> Result<AgentDefinition, ControllerError> {
    let system_prompt = match name {
        "main" => include_str!("definitions/main.md"),
        _ => return Err(ControllerError::UnknownAgent(name.to_owned())),
    };
    Ok(AgentDefinition {
        name: name.to_owned(),
        system_prompt: system_prompt.trim_end().to_owned(),
        append_system_prompt: settings.append_system_prompt.clone(),
    })
}
