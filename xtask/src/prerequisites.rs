//! What a fresh machine may lack, and how it gets there.

use std::path::Path;

use anyhow::bail;

use crate::run::{command, run, succeeds};

/// A program that must be there: what shows it, and Debian's package of it.
struct Tool {
    probe: &'static [&'static str],
    package: &'static str,
}

/// A C compiler builds SQLite; git lists the files.
const FOR_TESTS: [Tool; 4] = [
    Tool { probe: &["cc", "--version"], package: "gcc" },
    Tool { probe: &["git", "--version"], package: "git" },
    Tool { probe: &["python3", "--version"], package: "python3" },
    Tool { probe: &["setsid", "--version"], package: "util-linux" },
];

/// npm brings the Node that the suites run on; any Node runs npm itself.
const FOR_INTEROP: [Tool; 3] = [
    Tool { probe: &["node", "--version"], package: "nodejs" },
    Tool { probe: &["npm", "--version"], package: "npm" },
    Tool { probe: &["python3", "-m", "ensurepip", "--version"], package: "python3-venv" },
];

/// What the tests need.
pub fn require_tools(root: &Path) -> anyhow::Result<()> {
    require(root, &FOR_TESTS)
}

/// What is needed to install other people's clients and servers.
pub fn require_interop_tools(root: &Path) -> anyhow::Result<()> {
    require(root, &FOR_INTEROP)
}

fn require(root: &Path, needed: &[Tool]) -> anyhow::Result<()> {
    let missing = needed.iter().filter(|tool| !succeeds(&mut command(root, tool.probe)));
    let packages: Vec<&str> = missing.map(|tool| tool.package).collect();
    match packages.is_empty() {
        true => Ok(()),
        false => install_debian_packages(root, &packages),
    }
}

/// Installs packages where that is possible without asking; otherwise says what to install.
pub fn install_debian_packages(root: &Path, packages: &[&str]) -> anyhow::Result<()> {
    let listed = packages.join(" ");
    let may_install = nix::unistd::geteuid().is_root() && succeeds(&mut command(root, &["apt-get", "--version"]));
    if !may_install {
        bail!("missing: {listed}. On Debian: sudo apt-get install {listed}");
    }
    run(command(root, &["apt-get", "update", "-qq"]).env("DEBIAN_FRONTEND", "noninteractive"))?;
    let mut install = command(root, &["apt-get", "install", "-y", "-qq", "--no-install-recommends"]);
    run(install.args(packages).env("DEBIAN_FRONTEND", "noninteractive"))
}
