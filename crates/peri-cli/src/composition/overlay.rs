//! The command line's say in the settings.
//!
//! Owns: the step from options to peri-config's overlay. Must not: read rules, models or settings; peri-config does, and
//! names the option that is at fault.

use std::ffi::OsStr;
use std::path::Path;

use peri_config::{CommandLineOverlay, SettingsArgument};

use crate::args::{PrintArgs, SettingsArgs};
use crate::exit::Failure;

/// The overlay of a print run. `start_dir` is where relative paths start.
///
/// # Errors
/// A usage [`Failure`] where `--settings` is no text.
pub fn of_print(args: &PrintArgs, start_dir: &Path) -> Result<CommandLineOverlay, Failure> {
    Ok(CommandLineOverlay {
        model: args.model.clone(),
        permission_mode: args.permission_mode.map(Into::into),
        allowed_tools: args.allowed_tools.clone(),
        disallowed_tools: args.disallowed_tools.clone(),
        max_turns: args.max_turns,
        append_system_prompt: args.append_system_prompt.clone(),
        trust_workspace: args.trust_workspace,
        ..of_settings(&args.settings, start_dir)?
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
