//! The command line's say in the settings.
//!
//! Owns: the step from options to peri-config's overlay. Must not: read rules, models or settings; peri-config does, and
//! names the option that is at fault.

use std::ffi::OsStr;
use std::path::Path;

use peri_config::{CommandLineOverlay, SettingsArgument};

use crate::args::{ModelArgs, PermissionArgs, SettingsArgs};
use crate::exit::Failure;

/// What the options of a command that runs an agent say.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    pub model: &'a ModelArgs,
    pub permission: &'a PermissionArgs,
    pub trust_workspace: bool,
    pub settings: &'a SettingsArgs,
}

/// The overlay of such a command. `start_dir` is where relative paths start.
///
/// # Errors
/// A usage [`Failure`] where `--settings` is no text.
pub fn of_run(options: RunOptions<'_>, start_dir: &Path) -> Result<CommandLineOverlay, Failure> {
    let RunOptions { model, permission, trust_workspace, settings } = options;
    Ok(CommandLineOverlay {
        model: model.model.clone(),
        effort: model.effort.map(Into::into),
        permission_mode: permission.permission_mode.map(Into::into),
        allowed_tools: permission.allowed_tools.clone(),
        disallowed_tools: permission.disallowed_tools.clone(),
        max_turns: model.max_turns,
        append_system_prompt: model.append_system_prompt.clone(),
        trust_workspace,
        ..of_settings(settings, start_dir)?
    })
}

/// The overlay of a command that only shows settings.
///
/// # Errors
/// A usage [`Failure`] where `--settings` is no text.
pub fn of_settings(args: &SettingsArgs, start_dir: &Path) -> Result<CommandLineOverlay, Failure> {
    let settings = args.settings.as_deref().map(|value| settings_argument(value, start_dir)).transpose()?;
    Ok(CommandLineOverlay { settings, ..CommandLineOverlay::default() })
}

fn settings_argument(value: &OsStr, start_dir: &Path) -> Result<SettingsArgument, Failure> {
    let text = value.to_str().ok_or_else(|| {
        Failure::usage(format!("--settings {} is not UTF-8", value.display())).hint("rename the file")
    })?;
    Ok(match SettingsArgument::from_text(text) {
        SettingsArgument::File(path) => SettingsArgument::File(start_dir.join(path).display().to_string()),
        inline @ SettingsArgument::Inline(_) => inline,
    })
}
