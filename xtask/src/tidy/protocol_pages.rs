//! Pages of docs/protocol carry a stamp for each source that they describe. When the source changes, the stamp no longer
//! fits: read the page against the source, mend it, and run `cargo xtask stamp`.
//!
//! A stamp is a line `<!-- describes: PATH sha256:DIGEST -->`.

use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};

const FOLDER: &str = "docs/protocol";
const BEGIN: &str = "<!-- describes: ";
const END: &str = " -->";

/// Sources with a form that others rely on: a page must describe each of them that is there.
const DESCRIBED: &[&str] = &[
    "crates/peri-acp/src/extension.rs",
    "crates/peri-acp/src/methods/mod.rs",
    "crates/peri-config/src/document.rs",
    "crates/peri-resources/src/record/message.rs",
    "crates/peri-resources/src/record/tool.rs",
    "crates/peri-resources/src/record/content.rs",
    "crates/peri-resources/src/record/turn.rs",
    "crates/peri-resources/src/sqlite/schema.rs",
    "crates/peri-model/src/anthropic/request.rs",
    "crates/peri-model/src/anthropic/answer.rs",
];

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut described = Vec::new();
    for (page, text) in pages(root)? {
        for line in text.lines().filter(|line| line.starts_with(BEGIN)) {
            let source = source_of(line).with_context(|| format!("{page}: not a stamp: {line}"))?;
            described.push(source.to_owned());
            if stamp_for(root, source).as_deref() != Some(line) {
                findings.push(format!(
                    "{page}: {source} has changed since the page was last read against it; mend the page, then `cargo xtask stamp`"
                ));
            }
        }
    }
    let missing =
        DESCRIBED.iter().filter(|source| root.join(source).exists() && !described.iter().any(|known| known == *source));
    findings.extend(missing.map(|source| format!("no page of {FOLDER} describes {source}")));
    Ok(findings)
}

/// Renews every stamp.
pub fn stamp(root: &Path) -> anyhow::Result<()> {
    for (page, text) in pages(root)? {
        let renew = |line: &str| match line.starts_with(BEGIN) {
            true => source_of(line).and_then(|source| stamp_for(root, source)).unwrap_or_else(|| line.to_owned()),
            false => line.to_owned(),
        };
        let mut renewed = text.lines().map(renew).collect::<Vec<_>>().join("\n");
        renewed.push('\n');
        if renewed != text {
            std::fs::write(root.join(&page), renewed).with_context(|| format!("cannot write {page}"))?;
            eprintln!("stamped {page}");
        }
    }
    Ok(())
}

fn pages(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let Ok(entries) = std::fs::read_dir(root.join(FOLDER)) else { return Ok(Vec::new()) };
    let mut pages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            pages.push((format!("{FOLDER}/{name}"), std::fs::read_to_string(&path)?));
        }
    }
    pages.sort();
    Ok(pages)
}

fn source_of(line: &str) -> Option<&str> {
    line.strip_prefix(BEGIN)?.strip_suffix(END)?.split_whitespace().next()
}

/// None where the source is gone.
fn stamp_for(root: &Path, source: &str) -> Option<String> {
    let bytes = std::fs::read(root.join(source)).ok()?;
    let digest: String = Sha256::digest(&bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{BEGIN}{source} sha256:{digest}{END}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(stamp: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join(FOLDER)).expect("docs");
        std::fs::write(root.path().join("source.rs"), "one").expect("a source");
        std::fs::write(root.path().join(FOLDER).join("page.md"), format!("# Page\n\n{stamp}\n")).expect("a page");
        root
    }

    #[test]
    fn a_page_is_found_when_its_source_has_changed() {
        let root = repository("<!-- describes: source.rs sha256:none -->");
        assert_eq!(check(root.path()).expect("a check").len(), 1, "never stamped");
        stamp(root.path()).expect("a stamp");
        assert_eq!(check(root.path()).expect("a check"), [""; 0]);
        std::fs::write(root.path().join("source.rs"), "two").expect("a change");
        assert_eq!(check(root.path()).expect("a check").len(), 1, "changed since");
    }

    #[test]
    fn a_page_whose_source_is_gone_is_found() {
        let root = repository("<!-- describes: gone.rs sha256:00 -->");
        assert_eq!(check(root.path()).expect("a check").len(), 1);
    }
}
