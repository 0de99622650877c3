//! Tidy: the architecture's rules, checked against what the manifests and sources say.

mod confinement;
mod edges;
mod facts;
mod print_bans;
pub mod protocol_pages;
pub mod rules;
mod sources;

use std::path::Path;

use anyhow::bail;

/// Runs every rule and reports all that is wrong, not only the first.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let facts = facts::gather(root)?;
    let files = sources::tracked_files(root)?;
    let mut findings = edges::check(&facts.packages);
    findings.extend(confinement::check(&facts));
    findings.extend(print_bans::check(&files));
    findings.extend(sources::check(&files));
    findings.extend(protocol_pages::check(root)?);
    if findings.is_empty() {
        eprintln!("tidy: {} packages, {} files, nothing found", facts.packages.len(), files.len());
        return Ok(());
    }
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    bail!("{} findings", findings.len())
}
