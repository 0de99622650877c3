//! `peri config path`: which files count here, and which of them are there.

use std::path::Path;

use peri_config::{CommandLineOverlay, SettingsArgument};
use peri_mcp_servers::config::FileTrustStore;

use super::config::Report;
use crate::composition::Places;
use crate::exit::Exit;

/// A line for each place: what it is for, where it is, whether there is anything. Settings come lowest first.
pub fn report(places: &Places, overlay: &CommandLineOverlay) -> Report {
    let mut lines = vec![
        line("user settings", places.settings_file()),
        line("workspace settings", &places.cwd().join(".peri/settings.json")),
        line("local settings", &places.cwd().join(".peri/settings.local.json")),
    ];
    match &overlay.settings {
        Some(SettingsArgument::File(path)) => lines.push(line("--settings", Path::new(path))),
        Some(SettingsArgument::Inline(_)) => lines.push("--settings          (on the command line)\n".to_owned()),
        None => {}
    }
    lines.push(line("user instructions", &places.dirs().config.join("AGENTS.md")));
    lines.push(line("sessions", places.store_file()));
    lines.push(line("trust", FileTrustStore::new(places.dirs()).file()));
    lines.push(line("long outputs", &places.output_dir()));
    Report { text: lines.concat(), notices: Vec::new(), exit: Exit::Success }
}

fn line(what: &str, path: &Path) -> String {
    let there = if path.exists() { "" } else { "  (not there)" };
    format!("{what:<20}{}{there}\n", path.display())
}
